// Package law defines congestion laws. A law is a small state machine without a clock: it is fed with
// acknowledgements and events, and it returns the rate and window of one flow. The host agent drives laws with
// real packets, the fabric simulator with virtual ones.
package law

import (
	"math/rand/v2"

	"github.com/headgate/headgate/units"
)

// Law governs one flow. It is owned by the flow's sender; calls never overlap. Times never
// decrease from call to call.
type Law interface {
	// OnAck takes one acknowledgement. The Ack is valid until OnAck returns.
	OnAck(a *Ack)
	// OnEvent takes anything else that happens to the flow.
	OnEvent(e Event, now units.Time)
	// Timer returns when the law next needs a Tick event, units.MaxTime for never.
	Timer() units.Time
	// Allowance returns the limits of the flow now.
	Allowance() Allowance
}

// Weighted is a Law whose share of a bottleneck follows a weight.
type Weighted interface {
	Law
	// SetWeight changes the weight immediately. If w is not finite and positive, it returns an error and
	// changes nothing.
	SetWeight(w float64) error
}

// Untimed is embedded by laws that need no Tick event.
type Untimed struct{}

// Timer implements Law.
func (Untimed) Timer() units.Time { return units.MaxTime }

// Ack is the content of an acknowledgement for the sender of a flow.
type Ack struct {
	Now      units.Time
	RTT      units.Time  // round-trip time of the acknowledged packet; > 0
	Delay    units.Time  // one-way delay of the data packet, 0 when the receiver's clock is unknown
	Acked    units.Bytes // payload newly acknowledged in order; 0 for a duplicate
	Inflight units.Bytes // unacknowledged payload after this acknowledgement
	AckedSeq uint64      // first byte not yet acknowledged
	SentSeq  uint64      // first byte not yet sent
	CE       bool        // the data packet carried ECN CE
	MaxQD    units.Time  // largest queueing delay of the data packet's hops (Söze)
	Probe    bool        // answers a probe, not data (PrioPlus)
	INT      []Hop       // per-hop telemetry in path order (HPCC, PowerTCP); nil when absent
}

// Hop is one hop's telemetry as HPCC (SIGCOMM 2019, §3) defines it.
type Hop struct {
	Rate    units.Rate  // rate of the egress link
	Time    units.Time  // when the packet left the switch
	TxBytes units.Bytes // cumulative bytes sent by the egress
	Queue   units.Bytes // egress queue length when the packet left
}

// Event is an event of a flow besides an acknowledgement.
type Event uint8

// The events.
const (
	Start     Event = iota // the flow begins
	Tick                   // the time that Timer named has come
	CNP                    // a congestion notification packet arrived
	Loss                   // go-back-N detected a gap, or data or a probe timed out
	ProbeSent              // the probe that Allowance.Probe asked for has left
)

// Unbounded is a window that bounds nothing.
const Unbounded units.Bytes = 1 << 62

// Allowance holds the limits of a flow. A flow obeys all of them.
type Allowance struct {
	Rate   units.Rate  // pacing rate of payload; 0 = no data at all
	Window units.Bytes // limit of payload in flight; 0 = none
	// Probe asks for one probe packet at this time; 0 = none. It counts only while Rate or Window is 0.
	// ProbeSent reports that the probe has left, an Ack with Probe set that it was answered, and Loss that it
	// may have been lost.
	Probe units.Time
}

// Flow is a law's information on its flow and path at the flow's start.
type Flow struct {
	Rate     units.Rate  // rate of the host's NIC, as seen by payload
	BaseRTT  units.Time  // round trip of a full packet and its ACK over the empty path; 0 when unknown
	OneWay   units.Time  // delay of a full packet over the empty path; 0 if it is not measured
	MSS      units.Bytes // payload of a full packet
	Hops     int         // links on the path; 0 when unknown
	Size     units.Bytes // 0 for a flow without end
	Deadline units.Time  // time after the flow's start; 0 for none
	Weight   float64
	// Target and Limit are the flow's channel (PrioPlus), with the base delay included; 0 means the law's
	// own parameters.
	Target, Limit units.Time
	Scale         float64    // the factor that stretches the papers' times; 0 means 1
	Rand          *rand.Rand // source of the laws' random numbers
}

// BDP returns the payload that fills the base round trip.
func (f *Flow) BDP() units.Bytes { return f.Rate.BytesIn(f.BaseRTT) }

// Stretch returns a time from a paper, scaled to this path.
func (f *Flow) Stretch(t units.Time) units.Time {
	if f.Scale == 0 {
		return t
	}
	return units.Time(float64(t) * f.Scale)
}
