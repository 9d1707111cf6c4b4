package psa_test

import (
	"encoding/binary"
	"testing"

	_ "github.com/headgate/headgate/softswitch/arch/v1model"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/engine/hash"
)

// counter is an Out that takes a packet to egress at once and counts the frames that leave.
type counter struct {
	in   *engine.Instance
	sent int
}

func (c *counter) Enqueue(p *engine.Packet)     { c.in.Egress(p, 0, c) }
func (c *counter) Recirculate(p *engine.Packet) { c.in.Ingress(p, 0, c) }
func (c *counter) Transmit(uint32, []byte)      { c.sent++ }
func (c *counter) Digest(string, [][]byte)      {}
func (c *counter) Dropped(uint32, engine.Drop)  {}

// BenchmarkL3 forwards packets through the plain router with 1000 routes, in PSA and in v1model.
func BenchmarkL3(b *testing.B) {
	number := func(v uint64, bytes int) []byte { return binary.BigEndian.AppendUint64(nil, v)[8-bytes:] }
	for _, p := range []struct {
		name, file, control string
		port                int // bytes of a port's number
	}{{"psa", "testdata/l3.json", "In.", 4}, {"v1model", "../../engine/testdata/l3.json", "I.", 2}} {
		b.Run(p.name, func(b *testing.B) {
			c := &counter{in: engine.New(load(b, p.file), engine.Options{})}
			add := func(table string, key engine.Match, action string, args ...[]byte) {
				call := engine.ActionCall{Name: p.control + action, Args: args}
				if _, err := c.in.AddEntry(p.control+table, []engine.Match{key}, 0, engine.Target{Call: &call}, 0); err != nil {
					b.Fatal(err)
				}
			}
			const routes, hops = 1000, 64
			frames := make([][]byte, 256)
			for i := range uint64(routes) {
				add("routes", engine.Match{Value: number(0x0b000000+i*256, 4), Prefix: 24}, "set_next_hop", number(i%hops, 2))
			}
			for i := range uint64(hops) {
				add("next_hops", engine.Match{Value: number(i, 2)}, "forward", number(i, p.port), number(0x0200000000, 6), number(0x0210000000+i, 6))
			}
			for i := range frames {
				f := make([]byte, 128)
				f[12] = 0x08
				h := f[14:34]
				h[0], h[8], h[9] = 0x45, 64, 17
				binary.BigEndian.PutUint16(h[2:], uint16(len(f)-14))
				binary.BigEndian.PutUint32(h[16:], uint32(0x0b000000+(i*7919%routes)*256+9))
				binary.BigEndian.PutUint16(h[10:], uint16(hash.Internet(h)))
				frames[i] = f
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				c.in.Ingress(c.in.Receive(1, frames[i&255], 0), 0, c)
			}
			if c.sent != b.N {
				b.Fatalf("%d of %d packets left", c.sent, b.N)
			}
		})
	}
}
