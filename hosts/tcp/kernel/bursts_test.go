//go:build linux

package kernel

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/param"
	"github.com/headgate/headgate/hosts/law/prioplus"
	"github.com/headgate/headgate/hosts/law/soze"
	"github.com/headgate/headgate/hosts/law/swift"
	"github.com/headgate/headgate/units"
)

// network is a model of connections with the parts of Linux' TCP that decide when segments leave: pacing, the bursts
// that it builds (tcp_tso_should_defer and tcp_tso_autosize) and an acknowledgement for every second segment. Times are
// nanoseconds.
type network struct {
	now, order uint64
	events     events
	links      [2]struct {
		queue []*segment
		busy  bool
	}
	loss float64 // of a segment, its probability
	rand *rand.Rand
}

type event struct {
	at, order uint64
	do        func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

func (n *network) at(t uint64, do func()) {
	n.order++
	heap.Push(&n.events, event{max(t, n.now), n.order, do})
}

func (n *network) run(until uint64) {
	for n.events[0].at <= until {
		e := heap.Pop(&n.events).(event)
		n.now = e.at
		e.do()
	}
}

const (
	mss       = 1448
	frameTime = (mss + 66) * 8 * 10 // at 100 Mb/s
	microsec  = 1000
)

type segment struct {
	of          *connection
	number      int
	hop         int
	came, maxQD uint64
}

// connection is an endless connection with the law of the kernel's programs.
type connection struct {
	net      *network
	programs *lawsObjects
	law      lawsSozeStep
	path     []int
	burst    int // largest number of segments that the kernel sends at once

	out          []uint64 // send time of each segment
	acked        int
	next         uint64 // time at which pacing allows the next segment
	window       int
	rest         uint64 // bytes of the window beyond whole segments
	got, told    int    // of the receiver: segments received, and segments acknowledged
	seen, seenOf uint64
	lost         map[int]bool // segments that never arrive; others carry their bytes again
	good         int          // segments that did
	trip         uint64       // smoothed
}

func (c *connection) step(t *testing.T, event uint32) {
	c.law.Event = event
	if _, err := c.programs.Soze.Run(&ebpf.RunOptions{Context: &c.law, ContextOut: &c.law}); err != nil {
		t.Fatal(err)
	}
}

// send does the work of tcp_write_xmit.
func (c *connection) send(t *testing.T) {
	n := c.net
	for flying := len(c.out) - c.acked; flying < c.window; flying = len(c.out) - c.acked {
		if c.next > n.now {
			at := c.next
			n.at(at, func() {
				if c.next == at {
					c.send(t)
				}
			})
			return
		}
		may := c.window - flying
		if may < c.burst && may < c.window/3 && flying > 0 && n.now < c.next+1000*microsec &&
			n.now-c.out[c.acked] > c.trip/2 {
			return // an acknowledgement will arrive soon
		}
		length := uint64(min(may, c.burst)) * (mss + 66) * 1e9 / c.law.Flow.Rate
		for range min(may, c.burst) {
			s := &segment{of: c, number: len(c.out)}
			c.out = append(c.out, n.now)
			n.at(n.now, func() { n.arrive(t, s) })
		}
		c.next = n.now + length - min(length/2, n.now-c.next)
	}
}

func (n *network) arrive(t *testing.T, s *segment) {
	if s.hop == len(s.of.path) {
		s.of.receive(t, s)
		return
	}
	if n.rand.Float64() < n.loss {
		s.of.lost[s.number] = true
		return
	}
	s.came = n.now
	l := &n.links[s.of.path[s.hop]]
	if l.queue = append(l.queue, s); !l.busy {
		n.serve(t, s.of.path[s.hop])
	}
}

func (n *network) serve(t *testing.T, i int) {
	l := &n.links[i]
	if l.busy = len(l.queue) > 0; !l.busy {
		return
	}
	s := l.queue[0]
	l.queue = l.queue[1:]
	s.maxQD = max(s.maxQD, (n.now-s.came)/microsec*microsec)
	s.hop++
	n.at(n.now+frameTime, func() { n.serve(t, i); n.arrive(t, s) })
}

func (c *connection) receive(t *testing.T, s *segment) {
	c.got = s.number + 1
	c.seen, c.seenOf = c.seen+s.maxQD, c.seenOf+1
	if c.got-c.told < 2 {
		return
	}
	c.told = c.got
	to, echo := c.got, c.seen/c.seenOf
	c.seen, c.seenOf = 0, 0
	c.net.at(c.net.now+200*microsec, func() { c.acknowledged(t, to, echo) })
}

func (c *connection) acknowledged(t *testing.T, to int, echo uint64) {
	now, a := c.net.now, &c.law.Ack
	oldest := now - c.out[c.acked]
	if c.trip == 0 {
		c.trip = oldest
	}
	c.trip = c.trip*7/8 + oldest/8
	a.Now, a.MaxQd, a.Rtt, a.Acked = now, echo, (oldest+now-c.out[to-1])/2, uint64(to-c.acked)*mss
	lost := uint64(0)
	for ; c.acked < to; c.acked++ {
		if c.lost[c.acked] {
			lost += mss
		} else {
			c.good++
		}
	}
	a.Acked -= lost
	a.AckedSeq, a.SentSeq, a.Inflight = uint64(to)*mss, uint64(len(c.out))*mss, uint64(len(c.out)-to)*mss
	if c.step(t, 1); lost > 0 {
		a.Acked = lost
		c.step(t, 2)
	}
	c.rest += c.law.Flow.Window + uint64(c.law.Flow.Kept)
	c.window = max(int(c.rest/mss), 2)
	c.rest %= mss
	c.send(t)
}

// flow is a connection of the model and its share.
type flow struct {
	weight, want float64
	path         []int
	burst        int
}

// share plays flows on links of 100 Mb/s and compares their rates with their shares.
func share(t *testing.T, flows []flow, loss, within float64) {
	programs := loadLawPrograms(t)
	const rate = 100 * units.Mbps
	par := param.For[soze.Params](law.Flow{Rate: rate, MSS: mss, Scale: 400})
	par.Alpha, par.Beta, par.MinWindow, par.WholeWindow = rate, rate/100, 2*mss, true
	n := &network{loss: loss, rand: rand.New(rand.NewPCG(1, 1))}
	var list []*connection
	for i, f := range flows {
		c := &connection{net: n, programs: programs, path: f.path, burst: f.burst, window: 8, lost: map[int]bool{}}
		c.law = lawsSozeStep{Mss: mss, LgWeight: lg(f.weight), Params: sozeParams(par, soze.LongestQD(par.P+par.K))}
		c.step(t, 0)
		list = append(list, c)
		n.at(uint64(i)*1000*microsec, func() { c.send(t) })
	}
	n.run(3e9)
	before := make([]int, len(list))
	for i, c := range list {
		before[i] = c.good
	}
	n.run(8e9)
	sum, whole := 0.0, 0.0
	for i, c := range list {
		sum, whole = sum+float64(c.good-before[i]), whole+flows[i].want
	}
	for i, c := range list {
		share := float64(c.good-before[i]) / sum * whole / flows[i].want
		t.Logf("flow %d of weight %v, bursts of %d at most: %.1f %% of its share", i+1, flows[i].weight, flows[i].burst, 100*share)
		if math.Abs(share-1) > within {
			t.Errorf("flow %d is %.1f %% off its share, want %.0f %% at most", i+1, 100*(share-1), 100*within)
		}
	}
}

// TestBursts: the parking lot of Söze's figure 17. The kernel lets some connections build bursts of a third of their
// window and others none, because the round trip of their handshake was long.
func TestBursts(t *testing.T) {
	share(t, []flow{
		{6, 66.7, []int{0}, 45}, {1, 11.1, []int{0, 1}, 45}, {1, 11.1, []int{0, 1}, 1}, {1, 11.1, []int{0, 1}, 1},
		{1, 33.3, []int{1}, 45}, {1, 33.3, []int{1}, 45},
	}, 0, 0.04)
}

// TestRandomLosses: losses that are no sign of congestion take from each weight the same part.
func TestRandomLosses(t *testing.T) {
	share(t, []flow{{1, 1, []int{0}, 45}, {2, 2, []int{0}, 45}, {4, 4, []int{0}, 45}}, 0.01, 0.06)
}

// TestFilter: round trips beyond the limit stop a connection of PrioPlus if they last, and not if they belong to a burst, to
// acknowledgements that a late processor took together, or to what was in flight while the link stood still.
func TestFilter(t *testing.T) {
	programs := loadLawPrograms(t)
	const base, target, limit = 1e6, 17e6, 19e6
	for _, c := range []struct {
		name   string
		rtt    func(ms float64) float64 // nanoseconds
		stops  bool
		within float64 // ms
	}{
		{"bursts of a millisecond", func(ms float64) float64 { return limit - 1e6 + 2.9e6*math.Mod(ms, 1) }, false, 0},
		{"a processor late once in 20 ms", func(ms float64) float64 {
			if math.Mod(ms, 20) < 1 {
				return limit + 4e6
			}
			return target
		}, false, 0},
		{"a link that stood still for 13 ms", func(ms float64) float64 {
			if ms > 50 && ms < 50+target/1e6 {
				return target + 13e6
			}
			return target
		}, false, 0},
		{"a higher priority", func(ms float64) float64 { return target + ms*limit/100 }, true, 20},
	} {
		f := law.Flow{Rate: 100 * units.Mbps, MSS: mss, BaseRTT: base * units.Nanosecond, Target: target * units.Nanosecond, Limit: limit * units.Nanosecond, Scale: 1000}
		f.Rand = rand.New(rand.NewPCG(1, 1))
		s := lawsPrioStep{Mss: mss, Params: prioParams(param.For[prioplus.Params](f), param.For[swift.Params](f)), Channel: programPrioChannel{Target: target, Limit: limit}}
		step := func(event uint32) {
			s.Event = event
			if _, err := programs.Prioplus.Run(&ebpf.RunOptions{Context: &s, ContextOut: &s}); err != nil {
				t.Fatal(err)
			}
		}
		const start, ack, filteredAck = 0, 1, 5
		s.Ack.Now = 1e9
		step(start)
		s.Ack.Probe, s.Ack.Rtt = 1, target
		step(ack)
		s.Ack.Probe, s.Ack.Acked, s.Ack.Inflight = 0, 2*mss, 2*mss*target/0.25e6
		stopped := math.Inf(1)
		for ms := 0.0; ms < 200 && math.IsInf(stopped, 1); ms += 0.25 {
			s.Flow.Window, s.Ack.Now, s.Ack.Rtt = 200e3<<10, 1e9+uint64(1e6*ms), uint64(c.rtt(ms))
			s.Ack.AckedSeq += s.Ack.Acked
			s.Ack.SentSeq = s.Ack.AckedSeq + s.Ack.Inflight
			if step(filteredAck); s.Flow.Stopped != 0 {
				stopped = ms
			}
		}
		if over := stopped - 100*(limit-target)/limit; c.stops != !math.IsInf(stopped, 1) || c.stops && over > c.within {
			t.Errorf("%s: the connection stopped after %v ms, %v ms after the limit", c.name, stopped, over)
		}
	}
}
