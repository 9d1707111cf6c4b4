package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/units"
)

func readQoS(d *decoder, n *yaml.Node, path string) QoS {
	var v QoS
	d.object(n, path, []field{
		{"classes", false, func(n *yaml.Node, p string) {
			d.list(n, p, func(n *yaml.Node, p string) { v.Classes = append(v.Classes, readClass(d, n, p)) })
		}},
		{"queue_limit", false, func(n *yaml.Node, p string) { v.QueueLimit = d.bytes(n, p, 1, maxLimit) }},
		{"ecn", false, func(n *yaml.Node, p string) {
			d.list(n, p, func(n *yaml.Node, p string) { v.ECN = append(v.ECN, readECN(d, n, p)) })
		}},
	})
	return v
}

func readClass(d *decoder, n *yaml.Node, path string) Class {
	var v Class
	queue := false
	d.object(n, path, []field{
		{"dscp", true, func(n *yaml.Node, p string) { v.DSCP = uint8(d.uint(n, p, 0, 63)) }},
		{"class", true, func(n *yaml.Node, p string) { v.Class = uint8(d.uint(n, p, 0, 7)) }},
		{"queue", false, func(n *yaml.Node, p string) { v.Queue, queue = uint8(d.uint(n, p, 0, 7)), true }},
	})
	if !queue {
		v.Queue = v.Class
	}
	return v
}

func readECN(d *decoder, n *yaml.Node, path string) ECN {
	var v ECN
	// The depth key counts cells of 64 bytes in 16 bits, saturating.
	const low, high = 64 * units.Byte, 4 * units.MB
	d.object(n, path, []field{
		{"queue", true, func(n *yaml.Node, p string) { v.Queue = uint8(d.uint(n, p, 0, 7)) }},
		{"kmin", true, func(n *yaml.Node, p string) { v.KMin = d.bytes(n, p, low, high) }},
		{"kmax", true, func(n *yaml.Node, p string) { v.KMax = d.bytes(n, p, low, high) }},
		{"pmax", true, func(n *yaml.Node, p string) {
			v.PMax = d.float(n, p, func(x float64) bool { return x > 0 && x <= 1 }, "a number above 0 and at most 1")
		}},
	})
	return v
}

// noShift marks a shift that the file does not set.
const noShift = 255

func readSoze(d *decoder, n *yaml.Node, path string) Soze {
	v := Soze{Shift: noShift, AckDSCP: defaultAckDSCP}
	d.object(n, path, []field{
		{"p", false, func(n *yaml.Node, p string) { v.P = d.time(n, p, units.Nanosecond, units.Second) }},
		{"k", false, func(n *yaml.Node, p string) { v.K = d.time(n, p, units.Nanosecond, units.Second) }},
		{"alpha", false, func(n *yaml.Node, p string) { v.Alpha = d.rate(n, p) }},
		{"beta", false, func(n *yaml.Node, p string) { v.Beta = d.rate(n, p) }},
		{"m", false, func(n *yaml.Node, p string) {
			v.M = d.float(n, p, func(x float64) bool { return x > 0 && x < 2 }, "a number above 0 and below 2")
		}},
		{"shift", false, func(n *yaml.Node, p string) { v.Shift = uint8(d.uint(n, p, 0, 16)) }},
		{"dscp", false, func(n *yaml.Node, p string) { v.DSCP = uint8(d.uint(n, p, 0, 63)) }},
		{"ack_dscp", false, func(n *yaml.Node, p string) { v.AckDSCP = uint8(d.uint(n, p, 0, 63)) }},
	})
	return v
}
