package device

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/tests/switchtest"
)

// run starts a switch and a device with a long retry interval.
func run(t *testing.T, env *feature.Env, fake *switchtest.Switch) *Device {
	fake.Start()
	d := New(Options{
		Switch: config.Switch{Name: "s1", DeviceID: 1, Address: fake.Address(), PriorityQueues: 8}, ElectionID: 1, Pipeline: env.Pipeline,
		RetryMin: time.Hour, RetryMax: time.Hour, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return d
}

// TestSwitchWithoutCPUPort: a switch that takes no packets is degraded, with the reason, although
// it has all its entries. It stays degraded after the next comparison.
func TestSwitchWithoutCPUPort(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	fake := switchtest.New(t, 1)
	fake.NoCPU = true
	fake.Lose()
	d, ctx := run(t, env, fake), t.Context()
	state := &reconcile.State{}
	d.SetDesired(Desired{Env: env, State: state})
	if r := d.Wait(ctx); r.Error != "" || d.Status().State != pb.SwitchStatus_STATE_READY {
		t.Fatalf("result %+v, %+v", r, d.Status())
	}
	out, err := env.Pipeline.PacketOut([]byte("probe"), pipeline.Arg{Name: "egress_port", Value: p4rtmsg.Uint(1)},
		pipeline.Arg{Name: "queue", Value: p4rtmsg.Uint(0)}, pipeline.Arg{Name: "mode", Value: p4rtmsg.Uint(ids.PacketOutPort)})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.session.PacketOut(out); err != nil {
		t.Fatal(err)
	}
	const want = "the switch takes no packets from the controller, so its ports are not polled and its links not probed: the switch has no CPU port (--cpu-port)"
	degraded := func() bool {
		s := d.Status()
		return s.State == pb.SwitchStatus_STATE_DEGRADED && strings.HasPrefix(s.Error, want)
	}
	eventually(t, "degraded", degraded)
	d.SetDesired(Desired{Env: env, State: state})
	if r := d.Wait(ctx); r.Error != "" || !degraded() {
		t.Errorf("after the next comparison: %+v, %+v", r, d.Status())
	}
}

// TestRefusedBeforeTheProgram: a restarted switch refuses packets of loops that have not noticed
// the restart. These refusals do not degrade the switch once it has its program.
func TestRefusedBeforeTheProgram(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	d := run(t, env, switchtest.New(t, 1))
	eventually(t, "a session", func() bool { return d.Status().State == pb.SwitchStatus_STATE_RECONCILING })
	if err := d.packetOut(&p4v1.PacketOut{}); !errors.Is(err, session.ErrDisconnected) {
		t.Errorf("a packet for a switch that may have no program: %v", err)
	}
	handler{d}.PacketRefused(errors.New("no forwarding pipeline"))
	d.SetDesired(Desired{Env: env, State: &reconcile.State{}})
	if r := d.Wait(t.Context()); r.Error != "" || d.Status().State != pb.SwitchStatus_STATE_READY {
		t.Errorf("result %+v, %+v", r, d.Status())
	}
}

// pollers returns a feature that polls port 1.
func pollers(pipe *pipeline.Pipeline) *feature.Feature {
	f := (&attacher{pipe: pipe}).feature()
	f.Attach = func(_ *feature.Env, sw feature.Switch) feature.Loop { return pollLoop{sw} }
	return f
}

type pollLoop struct{ feature.Switch }

func (pollLoop) Interval() time.Duration                       { return time.Millisecond }
func (l pollLoop) Tick(_ context.Context, now time.Time) error { return l.Poll(now, 0, 1) }
func (pollLoop) Receives() feature.Kinds {
	return feature.Probes | feature.Reports | feature.Idles | feature.Others
}

func (pollLoop) Receive(time.Time, feature.Message) {}

// TestMuteSwitch: simple_switch_grpc without a CPU port takes packets and sends none. It is
// degraded, with the reason, and missing probes do not affect its links.
func TestMuteSwitch(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	fake := switchtest.New(t, 1)
	fake.Start()
	d := New(Options{
		Switch: config.Switch{Name: "s1", DeviceID: 1, Address: fake.Address(), PriorityQueues: 8, CPUPort: 510}, ElectionID: 1, Pipeline: env.Pipeline,
		Features: []*feature.Feature{pollers(env.Pipeline)}, RetryMin: time.Hour, RetryMax: time.Hour, Log: slog.New(slog.DiscardHandler),
	})
	d.silence = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	defer func() { cancel(); <-done }()
	d.SetDesired(Desired{Env: env, State: &reconcile.State{}})
	mute := func() bool {
		s := d.Status()
		return s.State == pb.SwitchStatus_STATE_DEGRADED && strings.Contains(s.Error, "no poll of its ports was answered for 150ms") && strings.Contains(s.Error, "--cpu-port 510")
	}
	eventually(t, "degraded", mute)
	d.SetDesired(Desired{Env: env, State: &reconcile.State{}})
	if r := d.Wait(ctx); r.Error != "" || !mute() || !d.Health().Attached.IsZero() {
		t.Errorf("after the next comparison: %+v, %+v, attached %v", r, d.Status(), d.Health().Attached)
	}
	// It answers after all.
	fake.OnPacket(func(out *p4v1.PacketOut) {
		fake.PacketIn(&p4v1.PacketIn{Payload: append(pollreport.Report{Port: 1}.Append(nil), out.GetPayload()...), Metadata: []*p4v1.PacketMetadata{
			{MetadataId: ids.MetaPacketInIngressPort, Value: p4rtmsg.Uint(1)}, {MetadataId: ids.MetaPacketInQueue, Value: p4rtmsg.Uint(0)},
			{MetadataId: ids.MetaPacketInReason, Value: p4rtmsg.Uint(ids.PacketInPoll)},
		}})
	})
	eventually(t, "ready", func() bool { return d.Status().State == pb.SwitchStatus_STATE_READY && !d.Health().Attached.IsZero() })
	// After it has sent something once, it is slow or hangs. The status says so, and probes decide
	// on its links.
	fake.OnPacket(nil)
	eventually(t, "slow", func() bool {
		s := d.Status()
		return s.State == pb.SwitchStatus_STATE_DEGRADED && strings.HasSuffix(s.Error, "it is slow, or hangs") && !d.Health().Attached.IsZero()
	})
}

// TestDegradedSwitchIsLeftInPeace: with the daemon's options, a switch that refuses entries is not
// read again and again, even if loops send messages.
func TestDegradedSwitchIsLeftInPeace(t *testing.T) {
	if d := New(Options{}); d.opts.RetryMin < 100*time.Millisecond || d.opts.RetryMax < 5*time.Second {
		t.Errorf("waits of %v to %v by default", 10*d.opts.RetryMin, 10*d.opts.RetryMax)
	}
	env := testenv.New(t, "../../..", nil)
	fake := switchtest.New(t, 1)
	fake.SetRefuse(func(*p4v1.Update) (codes.Code, string) { return codes.ResourceExhausted, "no room" })
	d, ctx := run(t, env, fake), t.Context()
	state := &reconcile.State{}
	if err := state.Add(limit(env.Pipeline, 1, 100)); err != nil {
		t.Fatal(err)
	}
	d.SetDesired(Desired{Env: env, State: state})
	if r := d.Wait(ctx); r.Error == "" || d.Status().State != pb.SwitchStatus_STATE_DEGRADED {
		t.Fatalf("result %+v, state %v", r, d.Status().State)
	}
	before := d.Stats().Reads
	for range 20 {
		d.kick <- struct{}{}
	}
	d.kick <- struct{}{} // the reconciler ends after these
	if got := d.Stats().Reads; got != before {
		t.Errorf("read %d more times", got-before)
	}
	fake.SetRefuse(nil)
	d.SetDesired(Desired{Env: env, State: state})
	if r := d.Wait(ctx); r.Error != "" {
		t.Errorf("a new want waits, too: %v", r.Error)
	}
}
