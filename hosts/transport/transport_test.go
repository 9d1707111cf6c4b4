package transport_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// fixed always allows the same window and rate, and records its calls.
type fixed struct {
	allow  law.Allowance
	acks   []law.Ack
	events []law.Event
	timer  units.Time
}

func (f *fixed) OnAck(a *law.Ack)                    { f.acks = append(f.acks, *a) }
func (f *fixed) OnEvent(e law.Event, now units.Time) { f.events = append(f.events, e) }
func (f *fixed) Timer() units.Time                   { return f.timer }
func (f *fixed) Allowance() law.Allowance            { return f.allow }

func newFixed(rate units.Rate, window units.Bytes) *fixed {
	return &fixed{allow: law.Allowance{Rate: rate, Window: window}, timer: units.MaxTime}
}

func newSender(t testing.TB, cfg transport.SenderConfig) *transport.Sender {
	t.Helper()
	s, err := transport.NewSender(cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnwrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		near := rapid.Uint64Range(0, 1<<40).Draw(t, "near")
		off := rapid.Int64Range(-(1<<23)+1, 1<<23-1).Draw(t, "offset")
		want := int64(near) + off
		got, ok := transport.Unwrap(near, transport.PSN(uint64(want)))
		if want < 0 {
			if ok {
				t.Fatalf("packet %d before the first was read as %d", want, got)
			}
			return
		}
		if !ok || got != uint64(want) {
			t.Fatalf("Unwrap(%d, PSN of %d) = %d, %v", near, want, got, ok)
		}
	})
}

