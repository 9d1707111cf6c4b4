package registry_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/registry"
	"github.com/headgate/headgate/units"
)

const us = units.Microsecond

func flow() law.Flow {
	return law.Flow{
		Rate: 100 * units.Gbps, BaseRTT: 12 * us, OneWay: 6 * us, MSS: 1000, Hops: 4, Size: units.MB, Deadline: units.Millisecond,
		Weight: 1, Rand: rand.New(rand.NewPCG(1, 2)),
	}
}

func make1(t *testing.T, kind string, given map[string]string, f law.Flow) (law.Law, error) {
	t.Helper()
	m, err := registry.Find(kind).Maker(given)
	if err != nil {
		t.Fatal(err)
	}
	return m.NewLaw(f)
}

// Every law can be made with its defaults, and each parameter has a name, a meaning and a kind.
func TestKinds(t *testing.T) {
	names := registry.Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names %v, want each once, in order", names)
	}
	for i := range registry.Kinds {
		k := &registry.Kinds[i]
		l, err := make1(t, k.Name, nil, flow())
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		l.OnEvent(law.Start, 0)
		if a := l.Allowance(); a.Rate <= 0 && a.Probe == 0 {
			t.Errorf("%s: allowance %+v at the start", k.Name, a)
		}
		seen := map[string]bool{}
		for _, p := range k.Params() {
			if p.Name == "" || p.Doc == "" || p.Kind == "" || seen[p.Name] || strings.ToLower(p.Name) != p.Name {
				t.Errorf("%s: parameter %+v", k.Name, p)
			}
			seen[p.Name] = true
		}
	}
	if registry.Find("reno") != nil {
		t.Error("found a law that there is not")
	}
}

// A given value counts as it is, also 0 and false; only a missing value gets the default. In each
// case here, 0 has another effect than the default.
func TestZeroIsWhatWasSaid(t *testing.T) {
	for _, tt := range []struct {
		kind, name, value, want string // want is an error, "" for none
	}{
		{"dcqcn-vendor", "keep_target", "false", ""},
		{"dcqcn-vendor", "cut_interval", "0s", ""},
		{"dcqcn", "byte_counter", "0B", ""},
		{"hpcc", "max_stage", "0", ""},
		{"prioplus-swift", "tolerance", "0s", ""},
		{"prioplus-swift", "filter", "0", "filter 0: want 1 or more"},
		{"prioplus-swift", "under.beta", "0", "under.beta 0: want more than 0 and at most 1"},
		{"ledbat", "allowed_increase", "0", ""},
		{"ledbat", "filter", "0", "filter 0: want 1 to 16"},
		{"swift", "increase", "0B", "increase 0B: want more than 0B"},
		{"timely", "hyper_after", "0", "hyper_after 0: want 1 or more"},
		{"soze", "m", "0", "m 0: want more than 0 and less than 2"},
		{"powertcp", "flows", "0", "flows 0: want 1 or more"},
		{"dctcp", "gain", "0", "gain 0: want more than 0 and at most 1"},
	} {
		_, err := make1(t, tt.kind, map[string]string{tt.name: tt.value}, flow())
		if got := text(err); got != tt.want {
			t.Errorf("%s with %s=%s: error %q, want %q", tt.kind, tt.name, tt.value, got, tt.want)
		}
	}
	cuts := func(given map[string]string) (rate units.Rate, target units.Time) {
		l, err := make1(t, "dcqcn-vendor", given, flow())
		if err != nil {
			t.Fatal(err)
		}
		l.OnEvent(law.CNP, 0)
		l.OnEvent(law.CNP, us)
		return l.Allowance().Rate, l.Timer()
	}
	if rate, at := cuts(nil); rate != 50*units.Gbps || at != 4*us {
		t.Errorf("two notifications within 4 us: %v, timer at %v; want one cut and the other waiting", rate, at)
	}
	if rate, _ := cuts(map[string]string{"cut_interval": "0s"}); rate >= 30*units.Gbps {
		t.Errorf("two notifications with cut_interval=0s: %v, want two cuts", rate)
	}
}

func TestUnknownParameters(t *testing.T) {
	for _, tt := range []struct{ kind, name, value, want string }{
		{"swift", "mss", "1B", "mss 1B: no such parameter, want base_rtt, target_above, target, "},
		{"none", "speed", "1", "speed 1: no such parameter, want window, window_bdp or rate"},
		{"prioplus-swift", "beta", "1", "beta 1: no such parameter, want one_way, "},
		{"dcqcn", "keep_target", "0", "keep_target 0: want true or false"},
		{"dcqcn", "fast_recovery", "1.5", "fast_recovery 1.5: want a whole number"},
		{"dcqcn", "gain", "NaN", "gain NaN: want a finite number"},
		{"prioplus-ledbat", "level", "top", "level top: want low, middle or high"},
	} {
		if _, err := registry.Find(tt.kind).Maker(map[string]string{tt.name: tt.value}); !strings.HasPrefix(text(err), tt.want) {
			t.Errorf("%s: error %q, want %q", tt.kind, text(err), tt.want)
		}
	}
}

// The papers' times are scaled; given times are not.
func TestScale(t *testing.T) {
	f := flow()
	f.Scale = 1000
	for given, want := range map[string]units.Time{"": 300 * units.Millisecond, "5us": 5 * us} {
		set := map[string]string{}
		if given != "" {
			set["increase_timer"] = given
		}
		l, err := make1(t, "dcqcn-vendor", set, f)
		if err != nil {
			t.Fatal(err)
		}
		l.OnEvent(law.CNP, 0)
		if l.Timer() != want {
			t.Errorf("increase_timer %q: timer at %v, want %v", given, l.Timer(), want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Any settings give a law or an error, and the law accepts any events.
func FuzzParams(f *testing.F) {
	for i := range registry.Kinds {
		for j := range registry.Kinds[i].Params() {
			f.Add(uint8(i), uint8(j), "0", "1us")
			f.Add(uint8(i), uint8(j), "9223372036854775806ps", "1e308")
		}
	}
	f.Fuzz(func(t *testing.T, kind, at uint8, one, two string) {
		k := &registry.Kinds[int(kind)%len(registry.Kinds)]
		params := k.Params()
		if len(params) == 0 {
			return
		}
		given := map[string]string{params[int(at)%len(params)].Name: one, params[(int(at)+1)%len(params)].Name: two}
		m, err := k.Maker(given)
		if err != nil {
			return
		}
		l, err := m.NewLaw(flow())
		if err != nil {
			return
		}
		l.OnEvent(law.Start, 0)
		for i := range units.Time(4) {
			l.OnAck(&law.Ack{Now: i * 20 * us, RTT: 20 * us, Delay: 8 * us, Acked: 1000, AckedSeq: uint64(1000 * i), SentSeq: uint64(9000 + 1000*i), Inflight: 9000, CE: true})
			l.OnEvent(law.CNP, i*20*us)
			l.OnEvent(law.Loss, i*20*us)
		}
		if a := l.Allowance(); a.Rate < 0 || a.Window < 0 {
			t.Errorf("%s with %v: allowance %+v", k.Name, given, a)
		}
	})
}
