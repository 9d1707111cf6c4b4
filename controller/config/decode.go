package config

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// override is a value from the environment or a flag that replaces a value of the file.
type override struct{ path, value, origin string }

func parse(file string, text []byte, overrides []override, sections []Section) (*Config, error) {
	source := &Config{File: file, Source: bytes.Clone(text), overrides: overrides}
	d, err := source.document()
	if err != nil {
		return nil, err
	}
	c := read(d, sections)
	c.File, c.Source, c.overrides = source.File, source.Source, source.overrides
	if d.Err() == nil {
		c.index()
		if c.check(d) {
			for _, s := range sections {
				if s.Check != nil {
					s.Check(c, d)
				}
			}
		}
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// read reads a document, without looking for contradictions.
func read(d *yamlnode.Doc, sections []Section) *Config {
	c := &Config{lines: d.Lines(), sections: map[string]any{}}
	d.Read(func(m *yamlnode.Map) {
		c.read(m)
		for _, s := range sections {
			c.sections[s.Key] = yamlnode.Section(m, s.Key, func(m *yamlnode.Map) any { return s.Read(m, c) })
		}
		c.Switches = yamlnode.List(m, "switches", func(m *yamlnode.Map) Switch { return c.readSwitch(m, sections) })
	})
	return c
}

// Keys returns all keys that a fabric file may have.
func Keys(sections []Section) []yamlnode.Key {
	return yamlnode.Keys(func(d *yamlnode.Doc) { read(d, sections) })
}

func (c *Config) read(m *yamlnode.Map) {
	m.Need("name", "switches")
	c.Name = m.Word("name", "")
	c.Scale = int64(m.Int("scale", 1, 1, 1_000_000))
	c.Hosts = yamlnode.List(m, "hosts", readHost)
	c.Links = yamlnode.List(m, "links", readLink)
	c.index()
	c.addMACs()
	c.Applications = yamlnode.List(m, "applications", readApplication)
	c.Controller = yamlnode.Section(m, "controller", readController)
}

func readHost(m *yamlnode.Map) Host {
	m.Need("name")
	h := Host{Name: m.Word("name", ""), IPv4: m.IPv4("ipv4"), IPv6: m.IPv6("ipv6"), MAC: m.MAC("mac"), Bond: m.OneOf("bond", "none", "none", LAG, MLAG)}
	if !m.Has("ipv4") && !m.Has("ipv6") {
		m.Fault("ipv4", "is missing, want ipv4, ipv6 or both")
	}
	if h.MAC == ([6]byte{}) {
		h.MAC = h.defaultMAC(0)
	}
	return h
}

// MaxRate is the highest rate of a link: no network is faster.
const MaxRate = 1_000_000 * units.Gbps

func readLink(m *yamlnode.Map) Link {
	m.Need("a", "b", "rate")
	m.Computed("mac")
	v := Link{A: readEndpoint(m, "a"), B: readEndpoint(m, "b"), Rate: m.Rate("rate", 0, 1, MaxRate), Delay: m.Time("delay", 0, 0, units.Second), MAC: m.MAC("mac")}
	if v.Name = m.Text("name", ""); v.Name == "" {
		v.Name = v.A.String() + "-" + v.B.String()
	}
	return v
}

// String prints the endpoint as the file writes it.
func (e Endpoint) String() string {
	if e.Port == 0 {
		return e.Node
	}
	return e.Node + ":" + strconv.FormatUint(uint64(e.Port), 10)
}

func readEndpoint(m *yamlnode.Map, key string) Endpoint {
	const want = `"switch:port" with a port from 1 to 509, or a host's name`
	return yamlnode.Scalar(m, key, Endpoint{}, want, func(s string) (Endpoint, error) {
		node, port, hasPort := strings.Cut(s, ":")
		number, err := strconv.ParseUint(port, 10, 32)
		if !yamlnode.IsWord(node) || hasPort && (err != nil || number < 1 || number > maxPort) {
			return Endpoint{}, yamlnode.ErrNotAllowed
		}
		return Endpoint{Node: node, Port: uint32(number)}, nil
	})
}

func readApplication(m *yamlnode.Map) Application {
	m.Need("name", "budget")
	return Application{Name: m.Word("name", ""), Budget: m.Above("budget", 0, 0, math.Inf(1))}
}

func readController(m *yamlnode.Map) Controller {
	v := Controller{
		Listen: m.HostPort("listen", "127.0.0.1:9600"), Metrics: m.HostPort("metrics", "127.0.0.1:9601", "off"),
		ElectionID: uint64(m.Int("election_id", 1, 1, math.MaxInt64)), State: m.Text("state", ""),
		PollInterval:     m.WallOrOff("poll_interval", 100*time.Millisecond, time.Millisecond, time.Hour),
		ProbeInterval:    m.WallOrOff("probe_interval", 300*time.Millisecond, 10*time.Millisecond, time.Hour),
		UnreachableAfter: m.WallOrOff("unreachable_after", 5*time.Second, 100*time.Millisecond, 24*time.Hour),
		ResyncInterval:   m.WallOrOff("resync_interval", time.Minute, time.Second, 24*time.Hour),
		Comparisons:      m.Int("comparisons", Comparisons, 1, 1000),
	}
	m.Sub("tls", func(m *yamlnode.Map) {
		m.Need("cert", "key")
		v.TLS = ServerTLS{Cert: m.Text("cert", ""), Key: m.Text("key", ""), ClientCA: m.Text("client_ca", "")}
	})
	m.Sub("cluster", func(m *yamlnode.Map) { v.Cluster = readCluster(m) })
	if len(v.Cluster.Members) > 0 && len(v.Cluster.Etcd) == 0 && v.State == "" {
		m.Fault("state", "is missing: want the folder of this member's etcd")
	}
	if v.Audit = m.Text("audit", ""); v.Audit == "" && v.State != "" {
		v.Audit = v.State + ".audit"
	}
	v.Policy, v.Files = m.Text("policy", ""), m.Texts("files")
	if v.TLS.Cert != "" && v.Policy == "" {
		m.Fault("tls", "is given without a policy, so no caller has rights, want policy too, the file with the callers' roles")
	}
	m.Computed("probe_timeout", "flap_hold_max")
	v.ProbeTimeout = m.Wall("probe_timeout", max(900*time.Millisecond, 3*v.ProbeInterval), 20*time.Millisecond, time.Hour)
	v.FlapHold = m.WallOrOff("flap_hold", time.Second, 10*time.Millisecond, time.Hour)
	v.FlapHoldMax = m.Wall("flap_hold_max", max(time.Minute, v.FlapHold), 10*time.Millisecond, 24*time.Hour)
	return v
}

// mulFits reports whether a·b fits an int64.
func mulFits(a, b int64) bool {
	return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)).IsInt64()
}

