package buffer

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/feature/qos"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

// environment is the lossless example with some of its text replaced.
func environment(t *testing.T, edits ...string) *feature.Env {
	t.Helper()
	return testenv.New(t, "../../..", func(string) string {
		raw, err := os.ReadFile("../../../examples/lossless.yaml")
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for i := 0; i < len(edits); i += 2 {
			if !strings.Contains(text, edits[i]) {
				t.Fatalf("the example has no %q", edits[i])
			}
			text = strings.Replace(text, edits[i], edits[i+1], 1)
		}
		return text
	}, New(nil), qos.New(nil))
}

// rig is a loop for leaf1 with its own clock, counters and registers.
type rig struct {
	*testing.T
	f         *feat
	callbacks *testenv.Callbacks
	sw        *testenv.Switch
	loop      feature.Loop
	now       time.Time
	counters  map[[2]int64]int64
	report    pollreport.Report // of port 1; Time follows the clock
	dead      bool              // polls are not answered
	refresh   []time.Time
	forget    []time.Time
}

func newRig(t *testing.T, edits ...string) *rig {
	t.Helper()
	callbacks := &testenv.Callbacks{}
	r := &rig{T: t, f: newFeat(callbacks), callbacks: callbacks, now: time.Unix(1000, 0), counters: map[[2]int64]int64{}}
	r.attach(edits...)
	return r
}

func (r *rig) attach(edits ...string) {
	r.Helper()
	r.sw = &testenv.Switch{Switch: "leaf1", Answer: r.read}
	r.loop = r.f.attach(environment(r.T, edits...), r.sw)
}

// read returns the requested registers.
func (r *rig) read(requests []*p4v1.Entity) []*p4v1.Entity {
	var list []*p4v1.Entity
	for _, q := range requests {
		c := q.GetCounterEntry()
		n := r.counters[[2]int64{int64(c.GetCounterId()), c.GetIndex().GetIndex()}]
		list = append(list, p4rtmsg.Entity(&p4v1.CounterEntry{
			CounterId: c.GetCounterId(), Index: c.GetIndex(), Data: &p4v1.CounterData{PacketCount: n, ByteCount: n},
		}))
	}
	return list
}

func (r *rig) add(counter uint32, index, n int64) { r.counters[[2]int64{int64(counter), index}] += n }

// run advances time, with a tick per interval and every poll answered at once. It calls each before
// every tick.
func (r *rig) run(d time.Duration, each func(step time.Duration)) {
	r.Helper()
	step := r.loop.Interval()
	for end := r.now.Add(d); r.now.Before(end); {
		r.now = r.now.Add(step)
		if each != nil {
			each(step)
		}
		if err := r.loop.Tick(context.Background(), r.now); err != nil {
			r.Fatal(err)
		}
		for _, out := range r.sw.Out {
			switch bytestring.Low64(out.GetMetadata()[2].Value) {
			case ids.PacketOutRefresh:
				r.refresh = append(r.refresh, r.now)
			case ids.PacketOutForget:
				r.forget = append(r.forget, r.now)
			}
		}
		for _, port := range r.sw.Polled {
			r.answer(port)
		}
		r.sw.Out, r.sw.Polled = nil, nil
	}
}

func (r *rig) answer(port uint32) {
	if r.dead {
		return
	}
	report := r.report
	if port != 1 {
		report = pollreport.Report{Buffer: pollreport.Buffer{Used: r.report.Buffer.Used, Peak: r.report.Buffer.Peak}}
	}
	report.Port, report.Time = port, r.ticks()
	r.loop.Receive(r.now, feature.Message{Report: &feature.Report{Report: report, Asked: r.now}})
}

// shown returns the reported state of the switch's buffer.
func (r *rig) shown() *State { return r.f.State("leaf1") }

func (r *rig) ticks() uint64 { return uint64(r.now.UnixMicro()) }

// state returns the reported state of port 1.
func (r *rig) state() PortState {
	r.Helper()
	b := r.shown()
	if b == nil || len(b.Ports) != 4 || b.Ports[0].Number != 1 {
		r.Fatalf("shown is %+v", b)
	}
	return b.Ports[0]
}

// events returns and clears the kinds of the events so far.
func (r *rig) events() string {
	var kinds []string
	for _, e := range r.callbacks.Events {
		kinds = append(kinds, e.Kind)
	}
	r.callbacks.Events = nil
	return strings.Join(kinds, " ")
}
