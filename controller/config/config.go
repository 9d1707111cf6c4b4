// Package config reads the fabric file: the one YAML file that says which switches, hosts
// and links there are and what Headgate shall do with them.
//
// Reading is strict. Unknown keys, wrong kinds, values out of range and contradictions are
// all collected, each with its line and field, and nothing is returned when there is one.
//
// # Units and the time scale
//
// Rates carry a unit (bps, Kbps, Mbps, Gbps) and are what this fabric really runs at. Amounts carry a unit (B, KB =
// 1000 B, KiB = 1024 B, …) and are not scaled. Times of the network (links[].delay) are those of a fabric at line
// rate. Headgate multiplies them by scale, the line rate divided by the rate that the fabric runs at. So every
// product of a rate and a time has the value that the papers print. Times of the controller (controller.*) are
// wall-clock times and are not scaled. For the times of a feature's section, the feature's package says which of
// the two they are (controller/feature/…).
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
	switches  map[string]int // indices of switches by name; nil if the configuration was not read from a file
	hosts     map[string]int
}

// Values returns the value of each key, by path, as yamlnode.Doc.Values does. sections are those that the
// configuration was read with.
func (c *Config) Values(sections ...Section) map[string]string {
	d, err := c.document()
	if err != nil {
		return nil // the configuration was not read from a file
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
	// Read reads the section into a struct. Each key goes into the field of its name, or the field whose tag "key"
	// names it; that field's comment describes the key (package controller/config/reference). If the file lacks the
	// section, m is empty. At this point c holds the whole file except switches and sections.
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
		ReadSwitch: func(m *yamlnode.Map, c *Config) any { return read(m, SectionOf[T](c, key)) },
	}
}

// SectionOf returns the value that the section's Read returned for a configuration, or that its ReadSwitch returned for a
// switch. It returns the zero value if the section was not read.
func SectionOf[T any](from interface{ Section(key string) any }, key string) T {
	v, _ := from.Section(key).(T)
	return v
}

// Section returns the value that a section's Read returned, nil if the section has no Read.
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
	// Target is bmv2, embedded, tofino1 or tofino2; default bmv2. tofino is another name of tofino1.
	Target Target
	// CPUPort is the port that leads to the controller. bmv2 and embedded have 510 and no other, because it is
	// built into the program (BMv2 needs --cpu-port 510). On Tofino each build of the program has its own: 0 … 509,
	// default 320 for tofino1 and 0 for tofino2.
	CPUPort uint32
	// PriorityQueues is the number of queues of a port, 1 … 8; default 8. BMv2 has one unless it is started with
	// --priority-queues. With fewer than 8 the ports are not polled.
	PriorityQueues int
	// Ports are the settings in which ports differ from their links.
	Ports []Port
	// TLS is how to reach the P4Runtime server; plain TCP when empty.
	TLS TLS
	// DeviceConfig is the file with p4c's output for the chip, in the form that its P4Runtime server takes
	// (p4_device_config). It is for Tofino: without the file the controller can drive a chip that already runs the
	// program, but cannot load the program. The other targets' programs are built in.
	DeviceConfig string
	// BFRuntime is host:port of the chip's BF Runtime server, unique. The controller sets the traffic manager
	// through it. It is for Tofino; default none.
	BFRuntime string
	// Thrift is host:port of BMv2's service for queue settings (--thrift-port), unique. The controller sets the rate
	// and depth of the ports' queues through it. It is for bmv2; default none, which leaves the queues as they are.
	Thrift string
	// PacketSize is the assumed length of a packet, because BMv2 paces queues in packets. It is used with Thrift
	// only: 64 … 9216 B, default 1078 B, a full frame of a host agent.
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
	// Rate of the egress in this fabric, > 0; default the link's rate, and at most that.
	Rate units.Rate
	// QueueLimit of each of the port's queues in bytes, ≥ 1; default qos.queue_limit.
	QueueLimit units.Bytes
	// Lossless has the classes that are under PFC at this port: some of the switch's buffer.lossless; default all
	// of them. For a class that is left out, qos.port_maps maps arriving packets to a lossy class, and a PAUSE is
	// ignored. BMv2 obeys no PAUSE at all.
	Lossless *uint8
	// Headroom is Φ of each lossless queue of this port or, with DSH, Φ of the port, 1 B … 2 GB; default the Φ of
	// the switch's section buffer.
	Headroom units.Bytes
}

