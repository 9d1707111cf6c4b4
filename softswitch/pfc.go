package softswitch

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"

	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// NoClass is the class of a queue that no PFC frame pauses.
const NoClass = -1

// PFC says whether and how the ports of a switch obey priority-based flow control (IEEE Std
// 802.1Qbb). It is off by default. MAC control frames then pass the pipeline like other frames, as
// in BMv2.
//
// When it is on, the ports consume every MAC control frame (EtherType 0x8808), as a MAC does. A
// PFC frame pauses the queues of the classes that it names, on the port that it arrived on, for
// its quanta of 512 bit times at the port's rate; time 0 resumes them. The frame on the wire is
// sent to its end. All other MAC control frames are counted and ignored, and so is the PAUSE of a
// class without a queue. A controller may replace the queues of all classes.
type PFC struct {
	Enabled bool
	// Classes has the class of each queue, 0 to 7 or NoClass. By default queues 0 to 6 have the
	// class of their number and higher queues have none. Class 7 is for network control (IEEE Std
	// 802.1Q, annex I): the switch's own PAUSE frames must leave even by a port that is paused in
	// all classes. A controller may replace the map.
	Classes []int
	// Watch configures the watchdog for pauses that do not end, until a controller replaces it;
	// off by default.
	Watch externs.Settings
}

// unlimitedRate defines bit times on a port without a rate. It is the speed that Linux reports for
// virtual interfaces (veth, tun).
const unlimitedRate = 10 * units.Gbps

// PFCStats counts the MAC control frames that a port consumed. A frame that names several classes
// counts in each.
type PFCStats struct {
	Frames  uint64                    // well-formed PFC frames
	Pauses  [packet.PFCClasses]uint64 // PAUSEs that started or prolonged a pause of the class
	Resumes [packet.PFCClasses]uint64 // RESUMEs of the class, paused or not
	// Storms counts the storms that the watchdog found in each class, and StormDropped the packets
	// that it dropped in them. Storming has a bit for each class that is in a storm now.
	Storms, StormDropped [packet.PFCClasses]uint64
	Storming             uint8
	// Ignored counts the PAUSEs of a class that stop no queue, because the class is not lossless at the port or has none.
	Ignored   [packet.PFCClasses]uint64
	Malformed uint64 // PFC frames that were short, misaddressed or had reserved bits; ignored
	Other     uint64 // MAC control frames with another opcode; ignored
}

// flowControl holds the configuration of PFC. It does not change.
type flowControl struct {
	PFC
	cpu    uint32           // the CPU port, whose frames are never MAC control frames; above all port numbers if there is none
	queues externs.Lossless // the queues of each class, derived from Classes
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
			f.queues[class] |= 1 << q
		}
	}
	return f, nil
}

// consumes reports whether a frame is for the port's MAC, which does not forward it.
func (f *flowControl) consumes(number uint32, frame []byte) bool {
	return f != nil && packet.IsMACControl(frame) && number != f.cpu
}

// obey processes a MAC control frame that arrived on an existing port at time now. The caller has
// processed all events that were due before now.
func (c *dataplane) obey(number uint32, state *portState, frame []byte, now units.Time) {
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
	rate := cmp.Or(c.tm.Rate(number), unlimitedRate)
	for class, quanta := range p.Quanta {
		r := &state.received[class]
		switch until := now + rate.PauseTime(quanta); {
		case p.Enabled>>class&1 == 0:
		case quanta == 0:
			st.Resumes[class]++
			r.resume(now)
			c.pause(number, class, now, now)
		case c.lossless[class] == 0 || !c.obeyed.Obeys(number, class):
			st.Ignored[class]++
		default:
			st.Pauses[class]++
			if r.pause(now, until, c.watch) {
				c.pause(number, class, until, now)
			}
		}
	}
}

// pause stops the queues of a class at an existing port until a time. If the time is now, it
// resumes them.
func (c *dataplane) pause(number uint32, class int, until, now units.Time) {
	for left := c.lossless[class]; left != 0; left &= left - 1 {
		_ = c.tm.Pause(number, bits.TrailingZeros32(left), until, now) // cannot fail: port and queue exist
	}
}

func (c *dataplane) forget(number uint32, class int, now units.Time) {
	r := &c.ports[number].received[class]
	if r.storm {
		c.stormed(number, class, false)
	}
	*r = received{since: now, until: now, heard: r.heard}
	c.pause(number, class, now, now)
}

// setLossless replaces the queues that a PAUSE of each class stops. A class whose queues change is
// no longer paused; it obeys again from the next PAUSE on.
func (c *dataplane) setLossless(l externs.Lossless, now units.Time) {
	c.classes(func(number uint32, class int, _ *portState) {
		if l[class] != c.lossless[class] {
			c.forget(number, class, now)
		}
	})
	c.lossless = l
}

// setObeyed replaces the ports that differ in the classes whose PAUSEs they obey. A class that a port obeys no longer is
// no longer paused there.
func (c *dataplane) setObeyed(o externs.Obeyed, now units.Time) {
	c.classes(func(number uint32, class int, _ *portState) {
		if c.obeyed.Obeys(number, class) && !o.Obeys(number, class) {
			c.forget(number, class, now)
		}
	})
	c.obeyed = o
}

func (c *dataplane) setWeights(w externs.Weights, _ units.Time) {
	var shares []tm.Share // nil: the schedule of the start
	if w != (externs.Weights{}) {
		weights := make([]int, c.tm.Queues())
		for q := range weights {
			weights[q] = int(w[q])
		}
		shares = tm.Weighted(weights)
	}
	_ = c.tm.SetSchedule(shares) // cannot fail: the weights have been checked
}

// setting gives the control plane access to a value that the switch starts with and a controller
// may replace. The switch's lock guards set.
type setting[T any] struct {
	*Switch
	initial T
	set     *T // nil while initial is in force
	apply   func(T, units.Time)
}

// Settings implements entity.Setting.
func (s *setting[T]) Settings() (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		return s.initial, false
	}
	return *s.set, true
}

// Set implements entity.Setting.
func (s *setting[T]) Set(to *T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set = to; to == nil {
		to = &s.initial
	}
	s.apply(*to, s.driver.time())
	s.reschedule()
}
