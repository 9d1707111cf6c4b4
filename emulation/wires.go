package emulation

import (
	"encoding/binary"
	"slices"

	"github.com/headgate/headgate/emulation/network"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// PauseMeter counts the PFC frames that come to the end of one wire and for how long they
// stop whoever sends there, by the frames alone. The loop's goroutine owns it.
type PauseMeter struct {
	rate units.Rate // of the port that is paused; its bit times are the quanta's

	until  [packet.PFCClasses]units.Time // 0 or past: not paused
	paused packet.Pauses                 // the times in which at least one class was

	// A frame that pauses no class that was not paused already is a refresh.
	pauses, refreshes, resumes uint64
}

// Saw takes a PFC frame.
func (m *PauseMeter) Saw(p *packet.PFC, now units.Time) {
	var pauses, fresh bool
	for c := range m.until {
		if p.Enabled>>c&1 == 0 {
			continue
		}
		if p.Quanta[c] == 0 {
			m.until[c] = 0
			continue
		}
		pauses = true
		fresh = fresh || m.until[c] <= now
		m.until[c] = now + m.rate.PauseTime(p.Quanta[c])
	}
	m.paused.Set(now, slices.Max(m.until[:]))
	switch {
	case fresh:
		m.pauses++
	case pauses:
		m.refreshes++
	default:
		m.resumes++
	}
}

// Meters is one meter for each wire.
type Meters []PauseMeter

// NewMeters returns meters for wires; a PAUSE that comes by a wire stops its opposite.
func NewMeters(wires []network.Wire) Meters {
	m := make(Meters, len(wires))
	for i := range wires {
		m[i].rate = wires[i^1].Rate
	}
	return m
}

// frames returns the PAUSE frames of all wires so far, refreshes left out.
func (m Meters) frames() (n uint64) {
	for i := range m {
		n += m[i].pauses
	}
	return n
}

// tracer records which wires each traced flow's packets come by, in order. It is how a run
// knows a flow's path: from the packets, not from what the controller meant. The loop's
// goroutine owns it.
type tracer map[traceKey]*[]int

// traceKey is the sending end of a flow.
type traceKey struct {
	src  [4]byte
	port uint16
}

// Offsets in an untagged Ethernet frame with an IPv4 header without options.
const (
	offEtherType = 12
	offProtocol  = 23
	offSrcAddr   = 26
	offSrcPort   = 34
	traceBytes   = 36
)

func keyOf(k agent.FlowKey) traceKey { return traceKey{k.Src.As4(), k.SrcPort} }

// start forgets what is known of a flow and traces it from now on.
func (t tracer) start(k agent.FlowKey) { t[keyOf(k)] = new([]int) }

// path returns the wires that the flow's packets were seen on since start.
func (t tracer) path(k agent.FlowKey) []int {
	if p := t[keyOf(k)]; p != nil {
		return *p
	}
	return nil
}

// saw takes a frame at the end of a wire.
func (t tracer) saw(wire int, frame []byte) {
	if len(t) == 0 || len(frame) < traceBytes || binary.BigEndian.Uint16(frame[offEtherType:]) != 0x0800 || frame[offProtocol] != 17 {
		return
	}
	key := traceKey{[4]byte(frame[offSrcAddr:]), binary.BigEndian.Uint16(frame[offSrcPort:])}
	if p := t[key]; p != nil && !slices.Contains(*p, wire) {
		*p = append(*p, wire)
	}
}
