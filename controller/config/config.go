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
// Times of the network (links[].delay, soze.p, soze.k, pacc.interval, pacc.cnp_gap,
// buffer.dsh.window, buffer.spfc.period, those of prioplus) are as for a fabric at line rate;
// Headgate multiplies them by scale, which is the line rate divided by the rate that the
// fabric runs at, so that every product of rate and time stays what it is in the papers.
// Times of the controller (controller.*, buffer.watchdog.*, pacc.ageing) are wall-clock times and are
// not scaled.
package config

import (
	"net/netip"
	"time"

	"github.com/headgate/headgate/units"
)

// Config is a fabric file that was found free of faults. It is immutable once returned.
type Config struct {
	// Name of the fabric: a word of letters, digits, '-', '_' and '.'. Required.
	Name string
	// Scale is line rate / emulated rate, 1 … 1 000 000; default 1 (a fabric at line rate).
	Scale int64
	// Switches of the fabric, at least one.
	Switches []Switch
	// Hosts of the fabric; each stands at the end of exactly one link.
	Hosts []Host
	// Links between two switches, or a switch and a host.
	Links []Link
	// QoS is what every switch does with classes, queues and marks.
	QoS QoS
	// Soze holds the parameters of Söze's law and of its maxQD header.
	Soze Soze
	// Buffer is the buffer policy of switches that have no section of their own.
	Buffer Buffer
	// PACC sends congestion notifications from switches.
	PACC PACC
	// PrioPlus divides delays into virtual priorities.
	PrioPlus PrioPlus
	// Applications have budgets for the sum of their flows' weights.
	Applications []Application
	// Controller configures the daemon itself.
	Controller Controller

	// Source is the text that the configuration was read from, before overrides.
	Source []byte
	// File is the name it was read from, for messages.
	File string

	lines map[string]int
}

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
	// Ports sets what differs from a port's link.
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
	// Buffer is the switch's buffer policy: the fabric's, with what the switch overrides.
	Buffer Buffer
}

// Port sets what differs from the default on one port of a switch.
type Port struct {
	// Number is the port's number, 1 … 509; a link must use it. Required.
	Number uint32
	// Rate of the egress in this fabric, > 0; default the link's. At most the link's.
	Rate units.Rate
	// QueueLimit of each of the port's queues in bytes, ≥ 1; default qos.queue_limit.
	QueueLimit units.Bytes
}

// TLS names the files that secure the connection to a switch.
type TLS struct {
	// CA is a file of PEM certificates that may sign the switch's; empty means plain TCP.
	CA string
	// Cert and Key are files with the controller's own certificate, for mutual TLS.
	Cert, Key string
	// ServerName is the name in the switch's certificate; default the host in its address.
	ServerName string
}

// Host is an end host.
type Host struct {
	// Name is unique among switches and hosts. Required.
	Name string
	// IPv4 is the host's unicast address, unique. Required.
	IPv4 netip.Addr
	// MAC is the host's unicast MAC address, unique; default 06:00 followed by the four
	// bytes of IPv4, a locally administered address.
	MAC [6]byte
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
	// A and B are "switch:port" or a host's name. Required. A host may only be at one end.
	A, B Endpoint
	// Rate in this fabric, the same in both directions, > 0. Required.
	Rate units.Rate
	// Delay is the one-way propagation delay at line rate, 0 … 1 s; default 0.
	Delay units.Time
}

// QoS is what every switch does with classes, queues and marks.
type QoS struct {
	// Classes maps DSCP to class and queue. A DSCP not listed has class 0 and queue 0.
	Classes []Class
	// QueueLimit is the most that a queue of a port may hold in bytes, 1 B … 4 GB;
	// default 4294967295 B, which is no limit.
	QueueLimit units.Bytes
	// ECN marks by RED in some queues; none by default.
	ECN []ECN
}

