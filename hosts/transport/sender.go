package transport

import (
	"cmp"
	"fmt"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/units"
)

// SenderConfig is the configuration of a sender. The zero value of a timeout means its default.
type SenderConfig struct {
	Law  law.Law     // decides window and pacing; owned by the sender from now on
	MSS  units.Bytes // payload of a full packet, 1 to 65 000 B
	Size units.Bytes // size of the flow; 0 for an endless flow

	// Running says that the law already got its Start, with an earlier flow on the same connection. FirstSeq is
	// the number of bytes that flow sent.
	Running  bool
	FirstSeq uint64

	// Spread, if it is not 0, spreads each window over a round trip: data leave no faster than a window per
	// smoothed round trip. Until the first sample the round trip is Spread.
	Spread units.Time

	// InitialRTO holds until the first RTT sample, 1 s by default (RFC 6298 §2.1).
	InitialRTO units.Time
	// MinRTO is the least retransmission timeout, 1 ms by default. MaxRTO bounds its back-off, 4 s by default;
	// if the measured round trips need a longer timeout, it is longer (RFC 6298 §2.4 has 60 s for all).
	MinRTO, MaxRTO units.Time
	// MaxLate is how late Send may be called without the flow losing rate; 0, the default,
	// is one packet's time. Only drivers on a real clock need more.
	MaxLate units.Time
}

// maxInflight bounds the packets in flight under any law.
const maxInflight = 1 << 16

// SenderStats are a sender's counters.
type SenderStats struct {
	Sent        uint64      // data packets, retransmissions included
	Acked       units.Bytes // payload acknowledged
	MaxQD       units.Time  // value in the last acknowledgement
	Retransmits uint64
	Naks        uint64
	Timeouts    uint64
	Probes      uint64     // probe packets
	Stale       uint64     // acknowledgements of packets that were not sent
	SRTT        units.Time // smoothed round-trip time, 0 before the first sample
	LeastRTT    units.Time // the shortest round trip, 0 before the first sample
}

// Segment is one packet to put on the wire.
type Segment struct {
	Index      uint64 // packet number; its PSN is PSN(Index)
	Offset     uint64 // offset of the first byte in the flow
	Len        units.Bytes
	Last       bool // ends the flow
	Retransmit bool
	// Probe marks a packet without payload, which the receiver answers immediately. It counts for nothing else.
	// Index is then the probe's number, for PSN and the answer.
	Probe bool
}

// Feedback is the content of an acknowledgement packet.
type Feedback struct {
	PSN   uint32
	Nak   bool // PSN sequence error: PSN is the packet missing; else the last received
	Probe bool // answers the probe whose number PSN is, not data
	CE    bool
	Delay units.Time // one-way delay of the packet answered, 0 when unknown
	// Noise is an error that is added to the measured round trip. Simulators draw it; real packets have 0,
	// because their clocks have errors of their own.
	Noise units.Time
	MaxQD units.Time
	INT   []law.Hop

	ack law.Ack // OnFeedback's input to the law
}

// Sender is the sending side of one flow. Times never decrease from call to call. Its driver owns it. The
// senders of thousands of flows do not fit into a cache, so the fields that every packet uses are together, and
// rarely used ones come last.
type Sender struct {
	cfg   SenderConfig
	total uint64 // packets of the flow, MaxUint64 when endless

	una  uint64 // oldest packet not acknowledged
	next uint64 // packet to send next
	high uint64 // first packet never sent
	ring sendRing

	pace     pacer
	round    rounding
	rtt      rttEstimator
	deadline units.Time // retransmission timeout; MaxTime when nothing is in flight
	backoff  uint8      // timeouts since the last sample of the round trip
	stalled  bool       // no acknowledgement since the last timeout
	paused   bool       // Pause was called at least once, so that pauses matters
	counts   SenderStats
	probe    prober
	pauses   pauses
}

// NewSender returns a sender whose flow starts at time now.
func NewSender(cfg SenderConfig, now units.Time) (*Sender, error) {
	cfg.InitialRTO = cmp.Or(cfg.InitialRTO, units.Second)
	cfg.MinRTO = cmp.Or(cfg.MinRTO, units.Millisecond)
	cfg.MaxRTO = cmp.Or(cfg.MaxRTO, 4*units.Second)
	switch {
	case cfg.Law == nil:
		return nil, fmt.Errorf("law: a sender needs one")
	case cfg.MSS < 1 || cfg.MSS > 65000:
		return nil, fmt.Errorf("MSS %v: want 1 to 65000 B", cfg.MSS)
	case cfg.Size < 0:
		return nil, fmt.Errorf("size %d B: want 0 (endless) or more", int64(cfg.Size))
	case cfg.MinRTO < 0 || cfg.MaxRTO < cfg.MinRTO || cfg.InitialRTO < 0:
		return nil, fmt.Errorf("retransmission timeout %v within %v to %v: want positive times in order", cfg.InitialRTO, cfg.MinRTO, cfg.MaxRTO)
	case cfg.MaxLate < 0:
		return nil, fmt.Errorf("lateness %v: want 0 or more", cfg.MaxLate)
	}
	s := &Sender{cfg: cfg, total: ^uint64(0), pace: pacer{from: now}, deadline: units.MaxTime}
	if cfg.Size > 0 {
		s.total = uint64((cfg.Size + cfg.MSS - 1) / cfg.MSS)
	}
	if !cfg.Running {
		cfg.Law.OnEvent(law.Start, now)
	}
	return s, nil
}

