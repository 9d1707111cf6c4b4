package device

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/fakeswitch"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/reconcile"
	"github.com/headgate/headgate/controller/view"
	"github.com/headgate/headgate/p4src/ids"
)

// overlayer is a feature that wants one limit, and whose loop wants what the test says.
type overlayer struct {
	pipe *pipeline.Pipeline

	mu       sync.Mutex
	switches []feature.Switch // one for each attachment
}

func (*overlayer) Name() string { return "overlayer" }

func limit(p *pipeline.Pipeline, port, bytes uint64) *p4v1.Entity {
	e, err := p.Entry(ids.TableQueueLimitName).Exact("egress_port", pipeline.Uint(port)).Exact("queue", pipeline.Uint(0)).
		Action(ids.ActionSetQueueLimitName, pipeline.Arg{Name: "bytes", Value: pipeline.Uint(bytes)}).Entity()
	if err != nil {
		panic(err)
	}
	return e
}

func (o *overlayer) Parts() []feature.Part { return nil }

func (o *overlayer) Desired(*feature.Env, string) ([]*p4v1.Entity, error) {
	return []*p4v1.Entity{limit(o.pipe, 1, 100)}, nil
}

func (o *overlayer) Attach(_ *feature.Env, sw feature.Switch) feature.Loop {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.switches = append(o.switches, sw)
	return nil
}