// TLS names the files that secure the connection to a switch.
type TLS struct {
	// CA is a PEM file of the authorities that may sign the other side's certificate; empty means plain TCP.
	CA string
	// Cert and Key are files with the controller's own certificate, for mutual TLS.
	Cert, Key string
	// ServerName is the name in the switch's certificate; default the host in the switch's address.
	ServerName string
}

// ServerTLS names the files that secure the API.
type ServerTLS struct {
	// Cert and Key are files with the controller's certificate. They are read again for each
	// connection.
	Cert, Key string
	// ClientCA is a PEM file of the authorities that may sign clients' certificates; without it clients identify
	// themselves by tokens.
	ClientCA string
}

// Host is an end host.
type Host struct {
	// Name is unique among switches and hosts. Required.
	Name string
	// IPv4 is the host's unicast address, unique; default none, with IPv6 only.
	IPv4 netip.Addr
	// IPv6 is the host's unicast address, not link-local, unique; default none, with IPv4 only.
	IPv6 netip.Addr
	// MAC is the host's unicast address at layer 2, unique; default 06:00 followed by the four
	// bytes of IPv4, or without it 06:80 followed by the last four of IPv6: a locally administered address.
	MAC [6]byte
	// Bond is how a host with several links uses them; default none: each link is a NIC with a MAC address of its
	// own, at one leaf or at several. All NICs lead to the host's addresses, so the addresses belong on its
	// loopback interface. lag is a static LAG (IEEE 802.1AX without LACP): the links are members with one MAC
	// address at one switch, which hashes flows over the members that are up. mlag is the same with members at two
	// to four switches.
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
	// MAC is the unicast address at layer 2 of the host's NIC at this link, unique; default the host's. At the
	// second, third, … link of a host without bond the default begins with 06:01, 06:02, …, where the host's begins
	// with 06:00 (or 06:81, 06:82, … for 06:80). Not with a bond, whose members share the host's address.
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
	// Listen is host:port of the northbound gRPC API; default 127.0.0.1:9600. It takes TLS; a flag of the command
	// allows plain text (package controller/daemon).
	Listen string
	// Metrics is host:port of the Prometheus endpoint; default 127.0.0.1:9601, "off" for none. The same addresses
	// are allowed as for Listen.
	Metrics string
	// TLS holds the certificates of the API and the metrics; empty for plain text.
	TLS ServerTLS
	// Policy is the file with each caller's rights (package controller/authz). Without it only root and the user
	// that the controller runs as have any rights. Required with TLS.
	Policy string
	// Audit is the file with the whole audit log (package controller/authz/audit); "off" for none. Default: the
	// name of State with .audit appended; none without State.
	Audit string
	// Files are the folders that hold the files which a configuration names: Policy and the files that it names,
	// those of TLS, and each switch's device_config and tls. Other files are not read. Default: the folder of the
	// file that the controller was started with.
	Files []string
	// ElectionID is the P4Runtime election id, 1 … 2^63−1; default 1. Two controllers of one fabric need two ids.
	// The one with the higher id is primary at first. When it is gone, the other one bids a higher id and becomes
	// primary. It stays primary after the first has come back, until its own session ends (P4Runtime 1.4, §5).
	ElectionID uint64
	// State is the file of the state store; empty keeps the state in memory. In a cluster it is the data folder of
	// this member's etcd.
	State string
	// Cluster makes several controllers one; without members the controller is alone.
	Cluster Cluster
	// PollInterval is how often each port is polled, 1 ms … 1 h; default 100 ms; "off" for never.
	PollInterval time.Duration
	// ProbeInterval is how often each link between switches is probed, 10 ms … 1 h;
	// default 300 ms; "off" for never.
	ProbeInterval time.Duration
	// ProbeTimeout is how long a link may stay without a probe before routes avoid it, at least two probe
	// intervals, ≤ 1 h; default three probe intervals, at least 900 ms. Three times 300 ms are the defaults of
	// FRR's bfdd (detect-multiplier of RFC 5880, §6.8.4). Ports that lose their carrier need no probe: the switch
	// leaves them out at once by watch ports, and switches that serve gNMI report them. Probes find links that fail
	// with the carrier up. Each probe costs the controller a packet out and a packet in, for each link and
	// direction.
	ProbeTimeout time.Duration
	// FlapHold is how long a link that went down a second time stays out of the routes after its probes have come
	// back, 10 ms … 1 h; default 1 s; "off" for no time. It doubles with each further failure up to FlapHoldMax,
	// FlapHold … 24 h, default 1 min. A link that has been up for FlapHoldMax starts again with FlapHold. Each
	// change of a link's state costs a write to every switch, and the packets in flight.
	FlapHold, FlapHoldMax time.Duration
	// UnreachableAfter is how long a switch may be out of reach before routes avoid it, 100 ms … 24 h; default 5 s;
	// "off" for never. If the target is bmv2 or embedded and nothing listens at its address, the switch is avoided
	// at once, because its process has ended.
	UnreachableAfter time.Duration
	// ResyncInterval is how often the entries of a ready switch are read and compared again, 1 s … 24 h; default 60
	// s; "off" for never. Switches are compared one after the other. After each comparison the controller rests for
	// 99 times as long as it took, so switches of large fabrics are compared less often.
	ResyncInterval time.Duration
	// Comparisons is how many switches are read and compared in full at one time, to synchronise them or for a
	// plan, 1 … 1000; default 16. A change of routes does not count, because it is written without reading.
	Comparisons int
}

