// Package config reads the fabric file: the one YAML file that says which switches, hosts
// and links there are and what Headgate shall do with them.
//
// Reading is strict. Unknown keys, wrong kinds, values out of range and contradictions are
// all collected, each with its line and field, and nothing is returned when there is one.
//
// # Units and the time scale
//
// Rates carry a unit (bps, Kbps, Mbps, Gbps) and are what this fabric really runs at.
// Amounts carry a unit (B, KB = 1000 B, KiB = 1024 B, …) and are as the papers print them.
// Times of the network (links[].delay) are as for a fabric at line rate;
// Headgate multiplies them by scale, which is the line rate divided by the rate that the
// fabric runs at, so that every product of rate and time stays what it is in the papers.
// Times of the controller (controller.*) are wall-clock times and are not scaled. Features
// say of their sections' times which they are (packages controller/feature/…).
package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

// Config is a fabric file without faults. It is immutable once returned.
type Config struct {
	// Name of the fabric: a word of letters, digits, '-', '_' and '.'. Required.
	Name string
	// Scale is line rate / emulated rate, 1 … 1 000 000; default 1 (a fabric at line rate).
	Scale int64
	// Switches of the fabric, at least one.
	Switches []Switch
	// Hosts of the fabric; each stands at the end of one link or more.
	Hosts []Host
	// Links between two switches, or a switch and a host.
	Links []Link
	// Applications have budgets for the sum of their flows' weights. When there are any, only
	// these get weights; flows that name no application are those of "default".
	Applications []Application
	// Controller configures the daemon itself.
	Controller Controller

	// Source is the text that the configuration was read from, before overrides.
	Source []byte
	// File is the name it was read from, for messages.
	File string

	lines     yamlnode.Lines
	overrides []override
	sections  map[string]any
	switches  map[string]int // by name; nil if the configuration was not read from a file
	hosts     map[string]int
}

// Values returns the value of each key, by path, as yamlnode.Doc.Values does. sections are those that the
// configuration was read with.
func (c *Config) Values(sections ...Section) map[string]string {
	d, err := c.document()
	if err != nil {
		return nil // of a configuration that was not read from a file
	}
	return d.Values(func(d *yamlnode.Doc) { read(d, sections) })
}

// document parses the source again, with its overrides.
func (c *Config) document() (*yamlnode.Doc, error) {
	d, err := yamlnode.Parse(c.File, c.Source)
	if err != nil {
		return nil, err
	}
	for _, o := range c.overrides {
		d.Set(o.path, o.value, o.origin)
	}
	return d, nil
}

// Section is a part of the file that a feature owns.
type Section struct {
	// Key is the section's key in the file.
	Key string
	// Read reads the section into a struct, each key into a field of its name or with a tag key that has it, whose
	// comment describes it (package controller/config/reference). If the file has none, m is empty. At this point c
	// has all parts of the file but switches and sections.
	Read func(m *yamlnode.Map, c *Config) any
	// ReadSwitch reads a switch's own section; if the switch has none, m is empty. c has the fabric's section.
	// ReadSwitch is nil if switches cannot have the section.
	ReadSwitch func(m *yamlnode.Map, c *Config) any
	// Check finds contradictions to the rest of the file. At this point c is complete, and both ends of each link are
	// known. A nil Check finds none.
	Check func(c *Config, d *yamlnode.Doc)
}

// Overridable returns a section whose keys a switch may override. read returns over with the keys of m replaced; for
// the fabric, over is the result of defaults.
func Overridable[T any](key string, defaults func(c *Config) T, read func(m *yamlnode.Map, over T) T) Section {
	return Section{
		Key:        key,
		Read:       func(m *yamlnode.Map, c *Config) any { return read(m, defaults(c)) },
		ReadSwitch: func(m *yamlnode.Map, c *Config) any { return read(m, Of[T](c, key)) },
	}
}

// Of returns the value that a section's Read returned for a configuration, or its ReadSwitch for a switch. It returns
// the zero value if the section was not read.
func Of[T any](from interface{ Section(key string) any }, key string) T {
	v, _ := from.Section(key).(T)
	return v
}

