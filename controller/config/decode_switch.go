package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// readSwitch reads a switch but for its buffer, which it hands on.
func readSwitch(d *decoder, n *yaml.Node, path string, buffer func(n *yaml.Node, path string)) Switch {
	s := Switch{Target: BMv2, PriorityQueues: 8}
	var cpu *yaml.Node // what it may be depends on the target
	d.object(n, path, []field{
		{"name", true, func(n *yaml.Node, p string) { s.Name = d.word(n, p) }},
		{"device_id", true, func(n *yaml.Node, p string) { s.DeviceID = d.uint(n, p, 0, 1<<24-1) }},
		{"address", true, func(n *yaml.Node, p string) { s.Address = d.hostPort(n, p) }},
		{"target", false, func(n *yaml.Node, p string) {
			s.Target = Target(d.text(n, p, wantTarget))
			switch s.Target {
			case BMv2, Embedded, Tofino1, Tofino2:
			case tofinoAlias:
				s.Target = Tofino1
			default:
				if s.Target != "" {
					d.add(n.Line, p, "is %q, want %s", clip(string(s.Target)), wantTarget)
				}
				s.Target = BMv2
			}
		}},
		{"cpu_port", false, func(n *yaml.Node, _ string) { cpu = n }},
		{"device_config", false, func(n *yaml.Node, p string) { s.DeviceConfig = d.text(n, p, "a file name") }},
		{"bf_runtime", false, func(n *yaml.Node, p string) { s.BFRuntime = d.hostPort(n, p) }},
		{"priority_queues", false, func(n *yaml.Node, p string) { s.PriorityQueues = int(d.uint(n, p, 1, 8)) }},
		{"ports", false, func(n *yaml.Node, p string) {
			d.list(n, p, func(n *yaml.Node, p string) { s.Ports = append(s.Ports, readPort(d, n, p)) })
		}},
		{"tls", false, func(n *yaml.Node, p string) { s.TLS = readTLS(d, n, p) }},
		{"buffer", false, buffer},
	})
	s.CPUPort = s.Target.cpuPort()
	if cpu != nil {
		low, high := s.Target.cpuPorts()
		s.CPUPort = uint32(d.uint(cpu, join(path, "cpu_port"), low, high))
	}
	return s
}

// maxPort is the highest port of v1model's nine bits below the CPU port 510 and the drop
// port 511.
const maxPort = ids.CPUPort - 1

// maxLimit is the most that set_queue_limit's 32 bits hold.
const maxLimit units.Bytes = ids.Unlimited

func readPort(d *decoder, n *yaml.Node, path string) Port {
	var v Port
	d.object(n, path, []field{
		{"number", true, func(n *yaml.Node, p string) { v.Number = uint32(d.uint(n, p, 1, maxPort)) }},
		{"rate", false, func(n *yaml.Node, p string) { v.Rate = d.rate(n, p) }},
		{"queue_limit", false, func(n *yaml.Node, p string) { v.QueueLimit = d.bytes(n, p, 1, maxLimit) }},
	})
	return v
}

func readTLS(d *decoder, n *yaml.Node, path string) TLS {
	var v TLS
	d.object(n, path, []field{
		{"ca", true, func(n *yaml.Node, p string) { v.CA = d.text(n, p, "a file name") }},
		{"cert", false, func(n *yaml.Node, p string) { v.Cert = d.text(n, p, "a file name") }},
		{"key", false, func(n *yaml.Node, p string) { v.Key = d.text(n, p, "a file name") }},
		{"server_name", false, func(n *yaml.Node, p string) { v.ServerName = d.text(n, p, "a DNS name") }},
	})
	if (v.Cert == "") != (v.Key == "") {
		d.add(n.Line, path, "has only one of cert and key, want both or none")
	}
	return v
}
