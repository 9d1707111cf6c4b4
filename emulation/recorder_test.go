package emulation

import (
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// pfc is a PAUSE of n quanta for some classes; 0 quanta make it a RESUME.
func pfc(classes uint8, n uint16) *packet.PFC {
	p := &packet.PFC{Enabled: classes}
	for c := range p.Quanta {
		p.Quanta[c] = n
	}
	return p
}

func TestPauseMeter(t *testing.T) {
	const us = units.Microsecond
	type event struct {
		at units.Time
		p  *packet.PFC
	}
	// At 512 Mb/s a quantum is 1 µs.
	tests := []struct {
		name                       string
		events                     []event
		end, total                 units.Time
		pauses, refreshes, resumes uint64
	}{
		{"nothing", nil, 10 * us, 0, 0, 0, 0},
		{"paused and resumed", []event{{10 * us, pfc(1, 100)}, {40 * us, pfc(1, 0)}}, 1000 * us, 30 * us, 1, 0, 1},
		{"expires", []event{{10 * us, pfc(1, 100)}}, 1000 * us, 100 * us, 1, 0, 0},
		{"still paused at the end", []event{{10 * us, pfc(1, 100)}}, 50 * us, 40 * us, 1, 0, 0},
		{"a refresh goes on", []event{{10 * us, pfc(1, 100)}, {60 * us, pfc(1, 100)}}, 1000 * us, 150 * us, 1, 1, 0},
		{"after it expired it is new", []event{{10 * us, pfc(1, 100)}, {210 * us, pfc(1, 100)}}, 1000 * us, 200 * us, 2, 0, 0},
		{"two classes count once", []event{{10 * us, pfc(1, 100)}, {20 * us, pfc(2, 100)}, {30 * us, pfc(1, 0)}}, 1000 * us, 110 * us, 2, 0, 1},
		{"a whole port", []event{{10 * us, pfc(0xff, 100)}, {20 * us, pfc(0xff, 0)}}, 1000 * us, 10 * us, 1, 0, 1},
		{"no class", []event{{10 * us, pfc(0, 100)}}, 1000 * us, 0, 0, 0, 1},
	}
	for _, tt := range tests {
		m := PauseMeter{rate: 512 * units.Mbps}
		for _, e := range tt.events {
			m.Saw(e.p, e.at)
		}
		if m.paused.Total(tt.end) != tt.total || m.pauses != tt.pauses || m.refreshes != tt.refreshes || m.resumes != tt.resumes {
			t.Errorf("%s: paused for %v by %d PAUSE, %d refreshes and %d RESUME, want %v by %d, %d and %d",
				tt.name, m.paused.Total(tt.end), m.pauses, m.refreshes, m.resumes, tt.total, tt.pauses, tt.refreshes, tt.resumes)
		}
	}
}

// TestMetersTakeTheRateOfWhoIsPaused: the ends of the link have different rates, and the meter uses
// that of the paused end.
func TestMetersTakeTheRateOfWhoIsPaused(t *testing.T) {
	m := NewMeters([]network.Wire{
		{From: config.Endpoint{Node: "s", Port: 1}, To: config.Endpoint{Node: "h"}, Rate: 100 * units.Mbps},
		{From: config.Endpoint{Node: "h"}, To: config.Endpoint{Node: "s", Port: 1}, Rate: 512 * units.Mbps},
	})
	m[0].Saw(pfc(1, 7), 0) // the switch pauses the host
	if m[0].paused.Total(units.Second) != 7*units.Microsecond {
		t.Errorf("7 quanta stop the host at 512 Mb/s for %v, want 7 µs", m[0].paused.Total(units.Second))
	}
}