func TestSenderConfigIsChecked(t *testing.T) {
	ok := transport.SenderConfig{Law: newFixed(1, 1), MSS: 1000}
	for name, bad := range map[string]func(*transport.SenderConfig){
		"no law":    func(c *transport.SenderConfig) { c.Law = nil },
		"no MSS":    func(c *transport.SenderConfig) { c.MSS = 0 },
		"big MSS":   func(c *transport.SenderConfig) { c.MSS = 70000 },
		"size":      func(c *transport.SenderConfig) { c.Size = -1 },
		"RTO order": func(c *transport.SenderConfig) { c.MinRTO, c.MaxRTO = 2, 1 },
	} {
		cfg := ok
		bad(&cfg)
		if _, err := transport.NewSender(cfg, 0); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// drain sends as much as allowed at now and returns the packet numbers.
func drain(s *transport.Sender, now units.Time) (sent []uint64) {
	for s.Ready(now) <= now {
		sent = append(sent, s.Send(now).Index)
	}
	return sent
}

func TestWindowPacingAndRTT(t *testing.T) {
	l := newFixed(8*units.Mbps, 3000) // 1000 B a millisecond, three packets in flight
	s := newSender(t, transport.SenderConfig{Law: l, MSS: 1000})
	ms := units.Millisecond
	for i := range 3 {
		now := units.Time(i) * ms
		if at := s.Ready(now); at != now {
			t.Fatalf("packet %d ready at %v, want %v", i, at, now)
		}
		if seg := s.Send(now); seg.Offset != uint64(i)*1000 || seg.Len != 1000 || seg.Retransmit {
			t.Fatalf("segment %+v", seg)
		}
		if at := s.Ready(now); i < 2 && at != now+ms {
			t.Fatalf("next packet ready at %v, want pacing at %v", at, now+ms)
		}
	}
	if at := s.Ready(10 * ms); at != units.MaxTime {
		t.Fatalf("window full, but ready at %v", at)
	}
	s.OnFeedback(&transport.Feedback{PSN: 0, MaxQD: 7, CE: true}, 10*ms)
	if len(l.acks) != 1 {
		t.Fatalf("%d acknowledgements reached the law", len(l.acks))
	}
	want := law.Ack{Now: 10 * ms, RTT: 10 * ms, Acked: 1000, Inflight: 2000, AckedSeq: 1000, SentSeq: 3000, CE: true, MaxQD: 7}
	if got := l.acks[0]; got.RTT != want.RTT || got.Acked != want.Acked || got.Inflight != want.Inflight ||
		got.AckedSeq != want.AckedSeq || got.SentSeq != want.SentSeq || !got.CE || got.MaxQD != 7 || got.Now != want.Now {
		t.Errorf("ack %+v, want %+v", got, want)
	}
	if got := drain(s, 10*ms); len(got) != 1 || got[0] != 3 {
		t.Errorf("an acknowledgement let %v go, want packet 3", got)
	}
}

// A window of a fractional number of packets is in flight on average, whether or not packets leave together.
func TestFractionalWindow(t *testing.T) {
	const rtt, until = 26 * units.Microsecond, 20 * units.Millisecond
	for _, window := range []units.Bytes{1200, 2500, 5700, 20900, 31500, 31736, 78441} {
		for _, pace := range []float64{1.25, 1000} { // times the rate that fills the window
			rate := units.Rate(pace * float64(window) * 8 / rtt.Seconds())
			s := newSender(t, transport.SenderConfig{Law: newFixed(rate, window), MSS: 1000})
			var flight []units.Time // when the packets in flight are acknowledged
			now, acked, sum := units.Time(1), uint64(0), 0.0
			for now < until {
				for s.Ready(now) <= now {
					s.Send(now)
					flight = append(flight, now+rtt)
				}
				next := min(s.Ready(now), flight[0])
				sum += float64(len(flight)) * float64(next-now)
				now = next
				for len(flight) > 0 && flight[0] == now {
					s.OnFeedback(&transport.Feedback{PSN: transport.PSN(acked)}, now)
					acked, flight = acked+1, flight[1:]
				}
			}
			if mean := sum / float64(now) * 1000; mean < float64(window)*0.99 || mean > float64(window)*1.01 {
				t.Errorf("window %v, pacing at %v times the rate: %.0f B in flight on average", window, pace, mean)
			}
		}
	}
}

func TestNakGoesBack(t *testing.T) {
	l := newFixed(units.Rate(8e15), 10000) // practically no pacing
	s := newSender(t, transport.SenderConfig{Law: l, MSS: 1000})
	for now := range units.Time(100) {
		drain(s, now)
	}
	s.OnFeedback(&transport.Feedback{PSN: 4, Nak: true}, 100) // 0 to 3 arrived, 4 is missing
	st := s.Stats()
	if st.Acked != 4000 || st.Naks != 1 {
		t.Errorf("stats %+v", st)
	}
	if n := len(l.events); l.events[n-1] != law.Loss {
		t.Errorf("events %v, want a loss last", l.events)
	}
	seg := s.Send(200)
	if seg.Index != 4 || !seg.Retransmit {
		t.Errorf("after the NAK: %+v, want packet 4 again", seg)
	}
	// The acknowledgement of a packet that was sent twice gives no RTT sample.
	before := s.Stats().SRTT
	s.OnFeedback(&transport.Feedback{PSN: 4}, 5000)
	if s.Stats().SRTT != before {
		t.Errorf("SRTT moved from %v to %v", before, s.Stats().SRTT)
	}
	s.OnFeedback(&transport.Feedback{PSN: 500}, 5001)
	s.OnFeedback(&transport.Feedback{PSN: 1 << 23, Nak: true}, 5002)
	if s.Stats().Stale != 2 {
		t.Errorf("%d stale acknowledgements, want 2", s.Stats().Stale)
	}
}

func TestTimeoutBacksOff(t *testing.T) {
	l := newFixed(units.Gbps, 2000)
	s := newSender(t, transport.SenderConfig{Law: l, MSS: 1000, InitialRTO: 10, MinRTO: 5, MaxRTO: 35})
	if s.Deadline() != units.MaxTime {
		t.Fatal("a deadline with nothing in flight")
	}
	s.Send(0)
	var gaps []units.Time
	now := units.Time(0)
	for range 4 {
		gaps = append(gaps, s.Deadline()-now)
		now = s.Deadline()
		s.OnTimer(now - 1) // too early: nothing happens
		s.OnTimer(now)
		if seg := s.Send(now); seg.Index != 0 || !seg.Retransmit {
			t.Fatalf("after a timeout: %+v", seg)
		}
	}
	want := []units.Time{10, 20, 35, 35}
	for i := range want {
		if gaps[i] != want[i] {
			t.Fatalf("timeouts after %v, want %v", gaps, want)
		}
	}
	if st := s.Stats(); st.Timeouts != 4 || st.Retransmits != 4 {
		t.Errorf("stats %+v", st)
	}
}

// TestTimeoutOutgrowsSlowPath uses a path without loss whose round trip is three times the first timeout. The
// timeout grows until a packet that was sent once is acknowledged. After that no packet is sent twice.
func TestTimeoutOutgrowsSlowPath(t *testing.T) {
	const rtt = 3 * units.Millisecond
	s := newSender(t, transport.SenderConfig{Law: newFixed(10*units.Mbps, 5000), MSS: 1000, InitialRTO: units.Millisecond, MinRTO: units.Millisecond})
	type answer struct {
		at  units.Time
		psn uint32
	}
	var answers []answer
	received, late := uint64(0), uint64(0)
	for now := units.Time(0); now < units.Second; {
		if s.Ready(now) <= now {
			seg := s.Send(now)
			if seg.Retransmit && now > units.Second/2 {
				late++
			}
			if seg.Index == received {
				received++
			}
			answers = append(answers, answer{now + rtt, transport.PSN(received - 1)})
			continue
		}
		next := min(s.Ready(now), s.Deadline())
		if len(answers) > 0 && answers[0].at <= next {
			now = answers[0].at
			s.OnFeedback(&transport.Feedback{PSN: answers[0].psn}, now)
			answers = answers[1:]
			continue
		}
		now = next
		s.OnTimer(now)
	}
	if st := s.Stats(); late != 0 || st.SRTT != rtt || st.Timeouts > 4 {
		t.Errorf("%d packets sent again in the second half, stats %+v", late, st)
	}
}

// TestTimeoutCoversTheRoundTrip: behind a queue of six seconds, longer than MaxRTO, a packet that only waits is
// not sent again, and MaxRTO does not cut the back-off.
func TestTimeoutCoversTheRoundTrip(t *testing.T) {
	const rtt = 6 * units.Second
	s := newSender(t, transport.SenderConfig{Law: newFixed(units.Mbps, 2000), MSS: 1000, InitialRTO: 10 * units.Second, MaxRTO: 4 * units.Second})
	s.Send(0)
	s.Send(8 * units.Millisecond)
	s.OnFeedback(&transport.Feedback{PSN: 0}, rtt)
	if got := s.Deadline() - rtt; got < rtt {
		t.Fatalf("the first timeout after %v: want at least the round trip %v", got, rtt)
	}
	now := s.Deadline()
	s.OnTimer(now)
	s.Send(now)
	if got := s.Deadline() - now; got < rtt {
		t.Errorf("the second timeout after %v: want at least the round trip %v", got, rtt)
	}
}

func TestLawTimerTicks(t *testing.T) {
	l := newFixed(units.Gbps, 1000)
	l.timer = 50
	s := newSender(t, transport.SenderConfig{Law: l, MSS: 1000})
	if s.Deadline() != 50 {
		t.Fatalf("deadline %v, want the law's timer", s.Deadline())
	}
	s.OnTimer(50)
	if n := len(l.events); n != 2 || l.events[1] != law.Tick {
		t.Errorf("events %v, want start and tick", l.events)
	}
}

func TestReceiver(t *testing.T) {
	var r transport.Receiver
	step := func(psn uint32, last, deliver bool, reply transport.Reply, replyPSN uint32) {
		t.Helper()
		d, a, p := r.OnData(psn, last)
		if d != deliver || a != reply || (a != transport.Silent && p != replyPSN) {
			t.Fatalf("PSN %d: %v, %v, %d; want %v, %v, %d", psn, d, a, p, deliver, reply, replyPSN)
		}
	}
	step(1, false, false, transport.Nak, 0) // the very first packet was lost
	step(2, false, false, transport.Silent, 0)
	step(0, false, true, transport.Ack, 0)
	step(1, true, true, transport.Ack, 1)
	step(0, false, false, transport.Ack, 1) // duplicate
	step(3, false, false, transport.Nak, 2)
	step(4, false, false, transport.Silent, 0)
	step(2, false, true, transport.Ack, 2)
	step(4, false, false, transport.Nak, 3) // a new gap
	if r.MSN() != 1 || r.Next() != 3 {
		t.Errorf("MSN %d, next %d", r.MSN(), r.Next())
	}
}

// Over a network that loses, duplicates and reorders packets in both directions, every byte is delivered once and
// in order, and the sender learns of it.
func TestEveryByteOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const mss = 100
		size := units.Bytes(rapid.IntRange(1, 6000).Draw(t, "size"))
		loss := rapid.Float64Range(0, 0.4).Draw(t, "loss")
		twice := rapid.Float64Range(0, 0.3).Draw(t, "duplication")
		jitter := rapid.Int64Range(1, 400).Draw(t, "jitter")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		l := newFixed(units.Rate(8*units.Second), units.Bytes(rapid.IntRange(1, 3000).Draw(t, "window"))) // 1 B/ps
		s, err := transport.NewSender(transport.SenderConfig{Law: l, MSS: mss, Size: size, InitialRTO: 2000, MinRTO: 1000, MaxRTO: 8000}, 0)
		if err != nil {
			t.Fatal(err)
		}
		type message struct {
			at  units.Time
			seg *transport.Segment
			fb  *transport.Feedback
		}
		var r transport.Receiver
		var flying []message
		launch := func(now units.Time, m message) {
			for n := 0; n == 0 || rng.Float64() < twice; n++ {
				if rng.Float64() >= loss {
					m.at = now + 100 + units.Time(rng.Int64N(jitter))
					flying = append(flying, m)
				}
			}
		}
		got := units.Bytes(0)
		now := units.Time(0)
		for steps := 0; !s.Done(); steps++ {
			if steps > 200000 {
				t.Fatalf("not done after %d steps: %d of %d bytes, %+v", steps, got, size, s.Stats())
			}
			next := min(s.Ready(now), s.Deadline())
			soonest := -1
			for i, m := range flying {
				if m.at <= next {
					next, soonest = m.at, i
				}
			}
			if next == units.MaxTime {
				t.Fatalf("stuck with %d of %d bytes delivered", got, size)
			}
			now = max(now, next)
			switch {
			case soonest >= 0:
				m := flying[soonest]
				flying = append(flying[:soonest], flying[soonest+1:]...)
				if m.fb != nil {
					s.OnFeedback(m.fb, now)
					break
				}
				deliver, reply, psn := r.OnData(transport.PSN(m.seg.Index), m.seg.Last)
				if deliver {
					if m.seg.Offset != uint64(got) {
						t.Fatalf("delivered offset %d after %d bytes", m.seg.Offset, got)
					}
					got += m.seg.Len
				}
				if reply != transport.Silent {
					launch(now, message{fb: &transport.Feedback{PSN: psn, Nak: reply == transport.Nak}})
				}
			case s.Deadline() <= now:
				s.OnTimer(now)
			default:
				seg := s.Send(now)
				launch(now, message{seg: &seg})
			}
		}
		if got != size || r.MSN() != 1 || s.Stats().Acked != size {
			t.Fatalf("delivered %d of %d bytes, MSN %d, acknowledged %v", got, size, r.MSN(), s.Stats().Acked)
		}
	})
}

