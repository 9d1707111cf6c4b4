package externs

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/units"
)

// Action is the treatment of the queues of a class whose peer pauses it for too long.
type Action string

// The actions, by SONiC's names.
const (
	Drop    Action = "drop"    // drop queued and arriving packets
	Forward Action = "forward" // the pauses are ignored
	Alert   Action = "alert"   // the watchdog only raises the alarm
)

// Settings are the watchdog's settings for all ports of a switch. The watchdog protects a lossless
// fabric from a peer that keeps a class paused, because that stops everything behind it.
type Settings struct {
	// Detection is the length of a window. A class that is paused for Share of it is in a storm; 0 switches the
	// watchdog off.
	Detection units.Time
	// Share is the share of Detection, more than 0 to 1; 0 means DefaultShare. With 1 only a pause without a
	// break is a storm.
	Share float64
	// Restoration is the time without a PAUSE after which the class obeys again; 0 means Detection.
	Restoration units.Time
	// Action is Drop when empty, as in SONiC.
	Action Action
	// Default says that no user asked for the settings. A switch whose flags set a watchdog then keeps that
	// one, and a switch that obeys no PFC ignores the settings.
	Default bool
}

// DefaultShare lets up to 49 senders share one port without a storm: the port pauses each for 48 of 49 packets.
const DefaultShare = 0.98

// Slack returns the longest time of Detection that a class in a storm may be unpaused.
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
	Class   uint8  // priority of IEEE 802.1Q
	On      bool   // the class is in a storm now
	Count   uint64 // number of storms
	Dropped uint64 // frames of the class in storms
}

// Lossless holds, for each class, the egress queues that a PAUSE of the class stops at all ports of a switch, a
// bit for each queue. A class without queues is not lossless: its PAUSEs are ignored. A queue has one class at
// most.
type Lossless [8]uint32

// Class returns the class of a queue, -1 when it has none.
func (l Lossless) Class(queue int) int {
	for class, queues := range l {
		if queues>>queue&1 != 0 {
			return class
		}
	}
	return -1
}

const classField = "class_"

// Entity returns the classes as P4Runtime carries them; equal classes are equal messages.
func (l Lossless) Entity() *p4v1.Entity {
	fields := map[string]any{}
	for class, queues := range l {
		var list []any
		for left := queues; left != 0; left &= left - 1 {
			list = append(list, bits.TrailingZeros32(left))
		}
		if queues != 0 {
			fields[classField+strconv.Itoa(class)] = list
		}
	}
	return pack(LosslessID, fields)
}

// ReadLossless returns the classes of an instance for a switch with some queues, 1 to 32. The error says which
// field has which value, and what is allowed.
func ReadLossless(e *p4v1.ExternEntry, queues int) (l Lossless, err error) {
	fields, err := unpack(e)
	if err != nil {
		return l, err
	}
	for name, v := range fields.GetFields() {
		number, found := strings.CutPrefix(name, classField)
		class, err := strconv.Atoi(number)
		if !found || err != nil || class < 0 || class >= len(l) || number != strconv.Itoa(class) {
			return Lossless{}, fmt.Errorf("field %q of the lossless classes is unknown, want class_0 to class_%d", name, len(l)-1)
		}
		for _, v := range v.GetListValue().GetValues() {
			q, other := int(v.GetNumberValue()), -1
			_, isNumber := v.GetKind().(*structpb.Value_NumberValue)
			if !isNumber || q < 0 || q >= queues || float64(q) != v.GetNumberValue() {
				return Lossless{}, fmt.Errorf("%s has the queue %v, want 0 to %d", name, v.AsInterface(), queues-1)
			}
			if other = l.Class(q); other >= 0 && other != class {
				return Lossless{}, fmt.Errorf("%s has the queue %d, which class %d has, want each queue in one class", name, q, other)
			}
			l[class] |= 1 << q
		}
		if l[class] == 0 {
			return Lossless{}, fmt.Errorf("%s is %v, want a list of its queues", name, v.AsInterface())
		}
	}
	return l, nil
}
