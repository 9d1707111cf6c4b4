package device

import (
	"context"
	"log/slog"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/reconcile"
	"github.com/headgate/headgate/tests/switchtest"
)

// TestReadSemaphore: a switch is read only if its device has a slot. Once its entries are known, it is
// written without a slot.
func TestReadSemaphore(t *testing.T) {
	env := testenv.New(t, "../../..", nil)
	fake := switchtest.New(t, 1)
	fake.Start()
	reads := NewReadSemaphore(1)
	give, err := reads.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{
		Switch: config.Switch{Name: "s1", DeviceID: 1, Address: fake.Address(), PriorityQueues: 8}, ElectionID: 1, Pipeline: env.Pipeline,
		Reads: reads, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	d.SetDesired(Desired{Env: env, State: &reconcile.State{}})
	eventually(t, "a session", func() bool { return d.Status().State == pb.SwitchStatus_STATE_RECONCILING })
	short, end := context.WithTimeout(ctx, 20*time.Millisecond)
	defer end()
	if r := d.Wait(short); r.Error != "still being applied" || d.Stats().Reconciles != 0 {
		t.Errorf("without a slot: %+v, %+v", r, d.Stats())
	}
	give()
	if r := d.Wait(ctx); r.Error != "" {
		t.Fatalf("with a slot: %+v", r)
	}
	if give, err = reads.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	defer give()
	state := &reconcile.State{}
	if err := state.Add(pipeline.CloneSession(7, 1)); err != nil {
		t.Fatal(err)
	}
	d.SetDesired(Desired{Env: env, State: state})
	if r := d.Wait(ctx); r.Error != "" || r.Inserted != 1 || d.Stats().Reads != 1 {
		t.Errorf("a change without a slot: %+v, %+v", r, d.Stats())
	}
	reads.Resize(2)
	for range 2 {
		if _, err := reads.Acquire(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := reads.Acquire(short); err == nil {
		t.Error("a third slot of two")
	}
}
