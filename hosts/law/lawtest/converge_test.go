package lawtest

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/dcqcn"
	"github.com/headgate/headgate/hosts/law/dctcp"
	"github.com/headgate/headgate/hosts/law/hpcc"
	"github.com/headgate/headgate/hosts/law/ledbat"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/powertcp"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/hosts/law/timely"
	"github.com/headgate/headgate/units"
)

const (
	us = units.Microsecond
	ms = units.Millisecond
)

// datacentre is the flow of most tests.
var datacentre = law.Flow{Rate: 100 * units.Gbps, BaseRTT: 12 * us, MSS: MSS}

// must returns a law whose parameters are right.
func must[L any](l L, err error) L {
	if err != nil {
		panic(err)
	}
	return l
}

func network(n int, law func(i int) law.Law, size units.Bytes) (*Net, *Link) {
	net := New()
	l := net.Link(100*units.Gbps, 3*us)
	l.KMin, l.KMax, l.PMax = 65*units.KB, 65*units.KB, 1 // step marking
	for i := range n {
		net.Start(units.Time(i)*100*us, &Flow{
			Law: law(i), Path: []*Link{l}, NIC: 100 * units.Gbps, Back: 6 * us, Size: size,
		})
	}
	return net, l
}

// §3.3 of the paper: the queue stays around K, with an amplitude no larger than the paper's, and
// flows share the link.
func TestDCTCPQueueStaysAroundK(t *testing.T) {
	n, l := network(4, func(int) law.Law { return must(dctcp.New(param.For[dctcp.Params](datacentre))) }, 0)
	n.RunUntil(5 * units.Millisecond)
	q := n.Watch(l, 10*us)
	r := n.Rates(10 * units.Millisecond)
	if j := Jain(r); j < 0.97 {
		t.Errorf("rates %v: fairness %v", r, j)
	}
	if got := floats.Sum(r) / Goodput(l.Rate); got < 0.98 {
		t.Errorf("utilisation %.3f", got)
	}
	// Figure 12's maximum: K plus one packet per flow.
	if m := q.Mean(); m < 20e3 || q.At(0.99) > 75e3 {
		t.Errorf("queue: mean %v, 99 %% %v, K is 65 KB", m, q.At(0.99))
	}
	t.Logf("fairness %.3f, utilisation %.3f, queue mean %.0f, p99 %.0f", Jain(r), floats.Sum(r)/Goodput(l.Rate), q.Mean(), q.At(0.99))
}

// D2TCP §2: a flow with a near deadline ends before an equal flow with a far deadline. But it does
// not get the whole link (PrioPlus §3.1, Figure 3a).
func TestD2TCPNearDeadlineGoesFirst(t *testing.T) {
	const size = 10 * units.MB
	n, _ := network(2, func(i int) law.Law {
		f, p := law.Flow{Rate: 100 * units.Gbps, MSS: MSS, Size: size, Deadline: units.Time(1+i) * 900 * us}, dctcp.Params{}
		param.Defaults(func(s *param.Set) { p.VisitD2TCP(s, &f) })
		return must(dctcp.New(p))
	}, size)
	n.RunUntil(5 * units.Millisecond)
	first, second := n.Flows[0].FCT, n.Flows[1].FCT
	t.Logf("near deadline done after %v, far after %v", first, second)
	if first == 0 || second == 0 || float64(first) > 0.9*float64(second) {
		t.Errorf("near deadline done after %v, far after %v", first, second)
	}
	if first < 1000*us {
		t.Errorf("near deadline done after %v: it had the link to itself", first)
	}
}

