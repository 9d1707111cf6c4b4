package softswitch

import (
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/units"
)

// A host at a port of 8 Mb/s pauses class 3 for 4.2 s at a time, once a second for 5 s. Every 100
// ms a frame of class 3 and a frame of class 1 arrive. The detection time is 2 s, the restoration
// time 3 s.
func TestStorm(t *testing.T) {
	second := func(s float64) units.Time { return units.Time(s * float64(units.Second)) }
	const frames = 150
	for _, tt := range []struct {
		action  externs.Action
		dropped uint64
		first   units.Time // when the first frame of class 3 leaves in or after the storm
		count   int        // frames of class 3 that have left by the end
	}{
		// The storm lasts from 2 s, when 20 frames wait, to 7 s, because the last PAUSE came at 4
		// s.
		{externs.Drop, 70, second(7), frames - 70},
		{"", 70, second(7), frames - 70},
		{externs.Forward, 0, second(2), frames},
		// The last pause ends by itself, 65535 quanta of 64 us after 4 s. By then 82 frames have
		// arrived, and the queue holds 64.
		{externs.Alert, 0, second(4) + 65535*64*us, frames - 18},
	} {
		t.Run(string(tt.action), func(t *testing.T) {
			loop, s, h1, h2 := pausable(t, PFC{Enabled: true, Watch: externs.Settings{Detection: second(2), Restoration: second(3), Action: tt.action}}, pfcRate)
			for i := range 5 {
				h2.send(second(float64(i)), pauseFrame(65535, 3))
			}
			for i := range uint32(frames) {
				at := units.Time(i)*100*ms + 50*ms
				h1.send(at, frame(2, 3, i, 100))
				h1.send(at, frame(2, 1, 1000+i, 100))
			}
			loop.RunUntil(second(3))
			if st := stats(t, s, 2).PFC; st.Storming != 1<<3 || st.Storms[3] != 1 {
				t.Errorf("after 3 s: %+v, want class 3 in a storm", st)
			}
			loop.RunUntil(second(20))
			if st := stats(t, s, 2).PFC; st.Storming != 0 || st.Storms[3] != 1 || st.StormDropped[3] != tt.dropped || st.Pauses[3] != 5 {
				t.Errorf("at the end: %+v, want 5 pauses, one storm that is over and %d drops", st, tt.dropped)
			}
			var three []arrived
			others := 0
			for _, a := range h2.got {
				if a.seq < 1000 {
					three = append(three, a)
				} else {
					others++
				}
			}
			if others != frames || len(three) != tt.count {
				t.Fatalf("%d frames of class 3 and %d of class 1 arrived, want %d and %d", len(three), others, tt.count, frames)
			}
			if at := three[0].at; at < tt.first || at > tt.first+200*ms {
				t.Errorf("the first frame of class 3 arrived at %v, want %v or soon after", at, tt.first)
			}
			if !slices.IsSortedFunc(three, func(a, b arrived) int { return int(a.seq) - int(b.seq) }) {
				t.Error("frames of class 3 changed their order")
			}
		})
	}
}

// Pauses that are shorter than the detection time, or that a RESUME ends, are no storm.
func TestNoStorm(t *testing.T) {
	loop, s, _, h2 := pausable(t, PFC{Enabled: true, Watch: externs.Settings{Detection: 100 * ms}}, pfcRate)
	for i := range units.Time(50) {
		h2.send(i*90*ms, pauseFrame(65535, 3))
		h2.send(i*90*ms+80*ms, pauseFrame(0, 3))
		h2.send(i*90*ms, pauseFrame(1000, 4)) // 64 ms
	}
	loop.RunUntil(10 * units.Second)
	if st := stats(t, s, 2).PFC; st.Storms != [8]uint64{} || st.Pauses[3] != 50 {
		t.Errorf("%+v, want 50 pauses and no storm", st)
	}
}

