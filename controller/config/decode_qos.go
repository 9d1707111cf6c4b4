package config

import (
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

func readQoS(m *yamlnode.Map) QoS {
	return QoS{
		Classes:    yamlnode.List(m, "classes", readClass),
		QueueLimit: m.Bytes("queue_limit", maxLimit, 1, maxLimit),
		ECN:        yamlnode.List(m, "ecn", readECN),
	}
}

func readClass(m *yamlnode.Map) Class {
	m.Need("dscp", "class")
	class := m.Int("class", 0, 0, 7)
	return Class{DSCP: readDSCP(m, "dscp", 0), Class: uint8(class), Queue: uint8(m.Int("queue", class, 0, 7))}
}

func readDSCP(m *yamlnode.Map, key string, def int) uint8 { return uint8(m.Int(key, def, 0, 63)) }

func readECN(m *yamlnode.Map) ECN {
	m.Need("queue", "kmin", "kmax", "pmax")
	// The depth key counts cells of 64 bytes in 16 bits, saturating.
	const low, high = 64 * units.Byte, 4 * units.MB
	return ECN{
		Queue: uint8(m.Int("queue", 0, 0, 7)), KMin: m.Bytes("kmin", 0, low, high), KMax: m.Bytes("kmax", 0, low, high),
		PMax: m.Above("pmax", 0, 0, 1),
	}
}