// §5.3 of the paper: flows use η of the link, the queue is nearly empty, and flows that join get a
// share.
func TestHPCCFullLinkWithoutAQueue(t *testing.T) {
	n := New()
	l := n.Link(100*units.Gbps, 3*us)
	p := param.For[hpcc.Params](datacentre)
	p.Increase *= 5 // for 20 flows, so that shares converge sooner
	for i := range 4 {
		n.Start(units.Time(i)*500*us, &Flow{
			Law: must(hpcc.New(p)), Path: []*Link{l}, NIC: 100 * units.Gbps, Back: 5 * us,
		})
	}
	n.RunUntil(6 * units.Millisecond)
	q := n.Watch(l, us)
	from := l.Sent
	r := n.Rates(4 * units.Millisecond)
	use := float64(l.Sent-from) * 8 / 4e-3 / 100e9
	if use < 0.90 || use > 1 {
		t.Errorf("utilisation %.3f, η is 0.95", use)
	}
	if q.At(0.99) > 10e3 {
		t.Errorf("queue p99 %v B", q.At(0.99))
	}
	if j := Jain(r); j < 0.98 {
		t.Errorf("rates %v: fairness %v", r, j)
	}
	t.Logf("utilisation %.3f, queue mean %.0f p99 %.0f B, fairness %.4f, peak at joins %v", use, q.Mean(), q.At(0.99), Jain(r), l.Peak)
}

// RFC 6817 §4.2: the queue settles at the target, and the link is full. Two flows that start together share the link.
// The test configures the base delay. A flow that starts later and measures it would include the queue in it, and would
// not yield (§4.4).
func TestLEDBATDelayStaysAtTheTarget(t *testing.T) {
	n := New()
	l := n.Link(100*units.Gbps, 3*us)
	oneWay, _ := Base(100*units.Gbps, 6*us, l)
	for i := range 3 {
		p := param.For[ledbat.Params](datacentre)
		p.Target, p.InitialWindow, p.BaseDelay = 20*us, 100000, oneWay
		n.Start(units.Time(i)*100*us, &Flow{
			Law: must(ledbat.New(p)), Path: []*Link{l}, NIC: 100 * units.Gbps, Back: 6 * us,
		})
	}
	n.RunUntil(4 * units.Millisecond)
	q := n.Watch(l, us)
	r := n.Rates(4 * units.Millisecond)
	if use := floats.Sum(r) / Goodput(l.Rate); use < 0.99 {
		t.Errorf("utilisation %.3f", use)
	}
	if want := float64(l.Rate.BytesIn(20 * us)); math.Abs(q.Mean()/want-1) > 0.05 {
		t.Errorf("queue %v B, the target is %v B", q.Mean(), want)
	}
	t.Logf("queue mean %.0f p99 %.0f B, fairness %.4f", q.Mean(), q.At(0.99), Jain(r))
}

// §4.2 of the paper: the delay stays at the target, the link is full, and shares are fair.
func TestSwiftDelayStaysAtTheTarget(t *testing.T) {
	n := New()
	l := n.Link(100*units.Gbps, 3*us)
	_, base := Base(100*units.Gbps, 6*us, l)
	for i := range 4 {
		p := param.For[swift.Params](law.Flow{Rate: 100 * units.Gbps, BaseRTT: base, MSS: 1000})
		p.Target, p.Increase = base+16*us, 500
		n.Start(units.Time(i)*200*us, &Flow{
			Law: must(swift.New(p)), Path: []*Link{l}, NIC: 100 * units.Gbps, Back: 6 * us,
		})
	}
	n.RunUntil(4 * units.Millisecond)
	q := n.Watch(l, us)
	r := n.Rates(4 * units.Millisecond)
	if use := floats.Sum(r) / Goodput(l.Rate); use < 0.99 {
		t.Errorf("utilisation %.3f", use)
	}
	if want := float64(l.Rate.BytesIn(16 * us)); math.Abs(q.Mean()/want-1) > 0.05 {
		t.Errorf("queue %v B, the target is %v B", q.Mean(), want)
	}
	if j := Jain(r); j < 0.95 {
		t.Errorf("rates %v: fairness %v", r, j)
	}
	t.Logf("queue mean %.0f p99 %.0f B, fairness %.4f", q.Mean(), q.At(0.99), Jain(r))
}

