package softswitch

import (
	"context"
	"slices"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/units"
)

// Kinds of frames of testdata/loops.json.
const (
	kindForward     = 0
	kindSignal      = 1
	kindResubmit    = 2
	kindRecirculate = 3
	kindMultiply    = 4
)

func kindFrame(kind byte) []byte { return append([]byte{kind}, make([]byte, 59)...) }

// sessions gives the clone sessions of testdata/loops.json their ports.
func sessions(t testing.TB, in *engine.Instance) {
	t.Helper()
	for id, to := range map[uint16]uint32{1: 1, 2: 2} {
		if err := in.SetCloneSession(id, engine.CloneSession{Replicas: []engine.Replica{{Port: to}}}); err != nil {
			t.Fatal(err)
		}
	}
}

var loopKinds = map[string]byte{"resubmit": kindResubmit, "recirculate": kindRecirculate, "clone": kindMultiply}

// TestTurnsAreBounded: a packet that circulates for ever gets a share of each round. However late
// the switch is, every round ends, other frames pass in the next one, and time advances.
func TestTurnsAreBounded(t *testing.T) {
	for name, kind := range loopKinds {
		t.Run(name, func(t *testing.T) {
			loop := clock.NewLoop()
			s, p := onLoop(t, loop, "a", 3, 0)
			program := loops(t)
			sessions(t, program.Instance)
			s.dataplane.install(program.Instance)
			out := &frames{}
			for _, x := range p[1:] {
				x.Attach(out)
				x.SetUp(true)
			}
			for range 4 {
				s.dataplane.receive(1, kindFrame(kind), 0)
			}
			for i := range 5 {
				now := units.Time(i+1) * units.Second // a round without a bound would make a million passes, one per microsecond
				s.dataplane.run(now)
				other := kindFrame(kindForward)
				other[33] = byte(i + 1)
				s.dataplane.receive(3, other, now)
				s.dataplane.run(now)
				if !slices.ContainsFunc(out.got, func(r report) bool { return r.seq == uint32(i+1) }) {
					t.Errorf("turn %d: no frame of another port got through", i)
				}
				if at, ok := s.dataplane.next(); !ok || at <= now {
					t.Errorf("turn %d: next at %v, want it after %v", i, at, now)
				}
			}
			if st := s.Stats(); st.Unfinished == 0 || st.Recirculated > 20*roundPackets {
				t.Errorf("stats %+v, want turns without an end and at most %d passes", st, 20*roundPackets)
			}
		})
	}
}

// withLoops starts a switch in real time that runs testdata/loops.json, set by P4Runtime. Frames
// sent by its ports 1 and 2 are lost.
func withLoops(t *testing.T) (s *Realtime, p *fakePort, c *client, stop func() error) {
	t.Helper()
	s, err := NewRealtime(config("a"))
	if err != nil {
		t.Fatal(err)
	}
	p = newFakePort()
	for n, driver := range map[uint32]port.Port{1: &wire{}, 2: &wire{}} {
		if err := s.AddPort(port.Named{Number: n, Name: "fake"}, 0, driver); err != nil {
			t.Fatal(err)
		}
	}
	s.AddSource(p)
	addr, err := s.ServeGRPC("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	c = becomePrimary(t, addr)
	c.push("testdata/loops.p4info.txtpb", "testdata/loops.json")
	return s, p, c, func() error { cancel(); return <-done }
}

// hang is the time after which a test gives a call up. The calls take milliseconds; the rest is
// for a busy machine.
const hang = 60 * time.Second

// answers fails the test if call does not return within hang.
func answers(t testing.TB, what string, call func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(hang):
		t.Fatalf("%s: no answer", what) // the switch's goroutine goes on, and TestMain reports it
	}
}

func session(id uint32, to uint32) *p4v1.Update {
	return &p4v1.Update{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{
		PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{
			CloneSessionEntry: &p4v1.CloneSessionEntry{SessionId: id, Replicas: []*p4v1.Replica{{EgressPort: to}}},
		}},
	}}}
}

func toPort(kind, to byte) *p4v1.Update {
	return p4rtmsg.Insert(&p4v1.TableEntry{
		TableId: 33554433,
		Match:   []*p4v1.FieldMatch{{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{kind}}}}},
		Action: p4rtmsg.Call(&p4v1.Action{
			ActionId: 16777217, Params: []*p4v1.Action_Param{{ParamId: 1, Value: []byte{to}}},
		}),
	})
}

// TestEndlessPacketsLeaveTheSwitchUsable: while packets circulate for ever, P4Runtime is answered,
// frames pass and the switch can end.
func TestEndlessPacketsLeaveTheSwitchUsable(t *testing.T) {
	s, p, c, stop := withLoops(t)
	write := func(u ...*p4v1.Update) func() error {
		return func() error {
			_, err := c.Write(context.Background(), &p4v1.WriteRequest{ElectionId: c.election, Updates: u})
			return err
		}
	}
	answers(t, "clone sessions", write(session(1, 1), session(2, 2)))
	for _, kind := range loopKinds {
		for range 3 {
			p.in <- batch(kindFrame(kind), kindFrame(kind))
		}
	}
	for i := range byte(20) {
		start := time.Now()
		answers(t, "a write", write(toPort(100+i%10, 1)))
		t.Logf("write %d took %v", i, time.Since(start))
		sent := stats(t, s.Switch, 1).TxFrames
		p.in <- batch(kindFrame(100 + i%10))
		answers(t, "a frame", func() error {
			for stats(t, s.Switch, 1).TxFrames == sent {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		if i%10 == 9 {
			answers(t, "a removal", func() error {
				var all []*p4v1.Update
				for k := range byte(10) {
					u := proto.Clone(toPort(100+k, 1)).(*p4v1.Update)
					u.Type = p4v1.Update_DELETE
					all = append(all, u)
				}
				return write(all...)()
			})
		}
	}
	start := time.Now()
	answers(t, "the end", stop)
	t.Logf("the end took %v", time.Since(start))
	if st := s.Stats(); st.Recirculated == 0 {
		t.Errorf("stats %+v, want passes back to ingress", st)
	}
}

// FuzzMessagesAndFrames: for any P4Runtime messages and any frames, every message is answered and
// the switch ends.
func FuzzMessagesAndFrames(f *testing.F) {
	seed := func(frames []byte, updates ...*p4v1.Update) {
		message, err := proto.Marshal(&p4v1.WriteRequest{Updates: updates})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frames, message)
	}
	seed([]byte{0, 1, 2, 3, 4}, session(1, 1), session(2, 2), toPort(5, 1))
	seed([]byte{4, 4, 2, 2, 3, 3, 1, 1}, session(1, 2), session(2, 1), toPort(4, 1), toPort(4, 2))
	seed([]byte{1, 1, 1, 1}, session(1, 510), session(2, 511), toPort(1, 255))
	f.Fuzz(func(t *testing.T, kinds, message []byte) {
		if len(kinds) > 200 {
			return
		}
		var req p4v1.WriteRequest
		if proto.Unmarshal(message, &req) != nil {
			return
		}
		s, p, c, stop := withLoops(t)
		req = p4v1.WriteRequest{ElectionId: c.election, Updates: req.Updates}
		for i, kind := range kinds {
			p.in <- batch(kindFrame(kind), kindFrame(kind))
			if i%4 == 0 {
				answers(t, "a write", func() error {
					_, _ = c.Write(context.Background(), &req) // any answer will do
					return nil
				})
			}
		}
		answers(t, "the counters", func() error { s.PortStats(); return nil })
		answers(t, "the end", stop)
	})
}
