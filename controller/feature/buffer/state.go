package buffer

import (
	"time"

	"github.com/headgate/headgate/p4src/pollreport"
)

// State is the state of a switch's buffer: its policy, the last poll of each port, and the alarms that
// are on.
type State struct {
	// Policy is as in the configuration; the rest is empty when it is "off".
	Policy string
	// Time of the last poll that came back; zero when none has.
	Time time.Time
	// Size is the size of each pool under the policy. Used and Peak are each pool's bytes at the last poll
	// and at its fullest since the switch started.
	Size, Used, Peak pollreport.Pools
	// Threshold is T(t) at the last poll, in bytes.
	Threshold uint64
	Ports     []PortState
	Alarms    []Alarm
}

// PortState is one ingress port. Counts run from the start of the switch.
type PortState struct {
	Number uint32
	Peer   string
	// Lossless has a bit for each class under PFC.
	Lossless uint8
	// Victim says that SPFC lets the port have the whole shared pool.
	Victim bool
	// Turns counts how often the port became a victim's or normal again, as seen by polls,
	// since the controller follows it.
	Turns uint64
	// Paused are the classes that the peer was told to stop, bit n for class n. PortPaused
	// says that DSH stopped the port as a whole.
	Paused     uint8
	PortPaused bool
	// PausedTime is how long each class was paused, as seen by polls, since the controller
	// follows it.
	PausedTime [8]time.Duration
	// Pauses and Resumes are PFC frames, Refreshes those that repeat a PAUSE.
	Pauses, Resumes, Refreshes uint64
	// Late is how long after half of a PAUSE's time the controller repeated it last; MostLate
	// is the most since the controller follows the port. A PAUSE has expired when it is
	// repeated later than by the other half.
	Late, MostLate time.Duration
	// Private, Shared and Headroom are bytes of each class. Insured bytes are in Shared too.
	Private, Shared, Headroom [8]uint32
	Insured                   uint32
	// Departed are bytes of lossless classes that came in here and have left the switch.
	Departed uint64
	// LosslessDrops are packets of each class under PFC that were dropped: an error.
	LosslessDrops [8]uint64

	out egress
}

// Kinds of alarms.
const (
	StormAlarm = "pfc.storm"            // more PAUSE frames than section buffer.watchdog allows
	StuckAlarm = "pfc.stuck"            // paused for longer than section buffer.watchdog allows
	LateAlarm  = "pfc.refresh_late"     // a PAUSE expired before it was repeated
	DropAlarm  = "buffer.lossless_drop" // a packet of a lossless class was dropped
)

var alarmKinds = []string{StormAlarm, StuckAlarm, LateAlarm, DropAlarm}

// Alarm is something wrong with PFC that lasts. An event with the same Kind tells its
// begin, and one with "_over" behind it its end.
type Alarm struct {
	Kind string
	Port uint32
	// Class under PFC; −1 where it is about the port.
	Class int
	Since time.Time
	Text  string

	pauser string // the host whose PAUSEs it is, "" where it is none's
}
