package agent

import (
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// PFCStats count what priority-based flow control did to a host.
type PFCStats struct {
	Frames  uint64                           // PFC frames obeyed
	Ignored uint64                           // MAC control frames that were malformed or no PFC
	Classes [packet.PFCClasses]packet.Pauses // of each class
}

// defaultClass is the class of a DSCP that the configuration does not name: the class
// selector that it belongs to (RFC 2474 §4.2.2.1), so that AF3x and CS3 are class 3 and CS6
// is class 6.
func defaultClass(dscp uint8) uint8 { return dscp >> 3 }

// classes returns the class of every DSCP.
func (c *Config) classes() (all [64]uint8) {
	for dscp := range all {
		class, ok := c.Classes[uint8(dscp)]
		if !ok {
			class = defaultClass(uint8(dscp))
		}
		all[dscp] = class
	}
	return all
}

// onMACControl obeys a PFC frame (IEEE Std 802.1Qbb): a class that it enables sends nothing
// for its quanta of 512 bit times at the link's rate, or goes on when they are 0. The frame
// on the wire is not touched.
func (a *Agent) onMACControl(now units.Time, frame []byte) {
	st := &a.counts.PFC
	var p packet.PFC
	if a.cfg.IgnorePFC || p.Decode(frame) != nil {
		st.Ignored++
		return
	}
	st.Frames++
	for class, quanta := range p.Quanta {
		if p.Enabled>>class&1 == 0 {
			continue
		}
		st.Classes[class].Set(now, now+a.cfg.Rate.PauseTime(quanta))
	}
	for _, f := range a.byQP {
		if p.Enabled>>f.class&1 != 0 {
			f.s.Pause(now, st.Classes[f.class].Until)
			a.schedule(f, now)
		}
	}
}

// answersFrom returns when answers may go out, as far as PFC is concerned.
func (a *Agent) answersFrom() units.Time { return a.counts.PFC.Classes[a.ackClass].Until }
