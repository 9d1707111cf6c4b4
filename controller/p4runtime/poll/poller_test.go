package poll_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/poll"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

// TestPoll: a port is polled again once it was quiet for long enough, whoever polled it last.
func TestPoll(t *testing.T) {
	var out []*p4v1.PacketOut
	var refuse error
	p := poll.New(testenv.New(t, "../../..", nil).Pipeline, func(o *p4v1.PacketOut) error {
		if refuse == nil {
			out = append(out, o)
		}
		return refuse
	})
	now := time.Now()
	for _, step := range []struct {
		after, quiet time.Duration
		ports        []uint32
		want         int
	}{
		{0, time.Second, []uint32{1, 2}, 2},
		{time.Millisecond, 2 * time.Millisecond, []uint32{1, 2, 3}, 1},
		{time.Millisecond, 2 * time.Millisecond, []uint32{1, 2, 3}, 2},
		{0, 0, []uint32{3}, 1},
	} {
		now, out = now.Add(step.after), nil
		if err := p.Poll(now, step.quiet, step.ports...); err != nil || len(out) != step.want {
			t.Fatalf("%+v: %d polls, %v", step, len(out), err)
		}
	}
	m := out[0].GetMetadata()
	if bytestring.Low64(m[0].Value) != 3 || bytestring.Low64(m[1].Value) != ids.HighestQueue || bytestring.Low64(m[2].Value) != ids.PacketOutPoll {
		t.Errorf("poll %v", out[0])
	}
	refuse = errors.New("busy")
	for range 2 { // a poll that was not sent does not count
		if err := p.Poll(now.Add(time.Second), time.Second, 4); !errors.Is(err, refuse) || !strings.Contains(err.Error(), "poll of port 4: busy") {
			t.Errorf("error %v", err)
		}
	}
}

// TestSilent: a switch does not count as silent after a few polls, after a short time, or for polls
// from before Reset or before the last answer.
func TestSilent(t *testing.T) {
	pipe := testenv.New(t, "../../..", nil).Pipeline
	var out *p4v1.PacketOut
	p := poll.New(pipe, func(o *p4v1.PacketOut) error { out = o; return nil })
	now := time.Now()
	step := func(what string, polls int, every time.Duration, want bool) {
		t.Helper()
		got := false
		for range polls {
			if now = now.Add(every); p.Poll(now, 0, 1) != nil {
				t.Fatal("a poll was not sent")
			}
			got = p.Silent(now, 3*time.Second)
		}
		if got != want {
			t.Errorf("%s: silent %v, want %v", what, got, want)
		}
	}
	step("few polls", 5, time.Minute, false)
	p.Reset()
	step("a moment", 100, time.Millisecond, false)
	p.Reset()
	step("a controller that stood still", 20, 0, false)
	step("and sees that an hour later", 1, time.Hour, false)
	p.Reset()
	step("ten polls in four seconds", 12, time.Second/3, false)
	step("in eight", 12, time.Second/3, false)
	step("in twelve", 12, time.Second/3, true)
	answer := &pipeline.PacketIn{Fields: map[string]uint64{"reason": ids.PacketInPoll}, Payload: append(pollreport.Report{Port: 1}.Append(nil), out.GetPayload()...)}
	if _, ok := p.Report(answer); !ok {
		t.Fatal("no answer")
	}
	step("an answer came", 5, time.Minute, false)
}

// TestReport: an answer carries the time of its request. Broken answers and answers to other
// controllers are ignored.
func TestReport(t *testing.T) {
	var out *p4v1.PacketOut
	pipe := testenv.New(t, "../../..", nil).Pipeline
	p := poll.New(pipe, func(o *p4v1.PacketOut) error { out = o; return nil })
	now := time.Now().Add(time.Minute)
	if err := p.Poll(now, 0, 3); err != nil {
		t.Fatal(err)
	}
	in := func(reason uint64, payload []byte) *pipeline.PacketIn {
		return &pipeline.PacketIn{Fields: map[string]uint64{"reason": reason}, Payload: payload}
	}
	report := pollreport.Report{Port: 3, DepartedBytes: 5}
	full := append(report.Append(nil), out.GetPayload()...)
	r, ok := p.Report(in(ids.PacketInPoll, full))
	if !ok || r == nil || r.Port != 3 || r.DepartedBytes != 5 || !r.Asked.Equal(now) {
		t.Errorf("report %+v, %v", r, ok)
	}
	time.Sleep(time.Microsecond) // another controller's start differs by at least a nanosecond
	other := poll.New(pipe, nil)
	for _, tt := range []struct {
		name string
		p    *poll.Poller
		in   *pipeline.PacketIn
		ok   bool
	}{
		{"cut off", p, in(ids.PacketInPoll, full[:40]), true},
		{"without a mark", p, in(ids.PacketInPoll, report.Append(nil)), true},
		{"another's", other, in(ids.PacketInPoll, full), true},
		{"another packet", p, in(5, full), false},
	} {
		if r, ok := tt.p.Report(tt.in); r != nil || ok != tt.ok {
			t.Errorf("%s: %+v, %v", tt.name, r, ok)
		}
	}
}
