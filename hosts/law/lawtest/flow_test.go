package lawtest

import (
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/units"
)

// Flow is one flow from its own host. Set its fields before the network runs.
type Flow struct {
	Law  law.Law
	Path []*Link
	NIC  units.Rate
	Back units.Time // from the receiver to the sender
	Size units.Bytes
	// CNPGap is the minimum time between congestion notifications (DCQCN §3.3: 50 µs); 0 for none.
	CNPGap units.Time
	// Noise, if set, is added to the one-way delay in each answer.
	Noise func() units.Time
	// Drop, if set, reports whether the first link loses a packet.
	Drop func(psn uint32, probe bool) bool

	Sender  *transport.Sender
	Started units.Time
	FCT     units.Time // completion time of a flow with a size; 0 before
	Stopped bool
	Probes  int // answered

	net     *Net
	rx      transport.Receiver
	nicFree units.Time
	wakeAt  units.Time
	timerAt units.Time
	owed    bool // a call of owes is scheduled
	notify  dcqcn.NotificationPoint
	fb      transport.Feedback
}

// Start starts a flow at a time.
func (n *Net) Start(at units.Time, f *Flow) *Flow {
	f.net = n
	n.Flows = append(n.Flows, f)
	n.Schedule(at, func() {
		f.wakeAt, f.timerAt, f.Started = units.MaxTime, units.MaxTime, n.Now()
		s, err := transport.NewSender(transport.SenderConfig{
			Law: f.Law, MSS: MSS, Size: f.Size, InitialRTO: 5 * units.Millisecond, MinRTO: units.Millisecond,
		}, n.Now())
		if err != nil {
			panic(err)
		}
		f.Sender = s
		f.after()
	})
	return f
}

// Base returns the one-way delay and round trip of a full packet over an empty path.
func Base(nic units.Rate, back units.Time, path ...*Link) (oneWay, rtt units.Time) {
	oneWay = nic.TxTime(Frame)
	for _, l := range path {
		oneWay += l.Rate.TxTime(Frame) + l.Delay
	}
	return oneWay, oneWay + back
}

// Delivered returns the payload delivered so far, in whole packets.
func (f *Flow) Delivered() units.Bytes { return units.Bytes(f.rx.Next()) * MSS }

// Stop ends the flow at once.
func (f *Flow) Stop() { f.Stopped = true }

func (f *Flow) after() {
	if f.Sender.Done() && f.FCT == 0 {
		f.FCT = f.net.Now() - f.Started
		f.Stopped = true
	}
	f.arm()
	f.pump()
}

func (f *Flow) arm() {
	if at := f.Sender.Deadline(); at < f.timerAt {
		f.timerAt = at
		f.net.Schedule(at, f.timer)
	}
}

func (f *Flow) timer() {
	if f.Stopped || f.timerAt != f.net.Now() {
		return
	}
	f.timerAt = units.MaxTime
	f.Sender.OnTimer(f.net.Now())
	f.after()
}

// pump sends as much as it may and schedules itself for the time when it may send more.
func (f *Flow) pump() {
	n := f.net
	if f.wakeAt <= n.Now() {
		f.wakeAt = units.MaxTime
	}
	for !f.Stopped {
		at := f.Sender.Ready(n.Now())
		if at == units.MaxTime {
			return
		}
		if at = max(at, f.nicFree); at > n.Now() {
			if at < f.wakeAt {
				f.wakeAt = at
				n.Schedule(at, f.pump)
			}
			return
		}
		seg := f.Sender.Send(n.Now())
		p := &packet{flow: f, psn: transport.PSN(seg.Index), size: Frame - MSS + seg.Len, sent: n.Now(), probe: seg.Probe, last: seg.Last}
		if seg.Probe {
			p.size = Probe
		}
		f.nicFree = n.Now() + f.NIC.TxTime(p.size)
		n.Schedule(f.nicFree, func() { n.arrive(p) })
		f.arm()
	}
}

// received handles a packet at the receiver.
func (f *Flow) received(p *packet) {
	n := f.net
	p.delay = n.Now() - p.sent
	if p.ce && f.CNPGap > 0 {
		if f.notify.Marked(n.Now(), f.CNPGap) {
			n.Schedule(n.Now()+f.Back, f.cnp)
		} else if at := f.notify.Due(); !f.owed {
			f.owed = true
			n.Schedule(at, f.owes)
		}
	}
	if !p.probe {
		_, reply, psn := f.rx.OnData(p.psn, p.last)
		p.psn, p.nak = psn, reply == transport.Nak
		if reply == transport.Silent {
			return
		}
	}
	n.Schedule(n.Now()+f.Back, func() { f.acked(p) })
}

// owes sends the deferred notification of a window at its end.
func (f *Flow) owes() {
	f.owed = false
	if f.notify.Expired(f.net.Now(), f.CNPGap) {
		f.net.Schedule(f.net.Now()+f.Back, f.cnp)
	}
}

func (f *Flow) cnp() {
	if !f.Stopped {
		f.Sender.OnEvent(law.CNP, f.net.Now())
		f.after()
	}
}

func (f *Flow) acked(p *packet) {
	n := f.net
	if !f.Stopped {
		f.fb = transport.Feedback{
			PSN: p.psn, Nak: p.nak, Probe: p.probe, CE: p.ce, Delay: p.delay, MaxQD: p.maxQD,
			INT: p.int[:min(len(f.Path), len(p.int))],
		}
		if f.Noise != nil {
			f.fb.Delay += f.Noise()
		}
		if p.probe {
			f.Probes++
		}
		f.Sender.OnFeedback(&f.fb, n.Now())
		f.after()
	}
}
