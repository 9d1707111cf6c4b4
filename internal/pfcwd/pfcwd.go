// Package pfcwd is the watchdog for received PFC as SONiC's pfcwd has it: what an operator sets,
// what a switch sees, and how P4Runtime carries both (ExternEntry, P4Runtime 1.4 §9.10). The
// watchdog is a part of the target and not of its program, so no P4Info declares it.
package pfcwd

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Action is the treatment of the queues of a class whose peer pauses it for too long.
type Action string

// The actions, by SONiC's names.
const (
	Drop    Action = "drop"    // what is queued and what comes is dropped in place of being sent
	Forward Action = "forward" // the pauses are ignored
	Alert   Action = "alert"   // nothing but the alarm
)

// Settings are the watchdog's settings for all ports of a switch. The watchdog protects a lossless
// fabric from a peer that keeps a class paused, because that stops everything behind it.
type Settings struct {
	// Detection is the window of which a class may be paused for less than Share; 0 switches the watchdog off.
	Detection units.Time
	// Share is the share of Detection, more than 0 to 1; 0 means DefaultShare. With 1 only a pause without a
	// break is a storm.
	Share float64
	// Restoration is the time without a PAUSE after which the class obeys again; 0 means Detection.
	Restoration units.Time
	// Action is Drop when empty, as in SONiC.
	Action Action
}

// DefaultShare leaves each of up to 49 senders to one port, which pauses each for 48 of 49 packets, without a storm.
const DefaultShare = 0.98

// Slack returns how much of Detection a class may be unpaused in a storm.
func (s Settings) Slack() units.Time {
	return s.Detection - units.Time(s.Share*float64(s.Detection))
}

// WithDefaults checks settings and fills in defaults.
func (s Settings) WithDefaults() (Settings, error) {
	if s.Detection < 0 {
		return s, fmt.Errorf("detection time of the PFC watchdog %v: want more than 0, or 0 for none", s.Detection)
	}
	if s.Restoration < 0 {
		return s, fmt.Errorf("restoration time of the PFC watchdog %v: want more than 0, or 0 for the detection time", s.Restoration)
	}
	if s.Share == 0 {
		s.Share = DefaultShare
	}
	if !(s.Share > 0 && s.Share <= 1) {
		return s, fmt.Errorf("share of the PFC watchdog %v: want more than 0 to 1, or 0 for %v", s.Share, DefaultShare)
	}
	if s.Restoration == 0 {
		s.Restoration = s.Detection
	}
	switch s.Action {
	case "":
		s.Action = Drop
	case Drop, Forward, Alert:
	default:
		return s, fmt.Errorf("action of the PFC watchdog %q: want %s, %s or %s", s.Action, Drop, Forward, Alert)
	}
	return s, nil
}

// Storm is the watchdog's record of a class at a port since the switch started.
type Storm struct {
	Port    uint32
	Class   uint8  // of IEEE 802.1Q
	On      bool   // the class is in a storm now
	Count   uint64 // of storms
	Dropped uint64 // frames of the class in storms
}