// Ready returns when the next packet may leave: a time not after now when it may already,
// units.MaxTime when only an acknowledgement or timer can change that.
func (s *Sender) Ready(now units.Time) units.Time {
	if s.next >= s.total || s.next-s.una >= maxInflight {
		return units.MaxTime
	}
	a := s.allowance()
	if a.Rate <= 0 || a.Window <= 0 {
		if a.Probe == 0 {
			return units.MaxTime
		}
		return max(a.Probe, now)
	}
	if s.next != s.una {
		if have := s.inflight(); have >= a.Window || have+s.length(s.next) > a.Window && s.round.owed < 0 {
			return units.MaxTime
		}
	}
	return max(s.pace.next(a.Rate), now)
}

func (s *Sender) allowance() law.Allowance {
	a := s.cfg.Law.Allowance()
	if s.cfg.Spread > 0 && a.Rate > 0 && a.Window > 0 && a.Window < law.Unbounded {
		rtt := s.cfg.Spread
		if s.rtt.srtt > 0 {
			rtt = s.rtt.srtt
		}
		a.Rate = min(a.Rate, max(units.RateOf(a.Window, rtt), 1))
	}
	return a
}

// Send returns the next packet, data or a probe. The caller has checked with Ready that it may leave now.
func (s *Sender) Send(now units.Time) Segment {
	a := s.allowance()
	if a.Rate <= 0 || a.Window <= 0 {
		return s.sendProbe(now)
	}
	s.count(a.Window, now)
	i := s.next
	seg := Segment{Index: i, Offset: uint64(s.bytes(i)), Len: s.length(i), Last: i+1 == s.total, Retransmit: i < s.high}
	s.ring.put(i, s.una, now, seg.Retransmit)
	s.next++
	if seg.Retransmit {
		s.counts.Retransmits++
	} else {
		s.high = s.next
	}
	s.counts.Sent++
	if s.paused && !seg.Retransmit {
		s.pauses.time(i, now)
	}
	if s.deadline == units.MaxTime {
		s.startTimeout(now)
	}
	s.pace.sent(seg.Len, a.Rate, now, s.cfg.MaxLate)
	return seg
}

// OnFeedback takes an acknowledgement or NAK. It returns false if the packet does not match a packet that was
// sent.
func (s *Sender) OnFeedback(fb *Feedback, now units.Time) bool {
	if fb.Probe {
		return s.onProbeAnswer(fb, now)
	}
	i, ok := Unwrap(s.una, fb.PSN)
	upto := i // packets before upto have arrived
	if !fb.Nak {
		upto++
	}
	if !ok || upto > s.high || (fb.Nak && upto < s.una) {
		s.counts.Stale++
		return false
	}
	s.count(s.cfg.Law.Allowance().Window, now)
	var acked units.Bytes
	rtt := s.rtt.srtt
	if upto > s.una {
		sent, resent := s.ring.get(upto - 1)
		// A packet sent twice does not say which sending was answered (Karn).
		if !resent && now > sent {
			rtt = now - sent + fb.Noise
			s.sample(rtt)
			if s.paused {
				s.pauses.sample(upto, now)
			}
		}
		acked = s.bytes(upto) - s.bytes(s.una)
		s.una = upto
		s.next = max(s.next, upto) // the ACK of a packet that a go-back meant to send again
		s.counts.Acked += acked
		s.stalled = false
		s.restartTimeout(now)
	}
	if fb.Nak {
		s.counts.Naks++
		if s.goBack() {
			s.cfg.Law.OnEvent(law.Loss, now)
		}
	}
	s.counts.MaxQD = fb.MaxQD
	if rtt <= 0 {
		return true // nothing to tell a law before the first sample
	}
	s.acknowledge(fb, now, rtt, acked)
	return true
}

// sample takes a round trip and ends the back-off. Only a sample may end it: after the acknowledgement
// of a packet sent twice the timeout stays as long as it is (RFC 6298 §5, Karn). Otherwise a path
// slower than the timeout would never be measured.
func (s *Sender) sample(rtt units.Time) {
	s.rtt.sample(rtt)
	s.backoff = 0
}

