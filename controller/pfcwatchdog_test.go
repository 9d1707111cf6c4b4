package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/serving/events"
	"github.com/headgate/headgate/packet"
)

// TestReceivedStorm: a host pauses its port without end. A configuration switches the watchdog on,
// it reports the storm, and another configuration switches it off.
func TestReceivedStorm(t *testing.T) {
	r := newBufferRig(t)
	sub := r.c.Events().Subscribe(events.Options[*pb.Event]{Match: func(e *pb.Event) bool { return strings.HasPrefix(e.Kind, "pfc.received_storm") }})
	defer sub.Close()
	const section = "pfc_watchdog: {detection_time: 50ms, restoration_time: 60ms, action: forward}\n"
	obeys := func(want bool, detail string) {
		t.Helper()
		eventually(t, fmt.Sprintf("obey_pfc is %v", want), func() bool {
			return slices.ContainsFunc(r.state("s1").Capabilities, func(c *pb.Capability) bool {
				return c.Name == "obey_pfc" && c.Supported == want && strings.Contains(c.Detail, detail)
			})
		})
	}
	r.edit(`policy: "off"`, `policy: "sih"`) // without a policy the switch obeys PAUSE of all classes
	plain := r.yaml
	if got := r.apply()[0].Error; got != "" {
		t.Fatal(got)
	}
	obeys(false, "start it with --pfc")
	r.yaml = append([]byte(section), plain...)
	// A switch started without --pfc has no PAUSE to watch.
	if got := r.apply()[0].Error; !strings.Contains(got, "PFC watchdog") || !strings.Contains(got, "--pfc") {
		t.Errorf("result %q, want what to do", got)
	}
	r.sw.Close()
	r.pfc = true
	r.do(func() {
		if err := r.startSwitch(); err != nil {
			t.Error(err)
		}
	})
	r.becomes("s1", pb.SwitchStatus_STATE_READY)
	obeys(true, "tried")
	eventually(t, "storms are read", func() bool {
		_, ok := testenv.Number(r.state("s1"), "pfc_storms_last_read_timestamp_seconds")
		return ok
	})
	r.send(0, true)
	pause := packet.PFC{Enabled: 0xff} // only its class 3 is lossless
	for c := range pause.Quanta {
		pause.Quanta[c] = 65535 // 1.7 s
	}
	r.do(func() { r.hosts[1].port.Receive(pause.Append(nil), r.loop.Now()) })
	var happened []*pb.Event
	for len(happened) < 2 {
		more, _, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		happened = append(happened, more...)
	}
	for i, want := range []string{"pfc.received_storm", "pfc.received_storm_over"} {
		if e := happened[i]; e.Kind != want || e.Subject != "s1" || e.Port != 2 || *e.Class != 3 {
			t.Errorf("event %+v, want %s", e, want)
		}
	}
	if n, ok := testenv.Number(r.state("s1"), "pfc_storms", "2", "h2", "3"); !ok || n != 1 {
		t.Errorf("%v storms, %v, want 1", n, ok)
	}
	r.do(func() {
		for _, p := range r.sw.PortStats() {
			if p.Port == 2 && (p.PFC.Ignored != [8]uint64{1, 1, 1, 0, 1, 1, 1, 1} || p.PFC.Storms != [8]uint64{3: 1}) {
				t.Errorf("%+v, want the PAUSEs of all classes but 3 ignored, and no storm of them", p.PFC)
			}
		}
	})
	// The file without the section asks for the default, an alarm.
	r.yaml = plain
	plan, err := r.c.Plan(t.Context(), "f", r.yaml, 0)
	if err != nil || len(plan.Switches[0].Changes) != 1 || plan.Switches[0].Changes[0].Kind != pb.Change_KIND_MODIFY || !strings.Contains(plan.Switches[0].Changes[0].Line(), "→ action=alert, default=true, ") {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if got := r.apply()[0]; got.Error != "" || got.Modified != 1 {
		t.Errorf("result %+v", got)
	}
}
