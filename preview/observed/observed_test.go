package observed

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// flow is a flow from host n to host m, with its port.
func flow(n, m, port int, acked uint64) Flow {
	at := func(i, port int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), uint16(port))
	}
	return Flow{Src: at(n, port), Dst: at(m, 4791), Acked: acked, Weight: 1}
}

func text(t Traffic) string {
	s := ""
	for _, p := range t.Pairs {
		s += fmt.Sprintf("%v→%v %d B, %d begun, %d ended with %d B, %d at most, %d run; ", p.Src, p.Dst, p.Bytes, p.Begun, p.Ended, p.EndedBytes, p.Largest, p.Running)
	}
	for _, f := range t.FanIns {
		s += fmt.Sprintf("%d to %v; ", f.Degree, f.Dst)
	}
	return s
}

func TestTraffic(t *testing.T) {
	second := func(n float64) time.Time { return begin.Add(time.Duration(n * float64(time.Second))) }
	var table Table
	if got := table.Traffic(); !got.Since.IsZero() || len(got.Pairs) != 0 {
		t.Errorf("before the first report: %+v", got)
	}
	for _, step := range []struct {
		host  string
		at    float64
		flows []Flow
		want  string
	}{
		{"h1", 0, []Flow{flow(1, 9, 1, 5000)}, "10.0.0.1→10.0.0.9 0 B, 0 begun, 0 ended with 0 B, 0 at most, 1 run; "}, // its start was not seen
		{"h1", 1, []Flow{flow(1, 9, 1, 8000), flow(1, 9, 2, 100)}, "10.0.0.1→10.0.0.9 3100 B, 1 begun, 0 ended with 0 B, 0 at most, 2 run; "},
		{"h2", 1.1, nil, "10.0.0.1→10.0.0.9 3100 B, 1 begun, 0 ended with 0 B, 0 at most, 2 run; "},
		{"h2", 1.4, []Flow{flow(2, 9, 1, 50)}, "10.0.0.1→10.0.0.9 3100 B, 1 begun, 0 ended with 0 B, 0 at most, 2 run; 10.0.0.2→10.0.0.9 50 B, 1 begun, 0 ended with 0 B, 0 at most, 1 run; 2 to 10.0.0.9; "},
		{"h1", 2, []Flow{flow(1, 9, 2, 40)}, // the first has ended; another flow has the second's ports
			"10.0.0.1→10.0.0.9 3140 B, 2 begun, 2 ended with 8100 B, 8000 at most, 1 run; 10.0.0.2→10.0.0.9 50 B, 1 begun, 0 ended with 0 B, 0 at most, 1 run; 2 to 10.0.0.9; "},
	} {
		table.Report(step.host, second(step.at), step.flows)
		if got := text(table.Traffic()); got != step.want {
			t.Errorf("at %v s: %s, want %s", step.at, got, step.want)
		}
	}
	table.Gone("h1") // the end of its flows is not reported
	// One window later, flows that are two windows old are forgotten.
	table.Report("h2", begin.Add(Window), []Flow{flow(2, 9, 1, 60)})
	if got := table.Traffic(); got.Since != begin || got.Pairs[1].Bytes != 60 || got.Pairs[0].Running != 0 {
		t.Errorf("after a window: %+v", got)
	}
	table.Report("h2", begin.Add(2*Window), []Flow{flow(2, 9, 1, 61)})
	if got := table.Traffic(); got.Since != begin.Add(Window) || len(got.Pairs) != 1 || got.Pairs[0].Bytes != 11 || len(got.FanIns) != 0 {
		t.Errorf("after two windows: %+v", got)
	}
}

// TestBeginsAreForgotten: a host may name any destination. Starts in past windows are not kept.
func TestBeginsAreForgotten(t *testing.T) {
	var table Table
	table.Report("h1", begin, nil)
	for i := range 10 {
		at := begin.Add(time.Second + time.Duration(i)*Window)
		table.Report("h1", at, []Flow{flow(1, 100+i, 1, 50)})
		if got := len(table.began); got != 1 {
			t.Errorf("window %d: the begins of flows to %d destinations are kept, want 1", i, got)
		}
	}
	// A fan-in that spans the end of a window is one fan-in.
	at := begin.Add(time.Second + 10*Window)
	table.Report("h2", at.Add(-Together), nil)
	table.Report("h1", at.Add(-Together/2), []Flow{flow(1, 9, 1, 50)})
	table.Report("h2", at.Add(Together/4), []Flow{flow(2, 9, 1, 50)})
	if got := table.Traffic().FanIns; len(got) != 1 || got[0].Degree != 2 {
		t.Errorf("fan-ins %v, want one of 2", got)
	}
}

// TestBound: traffic between more pairs than a window can hold is left out without harm.
func TestBound(t *testing.T) {
	var table Table
	flows := make([]Flow, 0, maxPairs+10)
	for i := range maxPairs + 10 {
		f := flow(1, 2, 1, 1)
		f.Dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 1)
		flows = append(flows, f)
	}
	table.Report("h1", begin, flows)
	table.Report("h1", begin.Add(time.Second), nil)
	if got := len(table.Traffic().Pairs); got != maxPairs {
		t.Errorf("%d pairs, want %d", got, maxPairs)
	}
}