func (s *Sender) acknowledge(fb *Feedback, now, rtt units.Time, acked units.Bytes) {
	fb.ack = law.Ack{
		Now: now, RTT: rtt, Delay: fb.Delay, Acked: acked, Inflight: s.inflight(),
		AckedSeq: s.cfg.FirstSeq + uint64(s.bytes(s.una)), SentSeq: s.cfg.FirstSeq + uint64(s.bytes(s.next)),
		CE: fb.CE, MaxQD: fb.MaxQD, Probe: fb.Probe, INT: fb.INT,
	}
	s.cfg.Law.OnAck(&fb.ack)
}

func (s *Sender) restartTimeout(now units.Time) {
	s.deadline = units.MaxTime
	if s.una < s.high || s.probe.out {
		s.startTimeout(now)
	}
}

func (s *Sender) startTimeout(now units.Time) {
	s.deadline = now + s.rto(&s.rtt)
	if !s.paused {
		return
	}
	own := &s.rtt
	if s.pauses.rtt.srtt > 0 {
		own = &s.pauses.rtt
	}
	s.pauses.deadline = max(now, s.pauses.until) + s.rto(own)
}

// Deadline returns when OnTimer must be called, units.MaxTime for never.
func (s *Sender) Deadline() units.Time {
	return min(s.timeoutAt(), s.cfg.Law.Timer())
}

func (s *Sender) timeoutAt() units.Time {
	if s.paused {
		return max(s.deadline, s.pauses.deadline)
	}
	return s.deadline
}

// OnTimer runs the timers that are due at now; calling it early or late is harmless.
func (s *Sender) OnTimer(now units.Time) {
	if s.cfg.Law.Timer() <= now {
		s.cfg.Law.OnEvent(law.Tick, now)
	}
	if s.timeoutAt() > now {
		return
	}
	s.counts.Timeouts++
	s.stalled = true
	s.backoff = min(s.backoff+1, 16)
	s.goBack()
	s.probe.out = false
	s.restartTimeout(now)
	s.cfg.Law.OnEvent(law.Loss, now)
}

// OnEvent passes an event such as a CNP on to the law.
func (s *Sender) OnEvent(e law.Event, now units.Time) { s.cfg.Law.OnEvent(e, now) }

// Stalled reports whether no acknowledgement came since the last timeout.
func (s *Sender) Stalled() bool { return s.stalled }

// Done reports whether all of a flow with an end has been acknowledged.
func (s *Sender) Done() bool { return s.una >= s.total }

// SetLaw replaces the flow's law. Packets in flight stay in flight.
func (s *Sender) SetLaw(l law.Law, now units.Time) {
	s.cfg.Law = l
	l.OnEvent(law.Start, now)
}

// Law returns the sender's law, to change its weight or read its state.
func (s *Sender) Law() law.Law { return s.cfg.Law }

// Stats returns the counts so far.
func (s *Sender) Stats() SenderStats {
	st := s.counts
	st.SRTT, st.LeastRTT = s.rtt.srtt, s.rtt.least
	return st
}

func (s *Sender) goBack() bool {
	moved := s.next > s.una
	s.next = s.una
	s.pauses.timed = false
	return moved
}

func (s *Sender) rto(of *rttEstimator) units.Time {
	t := of.timeout(s.cfg.InitialRTO, s.cfg.MinRTO)
	limit := max(s.cfg.MaxRTO, t)
	if t > limit>>s.backoff {
		return limit
	}
	return t << s.backoff
}

func (s *Sender) inflight() units.Bytes { return s.bytes(s.next) - s.bytes(s.una) }

func (s *Sender) bytes(i uint64) units.Bytes {
	if i >= s.total {
		return s.cfg.Size
	}
	return units.Bytes(i) * s.cfg.MSS
}

func (s *Sender) length(i uint64) units.Bytes { return s.bytes(i+1) - s.bytes(i) }

// prober is the state of a sender's probes: packets without payload that a law asks for to learn the path's
// delay while it sends no data (PrioPlus §4.2.1). Probes have their own numbers and do not change the order of
// data. Only the answer to the latest probe counts.
type prober struct {
	number uint32 // number of the latest probe, 24 bits
	out    bool   // its answer has not arrived yet
	sent   units.Time
}

func (s *Sender) sendProbe(now units.Time) Segment {
	s.probe = prober{number: (s.probe.number + 1) & psnMask, out: true, sent: now}
	s.counts.Probes++
	if s.deadline == units.MaxTime {
		s.startTimeout(now)
	}
	s.cfg.Law.OnEvent(law.ProbeSent, now)
	return Segment{Index: uint64(s.probe.number), Probe: true}
}

// onProbeAnswer takes the answer to a probe; false when it is not the one waited for.
func (s *Sender) onProbeAnswer(fb *Feedback, now units.Time) bool {
	if !s.probe.out || fb.PSN != s.probe.number || now <= s.probe.sent {
		s.counts.Stale++
		return false
	}
	s.probe.out = false
	rtt := now - s.probe.sent + fb.Noise
	s.sample(rtt)
	s.stalled = false
	s.restartTimeout(now)
	s.counts.MaxQD = fb.MaxQD
	s.acknowledge(fb, now, rtt, 0)
	return true
}
