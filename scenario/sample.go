package scenario

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/units"
)

// sampler collects every running flow's series. The loop adds to it, others read under mu.
type sampler struct {
	loop  *clock.Loop
	every units.Time
	timer *clock.Timer

	mu    sync.Mutex
	flows map[string]*sampled // running
	ended []*sampled
	now   units.Time
}

// sampled is a flow under observation.
type sampled struct {
	flow   Flow
	key    agent.FlowKey
	host   *agent.Host
	series Series
	resent uint64
}

// newSampler starts to sample; call it before the loop runs.
func newSampler(loop *clock.Loop, every units.Time) *sampler {
	s := &sampler{loop: loop, every: every, flows: map[string]*sampled{}}
	s.timer = loop.NewTimer(s.sample)
	s.timer.Reset(loop.Now() + every)
	return s
}

// watch observes a flow from now on; on the loop.
func (s *sampler) watch(f Flow, key agent.FlowKey, h *agent.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flows[f.Name] = &sampled{flow: f, key: key, host: h}
}

// forget ends the observation of a flow.
func (s *sampler) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flows[name]; f != nil {
		s.ended = append(s.ended, f)
		delete(s.flows, name)
	}
}

// setWeight notes a flow's new weight.
func (s *sampler) setWeight(name string, w float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flows[name]; f != nil {
		f.flow.Weight = w
	}
}

// sample takes one point of every flow; on the loop.
func (s *sampler) sample() {
	now := s.loop.Now()
	s.mu.Lock()
	s.now = now
	for _, f := range s.flows {
		for _, r := range f.host.Report() {
			if r.Key == f.key {
				f.series = append(f.series, Point{At: now, Acked: r.Acked, MaxQD: r.MaxQD, RTT: r.SRTT})
				f.resent = r.Retransmits
			}
		}
	}
	s.mu.Unlock()
	s.timer.Reset(now + s.every)
}

// get returns a copy of what is known of a flow.
func (s *sampler) get(name string) (sampled, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flows[name]
	if f == nil {
		return sampled{}, false
	}
	c := *f
	c.series = append(Series(nil), f.series...)
	return c, true
}

// names returns the running flows in order, and the time of the last sample.
func (s *sampler) names() ([]string, units.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.flows)), s.now
}

// retransmits returns the retransmissions of all flows so far.
func (s *sampler) retransmits() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n uint64
	for _, f := range s.all() {
		n += f.resent
	}
	return n
}

// all returns every flow there was, in the order of their names; mu is held.
func (s *sampler) all() []*sampled {
	all := slices.AppendSeq(slices.Clone(s.ended), maps.Values(s.flows))
	slices.SortStableFunc(all, func(a, b *sampled) int { return strings.Compare(a.flow.Name, b.flow.Name) })
	return all
}
