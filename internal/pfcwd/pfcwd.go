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
// fabric from a peer that pauses a class without a break, because that stops everything behind it.
type Settings struct {
	// Detection is how long a class may be paused without a break; 0 switches the watchdog off.
	Detection units.Time
	// Restoration is the time without a PAUSE after which the class obeys again; 0 means Detection.
	Restoration units.Time
	// Action is Drop when empty, as in SONiC.
	Action Action
}

// WithDefaults checks settings and fills in defaults.
func (s Settings) WithDefaults() (Settings, error) {
	if s.Detection < 0 {
		return s, fmt.Errorf("detection time of the PFC watchdog %v: want more than 0, or 0 for none", s.Detection)
	}
	if s.Restoration < 0 {
		return s, fmt.Errorf("restoration time of the PFC watchdog %v: want more than 0, or 0 for the detection time", s.Restoration)
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