func readCluster(m *yamlnode.Map) Cluster {
	m.Need("members")
	v := Cluster{Etcd: m.Texts("etcd"), Lease: m.Wall("lease", MinLease, MinLease, time.Minute)}
	v.Members = yamlnode.List(m, "members", func(m *yamlnode.Map) Member {
		m.Need("name", "relay")
		m.NeedIf(len(v.Etcd) == 0, "raft")
		return Member{Name: m.Word("name", ""), Raft: m.HostPort("raft", ""), Relay: m.HostPort("relay", "")}
	})
	if n := len(v.Members); !slices.Contains([]int{1, 3, 5, 7}, n) {
		m.Fault("members", "has %d, want 1, 3, 5 or 7: an even number survives no more failures than the next smaller odd number", n)
	}
	if v.Lease%time.Second != 0 {
		m.Fault("lease", "is %v, want whole seconds", v.Lease)
	}
	seen := map[string]bool{"": true}
	for _, e := range v.Members {
		for _, s := range []string{e.Name, e.Raft, e.Relay} {
			if s != "" && seen[s] {
				m.Fault("members", "has %q twice: want a name, a raft and a relay address for each member", s)
			}
			seen[s] = true
		}
	}
	m.Sub("tls", func(m *yamlnode.Map) {
		m.Need("ca", "cert", "key")
		v.TLS = TLS{CA: m.Text("ca", ""), Cert: m.Text("cert", ""), Key: m.Text("key", "")}
	})
	return v
}

