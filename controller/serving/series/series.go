// Package series keeps what ports and flows did in the last ten minutes. Its memory is bounded: 20 MB for ports and
// 5 MB for flows, however large the fabric is.
package series

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/maxmin"
)

// Span is how far back samples go, and Step the time between two samples of a fabric of up to portsPerStep ports.
// With more ports the time between samples is multiplied by the number of ports divided by portsPerStep, rounded up,
// so that memory and work stay the same.
const (
	Span         = 10 * time.Minute
	Step         = 2 * time.Second
	portsPerStep = 4096
	maxFlows     = 2048
)

// Flow is a running flow as its host reported it last.
type Flow struct {
	Host, Law string
	Key       weights.Key
	Weight    float64
	Acked     uint64 // payload since the flow began, in bytes
	RateBPS   uint64 // rate of payload over the last interval of reports
	Reported  time.Time
}

// Source is the part of the controller's core that is sampled.
type Source interface {
	Fabric() *pb.GetFabricResponse
	// SwitchSummaries returns the names and ports of all switches if name is "", and, with status, the
	// features' status.
	SwitchSummaries(name string, status bool) []*pb.SwitchStatus
	// Path returns the ports of switches that a flow crosses, or nil if its way is not known.
	Path(src, dst netip.AddrPort) []config.Endpoint
}

// Recorder samples a fabric. It is safe for concurrent use.
type Recorder struct {
	source Source
	flows  func() []Flow

	mu      sync.Mutex
	periods int // Steps between two samples; what follows has room for Span of samples
	ticks   int // Steps until the next sample
	times   []time.Time
	count   int             // samples that were taken; sample i is at i % len(times)
	nodes   map[string]bool // names of switches and hosts: true for a switch
	ports   []*port         // in the order of the configuration
	running map[weights.Key]*flow
	leftOut int
}

// The series of a port and of a flow.
const (
	portRate = iota
	portQueue
	portPause
	portCNPs
	portSeries
)

const (
	flowRate = iota
	flowShare
	flowSeries
)

// port is a port of a switch with the last values of its counters.
type port struct {
	config.Endpoint
	peer    string
	linkBPS uint64
	values  [portSeries][]float32

	polled  time.Time
	bytes   counter
	granted counter
	paused  map[uint32]counter // ns by class
}

type flow struct {
	Flow
	from, to string // hosts; to is empty for an address that is no host's
	values   [flowSeries][]float32
	seen     int // the number of the last sample that has it
}

// counter is the last value of a counter.
type counter struct {
	value uint64
	known bool
}

// grew returns by how much a counter grew; NaN where that is not known, as after a restart of the switch.
func (c *counter) grew(now uint64) float64 {
	before := *c
	*c = counter{now, true}
	if !before.known || now < before.value {
		return math.NaN()
	}
	return float64(now - before.value)
}

// New returns a recorder without samples. Run asks source and flows.
func New(source Source, flows func() []Flow) *Recorder {
	return &Recorder{source: source, flows: flows, running: map[weights.Key]*flow{}}
}

