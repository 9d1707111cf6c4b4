package sim

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// slow makes flows that send one packet and then nothing for some milliseconds.
type slow struct{}

func (slow) NewLaw(FlowInfo) (law.Law, error) { return none.New(units.Mbps, 0) }

// BenchmarkMemory reports the memory of a fat-tree's host with its share of the switches, of a flow that has not
// started, and of a running flow that sends nothing.
func BenchmarkMemory(b *testing.B) {
	for _, k := range []int{8, 16, 32} {
		b.Run(fmt.Sprintf("hosts=%d", k*k*k/4), func(b *testing.B) {
			heap := func() float64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return float64(m.HeapAlloc)
			}
			var host, waiting, idle float64
			const perHost = 16
			for b.Loop() {
				before := heap()
				g := must[*topo.Graph](b)(topo.FatTree(k, line100, line100, line100))
				s := must[*Sim](b)(New(Config{Graph: g}))
				built := heap()
				flows := make([]FlowSpec, 0, perHost*g.Hosts)
				for i := range perHost * g.Hosts {
					flows = append(flows, FlowSpec{Src: i % g.Hosts, Dst: (i + 1 + i/g.Hosts) % g.Hosts, Start: units.Microsecond, Stop: units.Second, Law: slow{}})
				}
				if err := s.AddFlows(flows); err != nil {
					b.Fatal(err)
				}
				n := float64(len(flows))
				flows = nil
				known := heap()
				if err := s.Run(100 * units.Microsecond); err != nil {
					b.Fatal(err)
				}
				host, waiting, idle = (built-before)/float64(g.Hosts), (known-built)/n, (heap()-built)/n
				runtime.KeepAlive(s)
			}
			b.ReportMetric(host, "B/host")
			b.ReportMetric(waiting, "B/waiting-flow")
			b.ReportMetric(idle, "B/idle-flow")
		})
	}
}
