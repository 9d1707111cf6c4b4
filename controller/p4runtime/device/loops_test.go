package device

import (
	"context"
	"encoding/binary"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/tests/switchtest"
)

// slowLearner is a feature whose loop is slow for each digest and slower for each tick, like one that reads a
// whole table. prober records when probes reach a loop.
type slowLearner struct{ learned *atomic.Int64 }

func (slowLearner) Interval() time.Duration { return time.Millisecond }
func (slowLearner) Tick(ctx context.Context, _ time.Time) error {
	select {
	case <-ctx.Done():
	case <-time.After(300 * time.Millisecond):
	}
	return nil
}

func (slowLearner) Receives() feature.Kinds { return feature.Others }

func (l slowLearner) Receive(_ time.Time, m feature.Message) {
	if m.Digest != nil {
		l.learned.Add(int64(len(m.Digest.GetData())))
	}
}

type prober struct{ seen chan time.Duration }

// looping is a feature with a loop and no desired entries.
func looping(name string, l feature.Loop) *feature.Feature {
	return &feature.Feature{
		Name: name, Desired: func(*feature.Env) ([]*p4v1.Entity, error) { return nil, nil },
		Attach: func(*feature.Env, feature.Switch) feature.Loop { return l },
	}
}

func (prober) Interval() time.Duration               { return 0 }
func (prober) Tick(context.Context, time.Time) error { return nil }
func (prober) Receives() feature.Kinds               { return feature.Probes }

func (p prober) Receive(_ time.Time, m feature.Message) {
	if m.Packet != nil && m.Packet.Fields["reason"] == feature.ProbeReason {
		p.seen <- time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(m.Packet.Payload))))
	}
}

// onceTicked is a loop whose first tick is the last.
type onceTicked struct {
	prober
	ticks *atomic.Int64
}

func (onceTicked) Interval() time.Duration { return time.Millisecond }
func (l onceTicked) Tick(context.Context, time.Time) error {
	l.ticks.Add(1)
	return feature.ErrDone
}

// TestDone: a finished loop gets no more ticks, but still receives messages.
func TestDone(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	l := onceTicked{prober{make(chan time.Duration, 1)}, &atomic.Int64{}}
	r := &runner{l, "once", nil, newInbox()}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); r.run(ctx) }()
	eventually(t, "the tick", func() bool { return l.ticks.Load() > 0 })
	time.Sleep(20 * time.Millisecond)
	in, err := env.Pipeline.PacketIn(probeFrame(t, env.Pipeline))
	if err != nil {
		t.Fatal(err)
	}
	r.inbox.offer(laneProbe, &delivery{feature.Message{Packet: &in}, time.Now(), 1})
	<-l.seen
	cancel()
	<-ended
	if n := l.ticks.Load(); n != 1 {
		t.Errorf("%d ticks, want 1", n)
	}
}

// TestProbesPassATableOfStrangers: a probe reaches its loop at once, although another loop of the switch is busy
// with a table and has more digests waiting than it can take.
func TestProbesPassATableOfStrangers(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	fake := switchtest.New(t, 1)
	fake.Start()
	learner, probes := slowLearner{&atomic.Int64{}}, prober{make(chan time.Duration, 100)}
	d := New(Options{
		Switch: config.Switch{Name: "s1", DeviceID: 1, Address: fake.Address(), PriorityQueues: 8}, ElectionID: 1,
		Pipeline: env.Pipeline, Features: []*feature.Feature{looping("learner", learner), looping("prober", probes)},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	defer func() { cancel(); <-done }()
	d.SetDesired(Desired{Env: env, State: &reconcile.State{}})
	if r := d.Wait(ctx); r.Error != "" {
		t.Fatal(r.Error)
	}
	eventually(t, "loops", func() bool { return d.running.Load() != nil })
	digest := &p4v1.DigestList{DigestId: 1, Data: make([]*p4v1.P4Data, 1000)}
	const lists, probesSent = 100, 10
	var worst time.Duration
	for i := range lists {
		handler{d}.Message(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Digest{Digest: digest}})
		if i%(lists/probesSent) != 0 {
			continue
		}
		handler{d}.Message(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Packet{Packet: probeFrame(t, env.Pipeline)}})
		select {
		case late := <-probes.seen:
			worst = max(worst, late)
		case <-time.After(5 * time.Second):
			t.Fatal("a probe did not come")
		}
	}
	if worst > 100*time.Millisecond {
		t.Errorf("a probe took %v, want less than a tick of the other loop, 300 ms", worst)
	}
	// The learner's lane keeps messages up to its size, and drops and counts the others.
	eventually(t, "learned or dropped", func() bool {
		dropped := int64(d.Stats().DroppedMessages)
		return learner.learned.Load() > 0 && dropped > 0 && learner.learned.Load()+dropped*pieceEntries >= lists*1000
	})
	if most := int64(2 * laneEntries[laneBulk]); learner.learned.Load() > most {
		t.Errorf("%d entries of digests were kept, want at most %d", learner.learned.Load(), most)
	}
}

// probeFrame is a packet-in with a probe's reason and the probe's send time.
func probeFrame(t *testing.T, p *pipeline.Pipeline) *p4v1.PacketIn {
	t.Helper()
	in := &p4v1.PacketIn{Payload: binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixNano()))}
	for id, value := range map[uint32]uint64{1: 3, 2: 0, 3: feature.ProbeReason} {
		in.Metadata = append(in.Metadata, &p4v1.PacketMetadata{MetadataId: id, Value: p4rtmsg.Uint(value)})
	}
	if got, err := p.PacketIn(in); err != nil || got.Fields["reason"] != feature.ProbeReason {
		t.Fatalf("%+v, %v", got, err)
	}
	return in
}

// TestInboxOrder: urgent messages are taken first, each lane keeps its order, and a full lane does not delay
// the others.
func TestInboxOrder(t *testing.T) {
	b := newInbox()
	put := func(lane, entries int) *delivery {
		m := &delivery{entries: entries}
		if !b.offer(lane, m) {
			return nil
		}
		return m
	}
	first, second := put(laneBulk, 1), put(laneBulk, laneEntries[laneBulk]-1)
	if put(laneBulk, 1) != nil {
		t.Error("a full lane takes more")
	}
	idle, report, probe := put(laneIdle, 5), put(laneReport, 1), put(laneProbe, 1)
	for i, want := range []*delivery{probe, report, idle, first, second, nil} {
		if got := b.take(); got != want {
			t.Errorf("message %d is %p, want %p", i, got, want)
		}
	}
	if put(laneBulk, laneEntries[laneBulk]) == nil {
		t.Error("an empty lane does not take what fits")
	}
}

// BenchmarkInbox adds a message behind n others, and takes one.
func BenchmarkInbox(b *testing.B) {
	for _, waiting := range []int{1, laneEntries[laneBulk] - 1} {
		b.Run(strconv.Itoa(waiting), func(b *testing.B) {
			box, m := newInbox(), &delivery{entries: 1}
			for range waiting {
				box.offer(laneBulk, m)
			}
			for b.Loop() {
				box.offer(laneBulk, m)
				box.take()
			}
		})
	}
}
