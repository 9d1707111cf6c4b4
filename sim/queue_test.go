package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/sim/event"
	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// TestFIFOsAgainstList compares FIFOs with a plain list. Events of several FIFOs, many at the same time, come in the
// order of time, kind and port, with their packets. A packet that was taken stays unchanged until the next is taken.
func TestFIFOsAgainstList(t *testing.T) {
	sim := must[*Sim](t)(New(Config{Graph: must[*topo.Graph](t)(topo.Star(2, line100))}))
	rapid.Check(t, func(t *rapid.T) {
		sim.addFIFOs()
		l := &sim.partitions[0].events.fifos
		delays := []units.Time{84, 5, maxAhead, 600_000}
		type entry struct {
			event.Event
			flow, route int32
		}
		var want []entry
		now, flow := units.Time(rapid.Int64Range(0, 1<<50).Draw(t, "start")), int32(0)
		push := func(fifo int, port int32, e *packet) {
			happens := event.Event{At: now + delays[fifo], What: event.What(l.rings[fifo].key>>fifoBits) + event.What(port)}
			if slices.ContainsFunc(want, func(o entry) bool { return o.Event == happens }) {
				return // a port has at most one pending event of a kind
			}
			want = append(want, entry{happens, e.flow, e.route + 1})
			l.push(fifo, happens.At, port, e)
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			for range rapid.IntRange(0, 4).Draw(t, "pushed") {
				flow++
				push(rapid.IntRange(0, len(delays)-1).Draw(t, "fifo"), rapid.Int32Range(0, 40).Draw(t, "port"),
					&packet{what: pack(64, 3, kindData), flow: flow, route: flow % 7})
			}
			if len(want) == 0 {
				if l.next != (event.Event{At: units.MaxTime, What: event.Never}) {
					t.Fatalf("empty FIFOs say that %+v is next", l.next)
				}
				now += units.Time(rapid.Int64Range(0, 1000).Draw(t, "idle"))
				continue
			}
			slices.SortFunc(want, func(a, b entry) int {
				if a.Before(b.Event) {
					return -1
				}
				return 1
			})
			if l.next != want[0].Event {
				t.Fatalf("next is %+v, want %+v", l.next, want[0])
			}
			now = l.next.At
			e := l.pop()
			push(0, 41+flow, e)
			if e.flow != want[0].flow || e.route != want[0].route || e.size() != 64 || e.class() != 3 || e.due(now) != now {
				t.Fatalf("took %+v, want %+v", e, want[0])
			}
			want = slices.Delete(want, 0, 1)
		}
	})
}