// Class maps one DSCP.
type Class struct {
	// DSCP is the IPv4 field of RFC 2474, 0 … 63, each at most once. Required.
	DSCP uint8
	// Class is the priority of IEEE 802.1Q that PFC would use, 0 … 7. Required.
	Class uint8
	// Queue is the priority queue, 0 (lowest) … 7, less than priority_queues of every
	// switch; default the class.
	Queue uint8
}

// ECN is RED on one queue with DCQCN's parameters.
type ECN struct {
	// Queue is the priority queue, 0 … 7, each at most once. Required.
	Queue uint8
	// KMin and KMax bound the depth between which the probability rises from 0 to PMax;
	// 64 B ≤ KMin < KMax ≤ 4 MB. Above KMax every packet is marked. Required.
	KMin, KMax units.Bytes
	// PMax is the probability at KMax, 0 < PMax ≤ 1. Required.
	PMax float64
}

// Soze holds the parameters of SYSTEMS.md §4.
type Soze struct {
	// P is the least target queueing delay at line rate, 1 ns … 1 s; default 3 µs.
	P units.Time
	// K is the range above P, 1 ns … 1 s; default 37 µs.
	K units.Time
	// Alpha is the highest expected rate per unit of weight in this fabric, > Beta;
	// default the rate of the fastest host link.
	Alpha units.Rate
	// Beta is the lowest expected rate per unit of weight, > 0; default Alpha / 1000.
	Beta units.Rate
	// M is the exponent of the update per round-trip time, 0 < M < 2; default 0.2.
	M float64
	// Shift sets the unit of the maxQD header: 2^Shift µs of the switch's clock, 0 … 16;
	// by default the least that lets the header hold four times scale·(P + K).
	Shift uint8
	// DSCP of Söze's data packets, 0 … 63; default 0.
	DSCP uint8
	// AckDSCP of acknowledgements, 0 … 63; default 48 (CS6).
	AckDSCP uint8
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
	// Listen is host:port of the northbound gRPC API; default 127.0.0.1:9600.
	Listen string
	// Metrics is host:port of the Prometheus endpoint; default 127.0.0.1:9601, "off" for none.
	Metrics string
	// ElectionID is the P4Runtime election id, 1 … 2^63−1; default 1. Two controllers of one
	// fabric need two ids; the higher one is primary.
	ElectionID uint64
	// State is the file of the state store; empty keeps the state in memory.
	State string
	// PollInterval is how often each port is polled, 1 ms … 1 h; default 100 ms; "off" for never.
	PollInterval time.Duration
	// ProbeInterval is how often each link between switches is probed, 10 ms … 1 h;
	// default 500 ms; "off" for never.
	ProbeInterval time.Duration
	// ProbeTimeout is how long a link may stay without a probe before routes avoid it,
	// at least two probe intervals, ≤ 1 h; default 3 s or six probe intervals if longer.
	ProbeTimeout time.Duration
	// UnreachableAfter is how long a switch may be out of reach before routes avoid it,
	// 100 ms … 24 h; default 5 s; "off" for never.
	UnreachableAfter time.Duration
	// ResyncInterval is how often a switch that is ready is read and compared again,
	// 1 s … 24 h; default 60 s; "off" for never.
	ResyncInterval time.Duration
}

// Scaled returns a time of the network as it is in this fabric: multiplied by Scale.
// Times that would exceed units.MaxTime are refused when the file is read.
func (c *Config) Scaled(t units.Time) units.Time { return t * units.Time(c.Scale) }

// Switch returns the switch of that name, nil when there is none.
func (c *Config) Switch(name string) *Switch {
	for i := range c.Switches {
		if c.Switches[i].Name == name {
			return &c.Switches[i]
		}
	}
	return nil
}

// Host returns the host of that name, nil when there is none.
func (c *Config) Host(name string) *Host {
	for i := range c.Hosts {
		if c.Hosts[i].Name == name {
			return &c.Hosts[i]
		}
	}
	return nil
}

// Port returns what the file sets for a port; the zero Port with its number when nothing.
func (s *Switch) Port(number uint32) Port {
	for _, p := range s.Ports {
		if p.Number == number {
			return p
		}
	}
	return Port{Number: number}
}
