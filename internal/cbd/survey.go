package cbd

import (
	"context"
	"slices"
)

// Survey is what came of looking at failures of links.
type Survey struct {
	// Examined is how many combinations of failed links were looked at, and Left how many more
	// there are; With is how many of the former have a cycle.
	Examined, With, Left int
	// Failed are the links of the first combination with a cycle, which is Cycle.
	Failed, Cycle []int
}

// mostWork bounds a survey: combinations times channels. It takes half a minute.
const mostWork = 20_000_000

// Survey looks for cycles while any one to most of the links fail beside those that are down:
// single failures first, then pairs, as far as time allows; all single ones in any case. The
// fabric must have no cycle before. With the end of ctx the rest is left.
//
// A failure that leaves every node a next hop to a leaf only takes paths to this leaf away. So
// only leaves for which some node lost its last next hop are routed anew, and only where this
// adds dependencies that close a cycle with all those of before is the fabric looked at alone.
func (f *Fabric) Survey(ctx context.Context, down []bool, most int) Survey {
	s := &survey{Fabric: f, ended: func() bool { return ctx.Err() != nil }, down: slices.Clone(down), known: make(dependencies, len(f.Channels))}
	for _, leaf := range f.Leaves {
		hops := f.Hops(leaf, down)
		s.hops = append(s.hops, hops)
		s.known.add(f, leaf, hops)
	}
	s.of = make([][]int32, len(down))
	for i, c := range f.Channels {
		s.of[c.Link] = append(s.of[c.Link], int32(i))
	}
	for l, channels := range s.of {
		if len(channels) > 0 && !down[l] {
			s.links = append(s.links, l)
		}
	}
	s.budget = max(len(s.links), mostWork/max(1, len(f.Channels)))
	for n := 1; n <= most; n++ {
		s.combine(n, 0)
	}
	return s.out
}

type survey struct {
	*Fabric
	out    Survey
	down   []bool
	links  []int     // that may fail
	of     [][]int32 // channels by link
	hops   [][][]int32
	known  dependencies // with no failure
	failed []int
	budget int
	ended  func() bool
}

// combine examines all combinations with n more failures of links from the first on.
func (s *survey) combine(n, first int) {
	if n == 0 {
		if s.out.Examined >= s.budget || s.ended() {
			s.out.Left++
			return
		}
		s.examine()
		return
	}
	for i := first; i <= len(s.links)-n; i++ {
		l := s.links[i]
		s.down[l], s.failed = true, append(s.failed, l)
		s.combine(n-1, i+1)
		s.down[l], s.failed = false, s.failed[:len(s.failed)-1]
	}
}

func (s *survey) examine() {
	s.out.Examined++
	if !s.mayCycle() {
		return
	}
	cycle := s.Cycle(s.down)
	if cycle == nil {
		return
	}
	if s.out.With++; s.out.Cycle == nil {
		s.out.Failed, s.out.Cycle = slices.Clone(s.failed), cycle
	}
}

// mayCycle reports whether new dependencies close a cycle with all those of before, of which some
// may be gone.
func (s *survey) mayCycle() bool {
	var before []int
	more := false
	for i, leaf := range s.Leaves {
		if !s.lost(i) {
			continue
		}
		if before == nil {
			before = make([]int, len(s.known))
			for c, list := range s.known {
				before[c] = len(list)
			}
		}
		more = s.known.add(s.Fabric, leaf, s.Hops(leaf, s.down)) || more
	}
	cyclic := more && s.known.rest() != nil
	for c, n := range before {
		s.known[c] = s.known[c][:n]
	}
	return cyclic
}

// lost reports whether some node lost its last next hop to a leaf.
func (s *survey) lost(leaf int) bool {
	for _, l := range s.failed {
		for _, c := range s.of[l] {
			hops := s.hops[leaf][s.Channels[c].From]
			if slices.Contains(hops, c) && !slices.ContainsFunc(hops, func(h int32) bool { return !s.down[s.Channels[h].Link] }) {
				return true
			}
		}
	}
	return false
}
