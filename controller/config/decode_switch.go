package config

import (
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

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
		m.Fault(keyPacketSize, "is %v, but there is no %s; want it with that only", size, keyThrift)
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

// maxPort is the highest port of v1model's nine bits below the CPU port 510 and the drop
// port 511.
const maxPort = ids.CPUPort - 1

func readPort(m *yamlnode.Map) Port {
	m.Need("number")
	return Port{Number: uint32(m.Int("number", 1, 1, maxPort)), Rate: m.Rate("rate", 0, 1, MaxRate), QueueLimit: m.Bytes("queue_limit", 0, 1, ids.Unlimited)}
}

func readTLS(m *yamlnode.Map) TLS {
	m.Need("ca")
	if m.Has("cert") != m.Has("key") {
		m.Fault("", "has only one of cert and key, want both or none")
	}
	return TLS{CA: m.Text("ca", ""), Cert: m.Text("cert", ""), Key: m.Text("key", ""), ServerName: m.Text("server_name", "")}
}
