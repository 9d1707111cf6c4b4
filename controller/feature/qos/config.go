package qos

import (
	"fmt"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// Config is the section qos: what every switch does with classes, queues and marks.
type Config struct {
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

// Of returns the section of a configuration.
func Of(c *config.Config) Config { return config.Of[Config](c, "qos") }

// ClassOf returns what packets of a DSCP get.
func (q Config) ClassOf(dscp uint8) Class {
	for _, k := range q.Classes {
		if k.DSCP == dscp {
			return k
		}
	}
	return Class{DSCP: dscp}
}

// read is config.Section.Read.
func read(m *yamlnode.Map, _ *config.Config) any {
	return Config{
		Classes:    yamlnode.List(m, "classes", readClass),
		QueueLimit: m.Bytes("queue_limit", ids.Unlimited, 1, ids.Unlimited),
		ECN:        yamlnode.List(m, "ecn", readECN),
	}
}

func readClass(m *yamlnode.Map) Class {
	m.Need("dscp", "class")
	m.Computed("queue")
	class := m.Int("class", 0, 0, 7)
	return Class{DSCP: uint8(m.Int("dscp", 0, 0, 63)), Class: uint8(class), Queue: uint8(m.Int("queue", class, 0, 7))}
}

func readECN(m *yamlnode.Map) ECN {
	m.Need("queue", "kmin", "kmax", "pmax")
	// The depth key counts cells of 64 bytes in 16 bits, saturating.
	const low, high = 64 * units.Byte, 4 * units.MB
	return ECN{
		Queue: uint8(m.Int("queue", 0, 0, 7)), KMin: m.Bytes("kmin", 0, low, high), KMax: m.Bytes("kmax", 0, low, high),
		PMax: m.Above("pmax", 0, 0, 1),
	}
}

// check is config.Section.Check: it holds the section against the queues of the switches.
func check(c *config.Config, d *yamlnode.Doc) {
	fewest := c.Switches[0]
	for _, s := range c.Switches {
		if s.PriorityQueues < fewest.PriorityQueues {
			fewest = s
		}
	}
	queue := func(path string, q uint8) {
		if most := fewest.PriorityQueues; int(q) >= most {
			d.Fault(path, "is %d, but the switch %q has %d priority queues, want 0 to %d", q, fewest.Name, most, most-1)
		}
	}
	dscps, queues := yamlnode.Unique[uint8]{}, yamlnode.Unique[uint8]{}
	for i, k := range Of(c).Classes {
		path := fmt.Sprintf("qos.classes[%d]", i)
		dscps.Use(d, k.DSCP, path+".dscp", fmt.Sprint(k.DSCP))
		queue(path+".queue", k.Queue)
	}
	for i, e := range Of(c).ECN {
		path := fmt.Sprintf("qos.ecn[%d]", i)
		queues.Use(d, e.Queue, path+".queue", fmt.Sprint(e.Queue))
		queue(path+".queue", e.Queue)
		if e.KMin >= e.KMax {
			d.Fault(path+".kmin", "is %v, want less than kmax, which is %v", e.KMin, e.KMax)
		}
	}
}