func BenchmarkSendAndAcknowledge(b *testing.B) {
	l := &quiet{law.Allowance{Rate: units.Rate(8 * units.Second), Window: 100_000}}
	s := newSender(b, transport.SenderConfig{Law: l, MSS: 1000})
	var r transport.Receiver
	now, i := units.Time(0), uint64(0)
	var fb transport.Feedback
	b.ReportAllocs()
	for b.Loop() {
		now += 1000
		if s.Ready(now) <= now {
			i = s.Send(now).Index
		}
		_, _, fb.PSN = r.OnData(transport.PSN(i), false)
		s.OnFeedback(&fb, now+500)
	}
}

type quiet struct{ a law.Allowance }

func (q *quiet) OnAck(*law.Ack)                {}
func (q *quiet) OnEvent(law.Event, units.Time) {}
func (q *quiet) Timer() units.Time             { return units.MaxTime }
func (q *quiet) Allowance() law.Allowance      { return q.a }

// A pause moves the timeout by its length, or by less if it is cut short. A timeout that an acknowledgement
// restarts during a pause starts at the pause's end.
func TestPauseMovesTheTimeout(t *testing.T) {
	const ms = units.Millisecond
	l, err := none.New(units.Gbps, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := transport.NewSender(transport.SenderConfig{Law: l, MSS: 1000, InitialRTO: 100 * ms, MinRTO: 100 * ms}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Pause(0, 10*ms) // nothing is in flight
	if at := s.Deadline(); at != units.MaxTime {
		t.Errorf("a timeout at %v with nothing in flight", at)
	}
	s.Pause(0, 0)
	s.Send(0)
	s.Send(0)
	for _, tt := range []struct{ now, until, want units.Time }{
		{10 * ms, 60 * ms, 150 * ms}, // 50 ms
		{20 * ms, 80 * ms, 170 * ms}, // 20 ms more
		{30 * ms, 30 * ms, 120 * ms}, // 50 ms less: resumed
		{40 * ms, 0, 120 * ms},       // not paused
		{50 * ms, 90 * ms, 160 * ms},
	} {
		s.Pause(tt.now, tt.until)
		if at := s.Deadline(); at != tt.want {
			t.Errorf("paused at %v until %v: the timeout is at %v, want %v", tt.now, tt.until, at, tt.want)
		}
	}
	s.OnFeedback(&transport.Feedback{PSN: transport.PSN(0)}, 60*ms)
	if at := s.Deadline(); at < 190*ms {
		t.Errorf("after an acknowledgement in the pause the timeout is at %v, want a timeout after its end at 90ms", at)
	}
}

// A sender that is paused for nine tenths of the time, as behind a slow neighbour, has pauses in each round trip.
// When acknowledgements stop, its timeout comes about as soon as without pauses.
func TestTimeoutOfOneMostlyPaused(t *testing.T) {
	const ms, rtt = units.Millisecond, 600 * units.Millisecond
	s := newSender(t, transport.SenderConfig{Law: newFixed(units.Gbps, units.MB), MSS: 1000, InitialRTO: units.Second, MinRTO: 100 * ms})
	now := units.Time(0)
	for ; s.Stats().Timeouts == 0 && now < 60*units.Second; now += 100 * ms {
		s.OnTimer(now)
		s.Send(now)
		s.Pause(now, now+90*ms)
		if sent := now - rtt + 100*ms; sent >= 0 && now < 10*units.Second {
			s.OnFeedback(&transport.Feedback{PSN: transport.PSN(uint64(sent / (100 * ms)))}, now+95*ms)
		}
	}
	if waited := now - 10*units.Second; waited < rtt || waited > 3*rtt {
		t.Errorf("the timeout came %v after the last answer: want 1 to 3 round trips of %v", waited, rtt)
	}
}