// TestChoppyStorm: a host pauses class 3 for most of every 51 ms and then resumes it. The share of the detection time
// that the class is paused makes the storm.
func TestChoppyStorm(t *testing.T) {
	for name, tt := range map[string]struct {
		paused units.Time // of every 51 ms
		share  float64
		storms uint64
	}{
		"50 ms":                          {50 * ms, 0, 1},
		"49 ms":                          {49 * ms, 0, 0},
		"49 ms of a lower share":         {49 * ms, 0.96, 1},
		"25 ms of a lower share":         {25 * ms, 0.96, 0},
		"50 ms, only without a break":    {50 * ms, 1, 0},
		"all, with RESUMEs of no length": {51 * ms, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			loop, s, h1, h2 := pausable(t, PFC{Enabled: true, Watch: externs.Settings{Detection: 200 * ms, Share: tt.share, Action: externs.Alert}}, pfcRate)
			for i := range units.Time(100) {
				h2.send(i*51*ms, pauseFrame(65535, 3))
				h2.send(i*51*ms+tt.paused, pauseFrame(0, 3))
				h1.send(i*51*ms, frame(2, 3, uint32(i), 100))
			}
			loop.RunUntil(4 * units.Second)
			st := stats(t, s, 2).PFC
			if st.Storms[3] != tt.storms || st.Storming>>3&1 != uint8(tt.storms) {
				t.Errorf("after 4 s: %+v, want %d storms", st, tt.storms)
			}
			loop.RunUntil(6 * units.Second)
			if st := stats(t, s, 2).PFC; st.Storms[3] != tt.storms || st.Storming != 0 || st.StormDropped[3] != 0 || len(h2.got) != 100 {
				t.Errorf("at the end: %+v and %d frames, want %d storms that are over and all 100", st, len(h2.got), tt.storms)
			}
		})
	}
}

// TestChoppyStormShorterTime: when the detection time becomes shorter, it applies to a class that
// is paused already.
func TestChoppyStormShorterTime(t *testing.T) {
	loop, s, _, h2 := pausable(t, PFC{Enabled: true, Watch: externs.Settings{Detection: 10 * units.Second}}, pfcRate)
	h2.send(0, pauseFrame(1, 3))
	for i := range units.Time(10) {
		h2.send(150*ms+i*units.Second, pauseFrame(65535, 3))
	}
	loop.RunUntil(500 * ms)
	s.watchdog.Set(&externs.Settings{Detection: units.Second, Share: externs.DefaultShare, Restoration: units.Second, Action: externs.Alert})
	loop.RunUntil(4 * units.Second)
	if st := stats(t, s, 2).PFC; st.Storms[3] != 1 {
		t.Errorf("%+v, want a storm", st)
	}
}

// TestDefaultSettings: settings that the controller did not ask for leave a watchdog given by flags as it is, and
// apply without one.
func TestDefaultSettings(t *testing.T) {
	byDefault := externs.Settings{Detection: 9 * units.Second, Share: 0.5, Restoration: units.Second, Action: externs.Alert, Default: true}
	flags := externs.Settings{Detection: units.Second, Share: 0.9, Restoration: units.Second, Action: externs.Drop}
	for _, own := range []externs.Settings{{}, flags} {
		_, s, _, _ := pausable(t, PFC{Enabled: true, Watch: own}, pfcRate)
		s.watchdog.Set(&byDefault)
		want := byDefault
		if own.Detection > 0 {
			want = own
		}
		if got, set := s.watchdog.Settings(); s.dataplane.watch != want || !set || got != byDefault {
			t.Errorf("with the flags %v the settings are %v, want %v; read are %v", own, s.dataplane.watch, want, got)
		}
	}
}

