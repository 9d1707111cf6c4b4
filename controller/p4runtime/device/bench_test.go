package device

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/switchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// routes returns a state with n routes over 8 groups of 4 members; two states with different mac
// differ.
func routes(b testing.TB, p *pipeline.Pipeline, n int, mac uint64) *reconcile.State {
	s := &reconcile.State{}
	add := func(e *p4v1.Entity, err error) {
		if err == nil {
			err = s.Add(e)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	for id := uint32(1); id <= 8; id++ {
		add(p.Member(ids.ProfileECMPName, id, ids.ActionSetNextHopName,
			pipeline.Arg{Name: "port", Value: p4rtmsg.Uint(uint64(id))},
			pipeline.Arg{Name: "src_mac", Value: p4rtmsg.Uint(2)}, pipeline.Arg{Name: "dst_mac", Value: p4rtmsg.Uint(mac)}))
		add(p.Group(ids.ProfileECMPName, id, []uint32{id, id%8 + 1, (id+1)%8 + 1, (id+2)%8 + 1}))
	}
	for i := range n {
		addr := binary.BigEndian.AppendUint32(nil, 0x0a000000+uint32(i))
		add(p.Entry(ids.TableIPv4LPMName).LPM("dst_addr", addr, 32).Group(uint32(i%8) + 1).Entity())
	}
	return s
}

// BenchmarkReconcile brings a switch, at the other end of a TCP connection in this process, from
// empty to n routes. It then reads them back without a difference, and changes one member.
// Allocations count both ends.
func BenchmarkReconcile(b *testing.B) {
	p, err := pipeline.Load(p4src.P4Info, p4src.JSON())
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{100, 1000, 10000} {
		fake := switchtest.New(b, 1)
		fake.Start()
		d := New(Options{
			Switch: config.Switch{Name: "s1", DeviceID: 1, Address: fake.Address(), PriorityQueues: 8}, ElectionID: 1, Pipeline: p,
			RetryMin: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); d.Run(ctx) }()
		reach := func(b *testing.B, s *reconcile.State) {
			d.SetDesired(Desired{State: s})
			if r := d.Wait(ctx); r.Error != "" {
				b.Fatal(r.Error)
			}
		}
		empty, full, other := &reconcile.State{}, routes(b, p, n, 1), routes(b, p, n, 2)
		reach(b, empty)
		b.Run(fmt.Sprintf("fill/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				reach(b, full)
				b.StopTimer()
				reach(b, empty)
				b.StartTimer()
			}
		})
		reach(b, full)
		b.Run(fmt.Sprintf("members/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				reach(b, []*reconcile.State{other, full}[i%2])
			}
		})
		reach(b, full)
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			c, err := d.session.Client()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				have, _, err := reconcile.Read(ctx, c, p)
				if err != nil {
					b.Fatal(err)
				}
				if plan := reconcile.Diff(have, full, p.TableSize); plan.Len() != 0 {
					b.Fatal(plan.Len())
				}
			}
		})
		cancel()
		<-done
		fake.Stop()
	}
}
