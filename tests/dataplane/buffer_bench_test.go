package dataplane

import (
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/units"
)

// BenchmarkBuffer takes one packet of a lossless class through ingress and egress of Headgate's program on the
// engine, without a policy and with each policy. A few packets are always stored.
func BenchmarkBuffer(b *testing.B) {
	b.Run("off", func(b *testing.B) { benchmarkBuffer(b, "") })
	for _, kind := range []headroom.Kind{headroom.Static, headroom.SIH, headroom.SPFC, headroom.DSH, headroom.DSHSPFC} {
		b.Run(string(kind), func(b *testing.B) { benchmarkBuffer(b, kind) })
	}
}

func benchmarkBuffer(b *testing.B, kind headroom.Kind) {
	m := newMachine(b, loadProgram(b))
	if kind != "" {
		c := buffer.Config{MMU: headroom.Config{
			Policy: kind, Lossless: 0b0111_1111, Buffer: 16 * units.MB, Private: 3 * units.KB,
			Alpha: -4, Threshold: 200 * units.KB, Headroom: 60 * units.KB,
		}}
		for i := range 32 {
			c.MMU.Ports = append(c.MMU.Ports, headroom.Port{Rate: 100 * units.Gbps, Delay: 2 * units.Microsecond})
			c.Numbers = append(c.Numbers, uint32(i+1))
		}
		m.install(c)
	}
	var frames [7][]byte
	for class := range frames {
		frames[class] = dataFrame(uint8(class), 100)
	}
	var stored [64]*engine.Packet
	b.SetBytes(100)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.now += units.Microsecond / 2
		at := &stored[i%len(stored)]
		if *at != nil {
			m.depart(*at)
		}
		m.held = nil
		m.in.Ingress(m.in.Receive(uint32(1+i%32), frames[i%len(frames)], m.now), m.now, m)
		*at = m.held
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
	if len(m.pfc) != 0 {
		b.Fatalf("%d PFC frames at low load", len(m.pfc))
	}
}