// Member returns a member by its name; false when there is none.
func (c *Cluster) Member(name string) (Member, bool) {
	for _, m := range c.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// The keys that configure access to a switch's traffic manager.
const (
	keyBFRuntime  = "bf_runtime"
	keyThrift     = "thrift"
	keyPacketSize = "packet_size"
)

// defaultPacketSize is a frame of a host agent with its default payload of 1000 B.
const defaultPacketSize = 1078 * units.Byte

func (c *Config) readSwitch(m *yamlnode.Map, sections []Section) Switch {
	m.Need("name", "device_id", "address")
	s := Switch{
		Name: m.Word("name", ""), DeviceID: uint64(m.Int("device_id", 0, 0, 1<<24-1)), Address: m.HostPort("address", ""),
		Target:       Target(m.OneOf("target", string(BMv2), string(BMv2), string(Embedded), string(Tofino1), string(Tofino2), string(tofinoAlias))),
		DeviceConfig: m.Text("device_config", ""), BFRuntime: m.HostPort(keyBFRuntime, ""), Thrift: m.HostPort(keyThrift, ""),
		PriorityQueues: m.Int("priority_queues", 8, 1, 8), Ports: yamlnode.List(m, "ports", readPort), sections: map[string]any{},
	}
	if size := m.Bytes(keyPacketSize, defaultPacketSize, 64, 9216); m.Has(keyThrift) {
		s.PacketSize = size
	} else if m.Has(keyPacketSize) {
		m.Fault(keyPacketSize, "is %v without %s, want both or neither", size, keyThrift)
	}
	if s.Target == tofinoAlias {
		s.Target = Tofino1
	}
	m.Computed("cpu_port")
	s.CPUPort = uint32(m.Int("cpu_port", int(s.Target.cpuPort()), 0, ids.CPUPort))
	if fixed := s.Target.Chip() == ""; fixed != (s.CPUPort == ids.CPUPort) {
		m.Fault("cpu_port", `is "%d", want %s`, s.CPUPort, map[bool]string{true: "510", false: "an integer from 0 to 509"}[fixed])
	}
	m.Sub("tls", func(m *yamlnode.Map) { s.TLS = readTLS(m) })
	for _, own := range sections {
		if own.ReadSwitch != nil {
			s.sections[own.Key] = yamlnode.Section(m, own.Key, func(m *yamlnode.Map) any { return own.ReadSwitch(m, c) })
		}
	}
	return s
}

// maxPort is the highest port number: v1model's nine bits, less the CPU port 510 and the drop port 511.
const maxPort = ids.CPUPort - 1

func readPort(m *yamlnode.Map) Port {
	m.Need("number")
	p := Port{Number: uint32(m.Int("number", 1, 1, maxPort)), Rate: m.Rate("rate", 0, 1, MaxRate), QueueLimit: m.Bytes("queue_limit", 0, 1, ids.Unlimited), Headroom: m.Bytes("headroom", 0, 1, 2*units.GB)}
	m.Computed("lossless")
	if classes := ReadClasses(m, "lossless", 0); m.Has("lossless") {
		p.Lossless = &classes
	}
	return p
}

// ReadClasses reads a list of IEEE 802.1Q priorities as a bit mask.
func ReadClasses(m *yamlnode.Map, key string, def uint8) uint8 {
	classes := m.Ints(key, 0, 7)
	if !m.Has(key) {
		return def
	}
	var mask uint8
	for _, class := range classes {
		if mask>>class&1 != 0 {
			m.Fault(key, "has %d twice", class)
		}
		mask |= 1 << class
	}
	return mask
}

func readTLS(m *yamlnode.Map) TLS {
	m.Need("ca")
	if m.Has("cert") != m.Has("key") {
		m.Fault("", "has only one of cert and key, want both or none")
	}
	return TLS{CA: m.Text("ca", ""), Cert: m.Text("cert", ""), Key: m.Text("key", ""), ServerName: m.Text("server_name", "")}
}
