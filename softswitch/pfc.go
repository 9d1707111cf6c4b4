package softswitch

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/internal/pfcwd"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// NoClass is the class of a queue that no PFC frame pauses.
const NoClass = -1

// PFC says whether and how the ports of a switch obey priority-based flow control (IEEE Std
// 802.1Qbb). It is off by default, as in BMv2, whose pipeline sees MAC control frames like
// all others.
//
// When it is on, the ports consume every MAC control frame (EtherType 0x8808), as a MAC
// does. A PFC frame pauses the queues of the classes that it names, on the port that it
// arrived on, for its quanta of 512 bit times at the port's rate; time 0 resumes them. The
// frame on the wire goes on. All other MAC control frames are counted and ignored.
type PFC struct {
	Enabled bool
	// Classes has the class of each queue, 0 to 7 or NoClass. By default queues 0 to 6 are
	// the classes of their numbers and higher ones have none: class 7 is for network control
	// (IEEE Std 802.1Q, annex I), and the frames with which a switch itself pauses others
	// must get through a port that is paused in all classes.
	Classes []int
	// Deliver hands MAC control frames to the pipeline as well.
	Deliver bool
	// UnlimitedRate is the rate whose bit times count on a port that has none,
	// DefaultUnlimitedRate when zero.
	UnlimitedRate units.Rate
	// Watch is the watchdog for pauses that do not end, until a controller sets it; off by
	// default.
	Watch pfcwd.Settings
}

// DefaultUnlimitedRate is the speed that Linux reports for virtual interfaces (veth, tun).
const DefaultUnlimitedRate = 10 * units.Gbps

// PFCStats count the MAC control frames that a port took. A frame that names several
// classes counts in each.
type PFCStats struct {
	Frames  uint64                    // PFC frames obeyed
	Pauses  [packet.PFCClasses]uint64 // that paused the class, or went on with its pause
	Resumes [packet.PFCClasses]uint64 // that resumed the class, whether it was paused or not
	// Storms counts how often the watchdog found the class paused for too long, StormDropped
	// what it dropped of the class since. Storming has a bit for each class in a storm now.
	Storms, StormDropped [packet.PFCClasses]uint64
	Storming             uint8
	// NoQueue counts classes named that have no queue, once for each frame and class.
	NoQueue   uint64
	Malformed uint64 // PFC frames that were short, misaddressed or had reserved bits; ignored
	Other     uint64 // MAC control frames with another opcode; ignored
}

// flowControl is what the data plane knows to obey PFC. It does not change.
type flowControl struct {
	PFC
	cpu    uint32 // whose frames come from the controller; beyond all ports when there is none
	queues [packet.PFCClasses][]int
}

// newFlowControl returns nil when PFC is off.
func newFlowControl(p PFC, queues int, cpu uint32) (*flowControl, error) {
	if !p.Enabled {
		return nil, nil
	}
	if p.Classes == nil {
		p.Classes = make([]int, queues)
		for q := range p.Classes {
			p.Classes[q] = q
			if q >= packet.PFCClasses-1 {
				p.Classes[q] = NoClass
			}
		}
	}
	if len(p.Classes) != queues {
		return nil, fmt.Errorf("PFC classes of %d queues: want one for each of the %d queues", len(p.Classes), queues)
	}
	if p.UnlimitedRate < 0 {
		return nil, fmt.Errorf("PFC rate of unlimited ports %d bps: want more than 0, or 0 for %v", int64(p.UnlimitedRate), DefaultUnlimitedRate)
	}
	if p.UnlimitedRate == 0 {
		p.UnlimitedRate = DefaultUnlimitedRate
	}
	var err error
	if p.Watch, err = p.Watch.WithDefaults(); err != nil {
		return nil, err
	}
	f := &flowControl{PFC: p, cpu: cpu}
	for q, class := range p.Classes {
		switch {
		case class == NoClass:
		case class < 0 || class >= packet.PFCClasses:
			return nil, fmt.Errorf("PFC class %d of queue %d: want 0 to %d, or %d for none", class, q, packet.PFCClasses-1, NoClass)
		default:
			f.queues[class] = append(f.queues[class], q)
		}
	}
	return f, nil
}

// consumes reports whether a frame is for the port's MAC, which forwards it to nobody.
func (f *flowControl) consumes(number uint32, frame []byte) bool {
	return f != nil && packet.IsMACControl(frame) && number != f.cpu
}

// obey takes a MAC control frame that arrived on an existing port at time now, after all
// that was due before it. a is what the watchdog does.
func (f *flowControl) obey(m *tm.Manager, number uint32, state *portState, frame []byte, now units.Time, a pfcwd.Action) {
	st := &state.info.PFC
	var p packet.PFC
	if err := p.Decode(frame); err != nil {
		if errors.Is(err, packet.ErrPFCOpcode) {
			st.Other++
		} else {
			st.Malformed++
		}
		return
	}
	st.Frames++
	rate := m.Rate(number)
	if rate == 0 {
		rate = f.UnlimitedRate
	}
	for class, quanta := range p.Quanta {
		if p.Enabled>>class&1 == 0 {
			continue
		}
		if quanta > 0 {
			st.Pauses[class]++
		} else {
			st.Resumes[class]++
		}
		if len(f.queues[class]) == 0 {
			st.NoQueue++
		}
		until := now + rate.PauseTime(quanta)
		r := &state.received[class]
		if quanta == 0 {
			r.resume(now)
		} else if !r.pause(now, until, a) {
			continue
		}
		for _, q := range f.queues[class] {
			_ = m.Pause(number, q, until, now) // both exist
		}
	}
}