// Section returns the value that a section's Read returned, nil without a reader.
func (c *Config) Section(key string) any { return c.sections[key] }

// Switch is one switch.
type Switch struct {
	// Name is unique among switches and hosts. Required.
	Name string
	// DeviceID is P4Runtime's device_id, 0 … 16 777 215, unique. Required. The bound is
	// Headgate's: port MAC addresses hold 24 bits of it.
	DeviceID uint64
	// Address is host:port of the P4Runtime server, unique. Required.
	Address string
	// Target is bmv2, embedded, tofino1 or tofino2; default bmv2. tofino means tofino1.
	Target Target
	// CPUPort is the port that leads to the controller. bmv2 and embedded have 510 and no
	// other, which is built into the program (BMv2 needs --cpu-port 510). Tofino's is built
	// in too, but another build may have another: 0 … 509, default 320 for tofino1 and 0 for
	// tofino2.
	CPUPort uint32
	// PriorityQueues is the number of queues of a port, 1 … 8; default 8. BMv2 has one
	// unless it is started with --priority-queues. With less than 8 there are no polls.
	PriorityQueues int
	// Ports are the settings in which ports differ from their links.
	Ports []Port
	// TLS is how to reach the P4Runtime server; plain TCP when empty.
	TLS TLS
	// DeviceConfig is the file with what p4c compiled for the chip, as its P4Runtime server
	// takes it (p4_device_config). It is for Tofino, which without it can be driven, but not
	// be given the program; the other targets run what is built in.
	DeviceConfig string
	// BFRuntime is host:port of the chip's BF Runtime server, unique; by it the controller
	// sets the traffic manager. It is for Tofino; default none.
	BFRuntime string
	// Thrift is host:port of that service of BMv2 (--thrift-port), unique; by it the
	// controller sets rate and depth of the ports' queues. It is for bmv2; default none, which
	// leaves the queues as they are.
	Thrift string
	// PacketSize is what a packet is taken for, since BMv2 paces queues in packets, with
	// Thrift alone: 64 … 9216 B, default 1078 B, a full frame of a host agent.
	PacketSize units.Bytes

	sections map[string]any
}

// Section returns the value that a section's ReadSwitch returned for the switch; nil if the section was not read.
func (s *Switch) Section(key string) any { return s.sections[key] }

// Framed is implemented by values of sections that bound the length of a switch's frames.
type Framed interface {
	// LargestFrame returns the largest frame; ok is false if the section sets none.
	LargestFrame() (most units.Bytes, ok bool)
}

// LargestFrame returns the largest frame that the switch is configured for; ok is false if no section sets one.
func (s *Switch) LargestFrame() (most units.Bytes, ok bool) {
	for _, v := range s.sections {
		if f, framed := v.(Framed); framed {
			return f.LargestFrame()
		}
	}
	return 0, false
}

// TrafficManager returns the key that leads to the traffic manager's server and its value,
// host:port; both are empty for a switch without one.
func (s *Switch) TrafficManager() (key, address string) {
	switch {
	case s.BFRuntime != "":
		return keyBFRuntime, s.BFRuntime
	case s.Thrift != "":
		return keyThrift, s.Thrift
	}
	return "", ""
}

// Port sets what differs from the default on one port of a switch.
type Port struct {
	// Number is the port's number, 1 … 509; a link must use it. Required.
	Number uint32
	// Rate of the egress in this fabric, > 0; default the link's. At most the link's.
	Rate units.Rate
	// QueueLimit of each of the port's queues in bytes, ≥ 1; default qos.queue_limit.
	QueueLimit units.Bytes
	// Lossless has the classes that are under PFC at this port, of those of the switch's buffer.lossless; default all
	// of them. What comes in with a DSCP of another one is mapped to a lossy class by qos.port_maps, and a PAUSE of
	// another one is ignored. Targets: bmv2, which obeys no PAUSE, and embedded.
	Lossless *uint8
	// Headroom is Φ of each lossless queue of this port or, with DSH, of the port, 1 B … 2 GB; default that of the switch's
	// section buffer.
	Headroom units.Bytes
}