// Run samples until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(Step)
	defer tick.Stop()
	for {
		r.step(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// step takes a sample where one is due.
func (r *Recorder) step(now time.Time) {
	r.mu.Lock()
	r.ticks--
	due := r.ticks <= 0
	r.mu.Unlock()
	if !due {
		return
	}
	f, switches, flows := r.source.Fabric(), r.source.SwitchSummaries("", true), r.flows()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.adopt(f, switches)
	r.ticks = r.periods
	at := r.count % len(r.times)
	var before time.Time
	if r.count > 0 {
		before = r.times[(r.count-1)%len(r.times)]
	}
	r.times[at] = now
	by := map[string]map[uint32]*reading{}
	for _, s := range switches {
		by[s.GetName()] = readings(s.GetFeatures(), before)
	}
	for _, p := range r.ports {
		p.sample(at, by[p.Node][p.Port], now.Sub(before))
	}
	r.sampleFlows(f, flows, at)
	r.count++
}

// adopt takes the ports of a fabric. Ports that stay keep their samples, unless the step changes. The caller holds mu.
func (r *Recorder) adopt(f *pb.GetFabricResponse, switches []*pb.SwitchStatus) {
	number := 0
	for _, s := range switches {
		number += len(s.GetPorts())
	}
	if periods := max(1, (number+portsPerStep-1)/portsPerStep); periods != r.periods {
		r.periods, r.count, r.ports = periods, 0, nil
		r.times = make([]time.Time, max(2, int(Span/Step)/periods))
		clear(r.running)
	}
	before := make(map[config.Endpoint]*port, len(r.ports))
	for _, p := range r.ports {
		before[p.Endpoint] = p
	}
	rates := map[config.Endpoint]uint64{}
	for _, l := range f.GetLinks() {
		for _, end := range []*pb.Endpoint{l.GetA(), l.GetB()} {
			rates[endpoint(end)] = l.GetRateBps()
		}
	}
	r.nodes = map[string]bool{}
	for _, h := range f.Hosts {
		r.nodes[h.Name] = false
	}
	r.ports = make([]*port, 0, number)
	for _, s := range switches {
		r.nodes[s.GetName()] = true
		for _, v := range s.GetPorts() {
			at := config.Endpoint{Node: s.GetName(), Port: v.GetPort()}
			p := before[at]
			if p == nil || p.peer != v.GetPeer() {
				p = &port{Endpoint: at, peer: v.GetPeer(), paused: map[uint32]counter{}}
				unknown(p.values[:], len(r.times))
			}
			p.linkBPS = rates[at]
			r.ports = append(r.ports, p)
		}
	}
}

func endpoint(e *pb.Endpoint) config.Endpoint {
	return config.Endpoint{Node: e.GetNode(), Port: e.GetPort()}
}

// unknown makes room for that many values, all unknown.
func unknown(values [][]float32, n int) {
	for i := range values {
		values[i] = make([]float32, n)
		for j := range values[i] {
			values[i][j] = float32(math.NaN())
		}
	}
}

// reading holds the features' counters of a port.
type reading struct {
	telemetry *pb.TelemetryPort
	held      float64
	classes   []*pb.BufferClass
	pacc      *pb.PACCPort
}

// readings sorts a status by ports. Values that no poll has renewed since a time are left out.
func readings(s *pb.FeatureStatus, since time.Time) map[uint32]*reading {
	by := map[uint32]*reading{}
	of := func(n uint32) *reading {
		if by[n] == nil {
			by[n] = &reading{}
		}
		return by[n]
	}
	for _, p := range s.GetTelemetry().GetPorts() {
		of(p.GetPort()).telemetry = p
	}
	for _, q := range s.GetTelemetry().GetQueues() {
		of(q.GetPort()).held += float64(q.GetHeldBytes())
	}
	if s.GetBuffer().GetSwitch().GetPolled().AsTime().After(since) {
		for _, c := range s.GetBuffer().GetClasses() {
			of(c.GetPort()).classes = append(of(c.GetPort()).classes, c)
		}
	}
	for _, p := range s.GetPacc().GetPorts() {
		of(p.GetPort()).pacc = p
	}
	return by
}

// sample keeps a port's traffic since the last sample. A nil reading is of a switch without an answer.
func (p *port) sample(at int, r *reading, elapsed time.Duration) {
	values := [portSeries]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	if r == nil {
		r = &reading{}
	}
	fresh := true
	if r.telemetry != nil {
		polled := r.telemetry.GetPolled().AsTime()
		since := polled.Sub(p.polled).Seconds()
		fresh, p.polled = since > 0, polled
		if bytes := p.bytes.grew(r.telemetry.GetTransmittedBytes()); fresh {
			values[portRate], values[portQueue] = 8*bytes/since, r.held
		}
	}
	for _, c := range r.classes {
		if c.PausedTime == nil {
			continue
		}
		was := p.paused[c.GetClass()]
		share := min(1, was.grew(pb.Nanoseconds(c.GetPausedTime()))/float64(elapsed))
		p.paused[c.GetClass()] = was
		if !(share <= values[portPause]) {
			values[portPause] = share
		}
	}
	if r.pacc != nil && fresh {
		values[portCNPs] = p.granted.grew(r.pacc.GetGranted()) / elapsed.Seconds()
	}
	for i, v := range values {
		p.values[i][at] = float32(v)
	}
}

// sampleFlows keeps a sample of each flow. The caller holds mu.
func (r *Recorder) sampleFlows(f *pb.GetFabricResponse, flows []Flow, at int) {
	links := newLinks(f)
	r.leftOut = 0
	var ended []weights.Key // flows that the sample before does not have
	for k, old := range r.running {
		if old.seen < r.count-len(r.times) {
			delete(r.running, k)
			continue
		}
		if old.seen < r.count-1 {
			ended = append(ended, k)
		}
		for i := range old.values {
			old.values[i][at] = float32(math.NaN())
		}
	}
	slices.SortFunc(ended, func(a, b weights.Key) int { return r.running[a].seen - r.running[b].seen })
	// evict forgets the flow that ended first. It reports false if all flows run.
	evict := func() bool {
		for len(ended) > 0 {
			k := ended[0]
			ended = ended[1:]
			if r.running[k].seen < r.count { // the flow has not come back in this sample
				delete(r.running, k)
				return true
			}
		}
		return false
	}
	var solve []maxmin.Flow
	var sharing []*flow
	for _, now := range flows {
		k := now.Key
		old := r.running[k]
		rate := float64(now.RateBPS)
		switch {
		case links.names[k.Src().Addr()] != now.Host:
			continue // the host may not speak for it
		case old == nil && len(r.running) >= maxFlows && !evict():
			r.leftOut++
			continue
		case old == nil:
			old = &flow{}
			unknown(old.values[:], len(r.times))
			r.running[k] = old
		case now.Acked >= old.Acked && now.Reported.After(old.Reported):
			rate = 8 * float64(now.Acked-old.Acked) / now.Reported.Sub(old.Reported).Seconds()
		}
		old.Flow, old.seen = now, r.count
		old.from, old.to = now.Host, links.names[k.Dst().Addr()]
		old.values[flowRate][at] = float32(rate)
		if path := links.path(old.from, old.to, r.source.Path(k.Src(), k.Dst())); path != nil && now.Weight > 0 && !math.IsInf(now.Weight, 1) {
			solve, sharing = append(solve, maxmin.Flow{Weight: now.Weight, Path: path}), append(sharing, old)
		}
	}
	shares, err := maxmin.Solve(links.capacity, solve)
	if r.leftOut > 0 || err != nil {
		return
	}
	for i, f := range sharing {
		f.values[flowShare][at] = float32(shares.Rate[i])
	}
}

// links numbers the directions of links. Direction 2i leaves host i by all its NICs, 2i+1 leads to it, and those that
// follow leave a port of a switch for another switch.
type links struct {
	names    map[netip.Addr]string // hosts
	hosts    map[string]int
	trunks   map[config.Endpoint]int
	capacity []float64 // bits per second
}

func newLinks(f *pb.GetFabricResponse) links {
	l := links{names: map[netip.Addr]string{}, hosts: map[string]int{}, trunks: map[config.Endpoint]int{}}
	for i, h := range f.Hosts {
		for _, a := range h.Addresses() {
			l.names[a] = h.Name
		}
		l.hosts[h.Name] = i
	}
	l.capacity = make([]float64, 2*len(f.Hosts))
	for _, link := range f.Links {
		rate, trunk := float64(link.GetRateBps()), true
		for _, end := range []string{link.A.Node, link.B.Node} {
			if i, ok := l.hosts[end]; ok {
				l.capacity[2*i], l.capacity[2*i+1], trunk = l.capacity[2*i]+rate, l.capacity[2*i+1]+rate, false
			}
		}
		if trunk {
			l.trunks[endpoint(link.GetA())], l.trunks[endpoint(link.GetB())] = len(l.capacity), len(l.capacity)+1
			l.capacity = append(l.capacity, rate, rate)
		}
	}
	return l
}

// path returns the directions that a flow through some ports takes, nil if neither end is a host's.
func (l links) path(from, to string, ports []config.Endpoint) (path []int) {
	if i, ok := l.hosts[from]; ok {
		path = append(path, 2*i)
	}
	if i, ok := l.hosts[to]; ok {
		path = append(path, 2*i+1)
	}
	for _, p := range ports {
		if i, ok := l.trunks[p]; ok {
			path = append(path, i)
		}
	}
	return path
}
