package dataplane

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine"
	_ "github.com/headgate/headgate/softswitch/native/headgate" // Headgate's own program runs as Go
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/embedded"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// pump is the engine's Out: an enqueued packet leaves at once.
type pump struct {
	in   *engine.Instance
	sent int
}

func (p *pump) Enqueue(pkt *engine.Packet) {
	pkt.EnqTime, pkt.DeqTime = 1, 1
	p.in.Egress(pkt, 1, p)
}
func (p *pump) Transmit(uint32, []byte)        { p.sent++ }
func (p *pump) Recirculate(pkt *engine.Packet) { pkt.Free() }
func (p *pump) Digest(string, [][]byte)        {}
func (p *pump) Dropped(uint32, engine.Drop)    {}

// BenchmarkPipeline takes one packet with a maxQD shim through Headgate's whole program on the engine: parser,
// routing with ECMP, admission, egress, deparser.
func BenchmarkPipeline(b *testing.B) {
	program, err := engine.Load(p4src.JSON())
	if err != nil {
		b.Fatal(err)
	}
	in := engine.New(program, engine.Options{Queues: 8})
	group := engine.GroupID(1)
	must(b, in.AddMember(ids.ProfileECMPName, 1, engine.ActionCall{
		Name: ids.ActionSetNextHopName, Args: [][]byte{{2}, switchMAC(2), hostMAC(2)},
	}))
	must(b, in.SetGroup(ids.ProfileECMPName, group, []engine.MemberID{1}))
	for port := range 200 {
		_, err := in.AddEntry(ids.TableIPv4LPMName, []engine.Match{{Value: []byte{10, 0, byte(port), 0}, Prefix: 24}}, 0, engine.Target{Group: &group}, 0)
		must(b, err)
	}
	frame := newFrame(1, 2).shim(1, false, 0).bytes(b)
	out := &pump{in: in}
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		in.Ingress(in.Receive(1, frame, 1), 1, out)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
	if out.sent != b.N {
		b.Fatalf("%d of %d packets left", out.sent, b.N)
	}
}

// BenchmarkWrite inserts routes, 1000 in a Write, on every target.
func BenchmarkWrite(b *testing.B) {
	targets := map[string]func() (target.Target, error){
		"embedded": func() (target.Target, error) { return embedded.Start() },
	}
	if os.Getenv("HEADGATE_BMV2") == "1" {
		targets["bmv2"] = func() (target.Target, error) { return bmv2.Start(b), nil }
	}
	for name, start := range targets {
		b.Run(name, func(b *testing.B) {
			tg, err := start()
			must(b, err)
			defer tg.Close()
			conn, err := tg.Dial()
			must(b, err)
			ctl, err := control.New(conn, target.DeviceID)
			must(b, err)
			defer ctl.Close()
			must(b, ctl.Push())
			must(b, ctl.Write(control.Member(1, 1, switchMAC(1), hostMAC(1)), control.Group(1, control.Weight{Member: 1, Weight: 1})))
			const batch = 1000
			var insert, remove []*p4v1.Update
			for i := range batch {
				u := control.Route(netip.PrefixFrom(netip.AddrFrom4([4]byte{11, 0, byte(i >> 8), byte(i)}), 32), 1)
				insert = append(insert, u)
				d := proto.Clone(u).(*p4v1.Update)
				d.Type = p4v1.Update_DELETE
				remove = append(remove, d)
			}
			for b.Loop() {
				if err := ctl.Write(insert...); err != nil {
					b.Fatal(fmt.Errorf("insert: %w", err))
				}
				b.StopTimer()
				must(b, ctl.Write(remove...))
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "updates/s")
		})
	}
}