// TLS names the files that secure the connection to a switch.
type TLS struct {
	// CA is a file of PEM certificates that may sign the other side's; empty means plain TCP.
	CA string
	// Cert and Key are files with the controller's own certificate, for mutual TLS.
	Cert, Key string
	// ServerName is the name in the switch's certificate; default the host in its address.
	ServerName string
}

// ServerTLS names the files that secure the API.
type ServerTLS struct {
	// Cert and Key are files with the controller's certificate. They are read again for each
	// connection.
	Cert, Key string
	// ClientCA is a file of PEM certificates that may sign clients'; without it clients have
	// tokens.
	ClientCA string
}

// Host is an end host.
type Host struct {
	// Name is unique among switches and hosts. Required.
	Name string
	// IPv4 is the host's unicast address, unique; default none, with IPv6 only.
	IPv4 netip.Addr
	// IPv6 is the host's unicast address, not link-local, unique; default none, with IPv4 only. Targets: bmv2 and
	// embedded.
	IPv6 netip.Addr
	// MAC is the host's unicast address at layer 2, unique; default 06:00 followed by the four
	// bytes of IPv4, or without it 06:80 followed by the last four of IPv6: a locally administered address.
	MAC [6]byte
	// Bond is how a host with several links uses them; default none: each link is a NIC with a MAC address of its own,
	// at one leaf or at several, and the host's addresses are reached by all of them, so that they belong on
	// its loopback interface. lag is a static LAG (IEEE 802.1AX without LACP): the links are members with one MAC
	// address, at one switch, which hashes flows over those that are up. mlag is the same with
	// members at two to four switches.
	Bond string
}

// Addresses returns the host's IP addresses, IPv4 first.
func (h *Host) Addresses() []netip.Addr {
	return slices.DeleteFunc([]netip.Addr{h.IPv4, h.IPv6}, func(a netip.Addr) bool { return !a.IsValid() })
}

// defaultMAC returns the default MAC address of the host's NIC n; zero for a host without an IP address.
func (h *Host) defaultMAC(n int) [6]byte {
	switch {
	case h.IPv4.IsValid():
		a := h.IPv4.As4()
		return [6]byte{0x06, byte(n), a[0], a[1], a[2], a[3]}
	case h.IPv6.IsValid():
		a := h.IPv6.As16()
		return [6]byte{0x06, 0x80 + byte(n), a[12], a[13], a[14], a[15]}
	}
	return [6]byte{}
}

// Endpoint is one end of a link.
type Endpoint struct {
	Node string
	Port uint32 // 0 at a host
}

// Link joins two ports.
type Link struct {
	// Name is unique among links; default "A-B", its ends as written.
	Name string
	// A and B are "switch:port" or a host's name. Required. A host may only be at one end, and may have
	// several links (hosts.bond).
	A, B Endpoint
	// Rate in this fabric, the same in both directions, > 0. Required.
	Rate units.Rate
	// Delay is the one-way propagation delay at line rate, 0 … 1 s; default 0.
	Delay units.Time
	// MAC is the unicast address at layer 2 of the host's NIC at this link, unique; default the host's, and at
	// the further links of a host without bond 06:01, 06:02 and so on followed by the four bytes of IPv4, or 06:81 and so on
	// as the host's. Not with
	// a bond, whose members share the host's.
	MAC [6]byte
}

// Application has a budget of weight.
type Application struct {
	// Name is unique. Required.
	Name string
	// Budget is the largest sum of its flows' weights, > 0 and finite. Required.
	Budget float64
}