// §6 of the paper: the link is used and the round trip stays between the thresholds. TIMELY has
// infinitely many fixed points ("ECN or Delay", CoNEXT 2016, §4.2), so the test does not require
// fairness.
func TestTIMELYRoundTripStaysBetweenTheThresholds(t *testing.T) {
	n := New()
	l := n.Link(10*units.Gbps, 3*us)
	_, base := Base(10*units.Gbps, 6*us, l)
	p := param.For[timely.Params](law.Flow{Rate: 10 * units.Gbps, BaseRTT: base})
	p.StartRate = 2500 * units.Mbps
	for range 4 {
		n.Start(0, &Flow{
			Law:  must(timely.New(p)),
			Path: []*Link{l}, NIC: 10 * units.Gbps, Back: 6 * us,
		})
	}
	n.RunUntil(20 * units.Millisecond)
	q := n.Watch(l, 20*us)
	r := n.Rates(40 * units.Millisecond)
	// Pacing by packets instead of segments makes the cuts of the gradient deeper (same paper,
	// §4.3): the link is not quite full.
	if got := floats.Sum(r) / Goodput(l.Rate); got < 0.88 {
		t.Errorf("utilisation %.3f", got)
	}
	if high := float64(l.Rate.BytesIn(500 * us)); q.At(0.99) > high {
		t.Errorf("queue p99 %v B is beyond the high threshold, %v B", q.At(0.99), high)
	}
	t.Logf("utilisation %.3f, queue mean %.0f B, p99 %.0f B", floats.Sum(r)/Goodput(l.Rate), q.Mean(), q.At(0.99))
}

// §4.2 of the paper: full links, short queues (in equilibrium the sum of the flows' β),
// fair shares, both variants.
func TestPowerTCPFullLinkShortQueueFairShares(t *testing.T) {
	for _, tt := range []struct {
		name  string
		theta bool
	}{{"PowerTCP", false}, {"theta-PowerTCP", true}} {
		t.Run(tt.name, func(t *testing.T) {
			n := New()
			l := n.Link(100*units.Gbps, 3*us)
			_, base := Base(100*units.Gbps, 5*us, l)
			for i := range 4 {
				p := param.For[powertcp.Params](datacentre)
				p.Increase, p.BaseRTT, p.Theta = 1500, base, tt.theta
				n.Start(units.Time(i)*300*us, &Flow{
					Law: must(powertcp.New(p)), Path: []*Link{l}, NIC: 100 * units.Gbps, Back: 5 * us,
				})
			}
			n.RunUntil(4 * units.Millisecond)
			q := n.Watch(l, us)
			r := n.Rates(4 * units.Millisecond)
			use := floats.Sum(r) / Goodput(l.Rate)
			if use < 0.98 {
				t.Errorf("utilisation %.3f", use)
			}
			if q.At(0.99) > 30e3 {
				t.Errorf("queue p99 %v B, the sum of β is 6 KB", q.At(0.99))
			}
			if j := Jain(r); j < 0.98 {
				t.Errorf("rates %v: fairness %v", r, j)
			}
			t.Logf("utilisation %.3f, queue mean %.0f p99 %.0f B, fairness %.4f", use, q.Mean(), q.At(0.99), Jain(r))
		})
	}
}

// §5.2 of the paper: flows that start at different times converge to the same rate, with the
// marking of Table 14 and the fast timers that the paper chose for fairness.
func TestDCQCNFlowsConverge(t *testing.T) {
	n := New()
	l := n.Link(40*units.Gbps, us)
	l.KMin, l.KMax, l.PMax = 5*units.KB, 200*units.KB, 0.01
	for i := range 2 {
		n.Start(units.Time(i)*200*us, &Flow{
			Law: must(dcqcn.New(param.For[dcqcn.Params](law.Flow{Rate: 40 * units.Gbps}))), Path: []*Link{l},
			NIC: 40 * units.Gbps, Back: 4 * us, CNPGap: 50 * us,
		})
	}
	n.RunUntil(20 * units.Millisecond)
	r := n.Rates(20 * units.Millisecond)
	if j := Jain(r); j < 0.99 {
		t.Errorf("rates %v: fairness %v", r, j)
	}
	if got := floats.Sum(r) / Goodput(l.Rate); got < 0.95 {
		t.Errorf("utilisation %.3f", got)
	}
	t.Logf("fairness %.4f, utilisation %.3f, longest queue %v", Jain(r), floats.Sum(r)/Goodput(l.Rate), l.Peak)
}