// Comparisons is the default of Controller.Comparisons.
const Comparisons = 16

// Cluster is what all controllers of a cluster have in common (package controller/state/cluster).
type Cluster struct {
	// Members are the controllers: 1, 3, 5 or 7.
	Members []Member
	// Etcd are the URLs of an external etcd; empty runs etcd in the members' own processes.
	Etcd []string
	// Lease is how long a leader that no longer renews its lease stays the leader, 2 s … 1 min in whole seconds;
	// default 2 s.
	Lease time.Duration
	// TLS secures the connections between members and to an external etcd. Certificates must be valid for both
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

// Dirs returns the folders that may hold the files which the configuration names (Controller.Files).
func (c *Config) Dirs() []string {
	if len(c.Controller.Files) > 0 {
		return c.Controller.Files
	}
	return []string{filepath.Dir(c.File)}
}

// Scaled converts a time of the network from line rate to this fabric: it multiplies t by Scale. Times that would
// exceed units.MaxTime are refused when the file is read.
func (c *Config) Scaled(t units.Time) units.Time { return t * units.Time(c.Scale) }

// Fits reports whether Scaled can multiply a time, leaving room for sums of a few such times.
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

// named returns the element of that name. It uses the index of all names unless that is nil.
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

// index fills the maps from names to indices. If two elements have the same name, the map has the first.
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

// Origin returns the path from which a switch gets a key such as buffer.size. This is the switch's own section if
// it has the key, or if the fabric has no such section. Otherwise it is the fabric's section.
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

// Port returns the file's settings of a port; if there are none, a Port with only its number.
func (s *Switch) Port(number uint32) Port {
	for _, p := range s.Ports {
		if p.Number == number {
			return p
		}
	}
	return Port{Number: number}
}