// Controller configures the daemon. Each key may be overridden by the environment, for
// example HEADGATE_CONTROLLER_LISTEN, and the addresses by flags.
type Controller struct {
	// Listen is host:port of the northbound gRPC API; default 127.0.0.1:9600. It takes TLS; what
	// goes without is the command line's to say (package controller/daemon).
	Listen string
	// Metrics is host:port of the Prometheus endpoint; default 127.0.0.1:9601, "off" for none.
	// Its values are those of Listen.
	Metrics string
	// TLS holds the certificates of the API and the metrics; empty for plain text.
	TLS ServerTLS
	// Policy is the file with each caller's rights (package controller/authz). Without it only
	// the user that the controller runs as, and root, may do anything. Required with TLS.
	Policy string
	// Audit is the file with the whole audit log (package controller/authz/audit); "off" for none.
	// Default: the name of State with .audit behind it, and none without State.
	Audit string
	// Files are the folders below which files are read that a configuration names: Policy and
	// what it names, those of TLS, and of each switch device_config and tls. Default: the folder of
	// the file that the controller was started with.
	Files []string
	// ElectionID is the P4Runtime election id, 1 … 2^63−1; default 1. Two controllers of one
	// fabric need two ids. The one with the higher id is primary at first. When it is gone the
	// other bids above it and keeps the switches when it comes back, until its own session ends:
	// a return is no reason to take switches from a controller that works (P4Runtime 1.4, §5).
	ElectionID uint64
	// State is the file of the state store; empty keeps the state in memory. In a cluster it is the
	// folder of this member's etcd.
	State string
	// Cluster makes several controllers one; without members the controller is alone.
	Cluster Cluster
	// PollInterval is how often each port is polled, 1 ms … 1 h; default 100 ms; "off" for never.
	PollInterval time.Duration
	// ProbeInterval is how often each link between switches is probed, 10 ms … 1 h;
	// default 300 ms; "off" for never.
	ProbeInterval time.Duration
	// ProbeTimeout is how long a link may stay without a probe before routes avoid it,
	// at least two probe intervals, ≤ 1 h; default three probe intervals, at least 900 ms. Three
	// times 300 ms are what FRR's bfdd starts with (detect-multiplier of RFC 5880, §6.8.4). Ports
	// that lose their carrier are left out by the switch itself, at once, by watch ports, and told of
	// by switches that serve gNMI; probes find what no carrier shows. More than that costs the controller a packet out and in for
	// each link and direction.
	ProbeTimeout time.Duration
	// FlapHold is how long a link that went down a second time stays out of the routes after its
	// probes have come back, 10 ms … 1 h; default 1 s; "off" for no time. It doubles each time up
	// to FlapHoldMax, FlapHold … 24 h, default 1 min; a link that was up for as long begins anew.
	// Each turn of a link costs a write to every switch, and packets on their way.
	FlapHold, FlapHoldMax time.Duration
	// UnreachableAfter is how long a switch may be out of reach before routes avoid it,
	// 100 ms … 24 h; default 5 s; "off" for never. One of BMv2 or the embedded switch at whose
	// address nothing listens is avoided at once: its process has ended.
	UnreachableAfter time.Duration
	// ResyncInterval is how often a switch that is ready is read and compared again,
	// 1 s … 24 h; default 60 s; "off" for never. Such comparisons come one after the other, with a
	// rest of 99 times as long after each, so that large fabrics are compared less often.
	ResyncInterval time.Duration
	// Comparisons is how many switches are read and compared in full at one time, to be brought in line
	// or for a plan, 1 … 1000; default 16. A change of routes reads nothing, and is written at once.
	Comparisons int
}

// Comparisons is the default of Controller.Comparisons.
const Comparisons = 16

// Cluster is what all controllers of a cluster have in common (package controller/state/cluster).
type Cluster struct {
	// Members are the controllers: 1, 3, 5 or 7.
	Members []Member
	// Etcd are the URLs of an etcd that others run; empty for one in the members' own processes.
	Etcd []string
	// Lease is how long a leader that is not heard of stays the leader, 2 s … 1 min in whole
	// seconds; default 2 s.
	Lease time.Duration
	// TLS is what members, and an etcd that others run, are reached with. Certificates must be good for
	// clients and servers. Without it all addresses must be on loopback.
	TLS TLS
}