func TestStormSettingsErrors(t *testing.T) {
	for want, w := range map[string]externs.Settings{
		`action of the PFC watchdog "stop": want drop, forward or alert`:                           {Detection: ms, Action: "stop"},
		"share of the PFC watchdog 1.1: want more than 0 to 1, or 0 for 0.98":                      {Detection: ms, Share: 1.1},
		"share of the PFC watchdog -1: want more than 0 to 1, or 0 for 0.98":                       {Share: -1},
		"detection time of the PFC watchdog -1ms: want more than 0, or 0 for none":                 {Detection: -ms},
		"restoration time of the PFC watchdog -1ms: want more than 0, or 0 for the detection time": {Restoration: -ms},
	} {
		if _, err := newFlowControl(PFC{Enabled: true, Watch: w}, 8, 0); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// A controller's setting takes effect at once, also for a class that is paused already. When the
// controller takes it back, the switch returns to its initial setting.
func TestStormSettings(t *testing.T) {
	second := func(s float64) units.Time { return units.Time(s * float64(units.Second)) }
	loop, s, h1, h2 := pausable(t, PFC{Enabled: true}, pfcRate)
	dog := s.watchdog
	h2.send(0, pauseFrame(65535, 3)) // 4.2 s
	for i := range uint32(40) {
		h1.send(units.Time(i)*100*ms+50*ms, frame(2, 3, i, 100))
	}
	loop.RunUntil(second(1))
	if _, set := dog.Settings(); set || len(h2.got) != 0 || len(dog.Storms()) != 0 {
		t.Fatalf("set %v, %d frames arrived, storms %v: want none", set, len(h2.got), dog.Storms())
	}
	set := func(action externs.Action) externs.Settings {
		w := externs.Settings{Detection: second(1.5), Restoration: second(2), Share: 0.9, Action: action}
		dog.Set(&w)
		return w
	}
	want := set(externs.Alert)
	if got, known := dog.Settings(); !known || got != want {
		t.Errorf("settings %v, want %v", got, want)
	}
	loop.RunUntil(second(2))
	if storms := dog.Storms(); !slices.Equal(storms, []externs.Storm{{Port: 2, Class: 3, On: true, Count: 1}}) || len(h2.got) != 0 {
		t.Errorf("after 2 s: %v, %d frames arrived", storms, len(h2.got))
	}
	set(externs.Forward)
	loop.RunUntil(second(2.2))
	if n := len(h2.got); n < 20 {
		t.Errorf("%d frames arrived once the pauses are ignored", n)
	}
	dog.Set(nil)
	if storms := dog.Storms(); !slices.Equal(storms, []externs.Storm{{Port: 2, Class: 3, Count: 1}}) {
		t.Errorf("without a watchdog: %v", storms)
	}
	n := len(h2.got)
	h2.send(second(2.3), pauseFrame(65535, 3))
	loop.RunUntil(second(4))
	if len(h2.got) > n+2 {
		t.Errorf("%d frames arrived after a PAUSE without a watchdog", len(h2.got)-n)
	}
}

// TestCarrierLossIsNoStorm: a host pauses class 3 once, as any host may, and then its cable is
// cut. Nothing can resume the class any more, so the loss of the carrier resumes it, and the
// watchdog finds no storm.
func TestCarrierLossIsNoStorm(t *testing.T) {
	loop, s, h1, h2 := pausable(t, PFC{Enabled: true, Watch: externs.Settings{Detection: 2 * units.Second}}, pfcRate)
	h2.send(0, pauseFrame(65535, 3)) // 4.2 s
	h1.send(100*ms, frame(2, 3, 1, 100))
	loop.RunUntil(units.Second)
	if len(h2.got) != 0 {
		t.Fatalf("%d frames passed a pause", len(h2.got))
	}
	s.portState(2, false)
	loop.RunUntil(4 * units.Second)
	if st := stats(t, s, 2).PFC; st.Storms[3] != 0 || st.Storming != 0 {
		t.Errorf("after the cut: %+v, want no storm", st)
	}
	// During a storm, the cut ends the storm.
	h2.send(4*units.Second, pauseFrame(65535, 3))
	loop.RunUntil(7 * units.Second)
	if st := stats(t, s, 2).PFC; st.Storming != 1<<3 {
		t.Fatalf("%+v, want a storm", st)
	}
	s.portState(2, false)
	if st := stats(t, s, 2).PFC; st.Storming != 0 || st.Storms[3] != 1 {
		t.Errorf("after the second cut: %+v, want one storm that is over", st)
	}
}