// last waits until there were n attachments, and returns the last.
func (o *overlayer) last(t *testing.T, n int) feature.Switch {
	t.Helper()
	var sw feature.Switch
	eventually(t, "attachment", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.switches) >= n {
			sw = o.switches[len(o.switches)-1]
		}
		return sw != nil
	})
	return sw
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// TestOverlay: what a loop wants is written at once and by itself, survives new routes,
// resyncs and refusals, shows in no plan, and ends with the loop.
func TestOverlay(t *testing.T) {
	env := testenv.New(t, "../..", nil)
	o := &overlayer{pipe: env.Pipeline}
	fake := fakeswitch.New(t, 1)
	fake.Start()
	d := New(Options{
		Switch: config.Switch{Name: "s1", DeviceID: 1, Address: fake.Address(), PriorityQueues: 8}, ElectionID: 1, Pipeline: env.Pipeline,
		Features: []feature.Feature{o}, RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	defer func() { cancel(); <-done }()
	desired := func() *reconcile.State {
		s := &reconcile.State{}
		list, _ := o.Desired(env, "s1")
		for _, e := range list {
			if err := s.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	want := func(env *feature.Env) {
		t.Helper()
		d.Want(Want{Env: env, State: desired()})
		if r := d.Settle(ctx); r.Err != "" {
			t.Fatal(r.Err)
		}
	}
	const base = "ingress.admission.queue_limit egress_port=1 queue=0 → set_queue_limit(bytes=100)"
	const over = "ingress.admission.queue_limit egress_port=1 queue=0 → set_queue_limit(bytes=7)"
	const more = "ingress.admission.queue_limit egress_port=2 queue=0 → set_queue_limit(bytes=8)"
	holds := func(what string, lines ...string) {
		t.Helper()
		eventually(t, what, func() bool { return slices.Equal(fake.Describe(), lines) })
	}
	want(env)
	sw := o.last(t, 1)
	holds("the base", base)
	reconciles, results := d.Status().Reconciles, d.Settle(ctx)

	if err := sw.Overlay([]*p4v1.Entity{limit(env.Pipeline, 1, 7), limit(env.Pipeline, 2, 8)}); err != nil {
		t.Fatal(err)
	}
	holds("the overlay", over, more)
	if d.Status().Reconciles != reconciles || d.Settle(ctx) != results {
		t.Error("an overlay counts as an apply")
	}
	if p := d.Plan(ctx, Want{State: desired()}); len(p.Changes) != 0 {
		t.Errorf("plan = %v", p.Changes)
	}
	// New routes are another environment of the same configuration, and so is the file that
	// is applied again as it is.
	same := *env
	want(&same)
	reread, err := config.Parse(env.Config.File, env.Config.Source)
	if err != nil {
		t.Fatal(err)
	}
	reapplied := *env
	reapplied.Config = reread
	want(&reapplied)
	holds("the overlay still", over, more)

	// Something else changed the entry: the comparison repairs it, to the overlay's.
	if err := fake.Corrupt(func(line string) bool { return line == more }); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	d.wantSeq++ // a want that the reconciler has not seen, and a read: as the resync does
	d.mu.Unlock()
	if err := sw.Overlay([]*p4v1.Entity{limit(env.Pipeline, 2, 9)}); err != nil {
		t.Fatal(err)
	}
	holds("the repaired overlay", base, strings.Replace(more, "8", "9", 1))

	// A refused overlay degrades the switch, and is tried again.
	fake.SetRefuse(func(u *p4v1.Update) (codes.Code, string) {
		if len(u.GetEntity().GetTableEntry().GetMatch()) > 0 && pipeline.Number(u.GetEntity().GetTableEntry().GetMatch()[0].GetExact().GetValue()) == 2 {
			return codes.ResourceExhausted, "no room"
		}
		return codes.OK, ""
	})
	if err := sw.Overlay([]*p4v1.Entity{limit(env.Pipeline, 1, 7), limit(env.Pipeline, 2, 8)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "degraded", func() bool { return d.Status().State == view.Degraded })
	fake.SetRefuse(nil)
	holds("the overlay after all", over, more)
	eventually(t, "ready", func() bool { return d.Status().State == view.Ready })

	// Another configuration ends the loop and its overlay.
	changed, err := config.Parse("other.yaml", env.Config.Source)
	if err != nil {
		t.Fatal(err)
	}
	other := *env
	other.Config = changed
	want(&other)
	holds("the base again", base)
	if err := sw.Overlay([]*p4v1.Entity{limit(env.Pipeline, 1, 7)}); !errors.Is(err, errDropped) {
		t.Errorf("error = %v", err)
	}
	// So does a switch that was restarted.
	sw = o.last(t, 2)
	if err := sw.Overlay([]*p4v1.Entity{limit(env.Pipeline, 1, 7)}); err != nil {
		t.Fatal(err)
	}
	holds("the overlay of the new loop", over)
	fake.Stop()
	eventually(t, "disconnected", func() bool { return d.Status().State == view.Disconnected })
	fake.Start()
	eventually(t, "ready", func() bool { return d.Status().State == view.Ready })
	holds("the base after the restart", base)
}

// Two loops of one switch have an overlay each, and may not want one entity.
func TestOverlaysOfTwoFeatures(t *testing.T) {
	p := testenv.New(t, "../..", nil).Pipeline
	o := &overlays{}
	set := func(name string, list ...*p4v1.Entity) (bool, error) { t.Helper(); return o.set(name, list) }
	if changed, err := set("a"); changed || err != nil || o.merged != nil {
		t.Errorf("nothing = %v, %v", changed, err)
	}
	if changed, err := set("a", limit(p, 1, 1)); !changed || err != nil {
		t.Errorf("a = %v, %v", changed, err)
	}
	if changed, err := set("b", limit(p, 2, 1)); !changed || err != nil || o.merged.Len() != 2 {
		t.Errorf("b = %v, %v", changed, err)
	}
	if changed, err := set("b", limit(p, 1, 2)); changed || err == nil || o.merged.Len() != 2 {
		t.Errorf("b takes what is a's: %v, %v", changed, err)
	}
	if changed, err := set("a"); !changed || err != nil || o.merged.Len() != 1 {
		t.Errorf("a = %v, %v", changed, err)
	}
	if _, err := set("b", limit(p, 3, 1), limit(p, 3, 2)); err == nil {
		t.Error("one loop wants one entity twice")
	}
}