// Member is a controller of a cluster.
type Member struct {
	// Name is unique; a controller is told which one it is by --member.
	Name string
	// Raft is host:port of the member's etcd, for the other members; not used with controller.cluster.etcd.
	Raft string
	// Relay is host:port at which the member takes calls from the others while it leads.
	Relay string
}

// MinLease is the shortest lease that etcd grants with its default timing.
const MinLease = 2 * time.Second

// Dirs are the folders below which files are read that the configuration names (Controller.Files).
func (c *Config) Dirs() []string {
	if len(c.Controller.Files) > 0 {
		return c.Controller.Files
	}
	return []string{filepath.Dir(c.File)}
}

// Scaled returns a time of the network as it is in this fabric: multiplied by Scale.
// Times that would exceed units.MaxTime are refused when the file is read.
func (c *Config) Scaled(t units.Time) units.Time { return t * units.Time(c.Scale) }

// Fits reports whether Scaled can multiply a time, with room for sums of some such times.
func (c *Config) Fits(t units.Time) bool { return mulFits(int64(t), c.Scale*64) }

// LineRate returns the line rate that corresponds to a rate of this fabric; false on overflow.
func (c *Config) LineRate(rate units.Rate) (units.Rate, bool) {
	return rate * units.Rate(c.Scale), mulFits(int64(rate), c.Scale)
}

// HostRates returns the rates of the slowest and of the fastest link of a host, 1 Gb/s without hosts.
func (c *Config) HostRates() (slowest, fastest units.Rate) {
	for _, l := range c.Links {
		if l.A.Port == 0 || l.B.Port == 0 {
			slowest, fastest = min(cmp.Or(slowest, l.Rate), l.Rate), max(fastest, l.Rate)
		}
	}
	return cmp.Or(slowest, units.Gbps), cmp.Or(fastest, units.Gbps)
}

// Switch returns the switch of that name, nil when there is none.
func (c *Config) Switch(name string) *Switch {
	return named(c.Switches, c.switches, name, func(s Switch) string { return s.Name })
}

// named returns the element with a name, by an index of all names where there is one.
func named[T any](list []T, index map[string]int, name string, of func(T) string) *T {
	i, ok := index[name]
	if index == nil {
		i = slices.IndexFunc(list, func(v T) bool { return of(v) == name })
		ok = i >= 0
	}
	if !ok {
		return nil
	}
	return &list[i]
}

// index makes the indices of names. If two elements have one name, it has the first.
func (c *Config) index() {
	c.switches, c.hosts = make(map[string]int, len(c.Switches)), make(map[string]int, len(c.Hosts))
	for i := range slices.Backward(c.Switches) {
		c.switches[c.Switches[i].Name] = i
	}
	for i := range slices.Backward(c.Hosts) {
		c.hosts[c.Hosts[i].Name] = i
	}
}

// Path returns the path of a switch in the file, such as switches[2].
func (c *Config) Path(s *Switch) string {
	i := slices.IndexFunc(c.Switches, func(o Switch) bool { return o.Name == s.Name })
	return fmt.Sprintf("switches[%d]", i)
}

// Origin returns the path from which a switch gets a key such as buffer.size. This is the switch's own section if it
// has the key or the fabric has no such section, else the fabric's section.
func (c *Config) Origin(s *Switch, key string) string {
	section, _, _ := strings.Cut(key, ".")
	if own := c.Path(s) + "." + key; c.Given(own) || c.Given(c.Path(s)+"."+section) && !c.Given(section) {
		return own
	}
	return key
}

// Host returns the host of that name, nil when there is none.
func (c *Config) Host(name string) *Host {
	return named(c.Hosts, c.hosts, name, func(h Host) string { return h.Name })
}

// Port returns the file's settings of a port; a Port with its number alone if there are none.
func (s *Switch) Port(number uint32) Port {
	for _, p := range s.Ports {
		if p.Number == number {
			return p
		}
	}
	return Port{Number: number}
}
