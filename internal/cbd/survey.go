package cbd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/units"
)

// Cycles describes the paths of a fabric that may deadlock under PFC.
type Cycles struct {
	// Now is a cyclic buffer dependency of the present paths, as printed by the caller of Survey, or
	// empty. If it is set, no failure was examined.
	Now string
	// Examined is the number of combinations of failed links that were examined, Left the number that were
	// not. With is the number of examined ones with a cycle.
	Examined, With, Left int
	// Failed are the links of the first combination with a cycle. Then is that cycle.
	Failed []string
	Then   string
}

// Text describes the result of a Survey with up to that many additional failures.
func (c Cycles) Text(failures int) string {
	if c.Now != "" {
		return "buffers depend on each other in a cycle, which PFC can stop for good: " + c.Now
	}
	const none = "no cycle of buffers that depend on each other"
	if failures == 0 {
		return none
	}
	text := fmt.Sprintf("with up to %s between switches, %s looked at", units.Count(failures, "failed link"), units.Count(c.Examined, "combination"))
	if c.Left > 0 {
		text += fmt.Sprintf(" and %d not, which would take too long", c.Left)
	}
	if c.With == 0 {
		return text + ": " + none
	}
	return fmt.Sprintf("%s: in %d of them buffers depend on each other in a cycle, which PFC can stop for good; without %s: %s",
		text, c.With, strings.Join(c.Failed, " and "), c.Then)
}

// mostWork bounds a survey: combinations times channels. It takes half a minute.
const mostWork = 20_000_000

// Survey looks for cycles with the links in down failed. If there is none, it also examines combinations of up
// to most more failed links: first single links, then pairs, as many as mostWork allows, but always all single
// links. When ctx ends, the rest is not examined. around prints a cycle, in which each channel is followed by
// the one that it depends on and the last by the first; link returns a link's name.
//
// If every node keeps a next hop to a leaf, a failure only removes paths to this leaf. So routes are computed
// anew only for leaves to which some node lost its last next hop. The fabric after the failure is examined on
// its own only if the new dependencies close a cycle with those before.
func (f *Fabric) Survey(ctx context.Context, down []bool, most int, around func([]Channel) string, link func(int) string) Cycles {
	text := func(cycle []int) string {
		var list []Channel
		for _, c := range cycle {
			list = append(list, f.channels[c])
		}
		return around(list)
	}
	if now := f.cycle(down); now != nil {
		return Cycles{Now: text(now)}
	}
	s := &survey{
		Fabric: f, text: text, link: link, ended: func() bool { return ctx.Err() != nil }, down: slices.Clone(down),
		known: make(dependencies, len(f.channels)), of: make([][]int32, len(down)),
	}
	for _, leaf := range f.leaves {
		hops := f.hops(leaf, down)
		s.was = append(s.was, hops)
		s.known.add(f, leaf, hops)
	}
	for i, c := range f.channels {
		s.of[c.Link] = append(s.of[c.Link], int32(i))
	}
	for l, channels := range s.of {
		if len(channels) > 0 && !down[l] {
			s.links = append(s.links, l)
		}
	}
	s.budget = max(len(s.links), mostWork/max(1, len(f.channels)))
	for n := 1; n <= most; n++ {
		s.combine(n, 0)
	}
	return s.out
}

type survey struct {
	*Fabric
	out    Cycles
	text   func(cycle []int) string
	link   func(int) string
	down   []bool
	links  []int        // links that may fail
	of     [][]int32    // channels by link
	was    [][][]int32  // hops by leaf, with no failure
	known  dependencies // dependencies with no failure
	failed []int
	budget int
	ended  func() bool
}

// combine examines all combinations with n more failed links, from link first on.
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
	cycle := s.cycle(s.down)
	if cycle == nil {
		return
	}
	if s.out.With++; s.out.With > 1 {
		return
	}
	s.out.Then = s.text(cycle)
	for _, l := range s.failed {
		s.out.Failed = append(s.out.Failed, s.link(l))
	}
}

// mayCycle reports whether new dependencies close a cycle with the earlier ones, some of which may be
// gone.
func (s *survey) mayCycle() bool {
	var before []int
	more := false
	for i, leaf := range s.leaves {
		if !s.lost(i) {
			continue
		}
		if before == nil {
			before = make([]int, len(s.known))
			for c, list := range s.known {
				before[c] = len(list)
			}
		}
		more = s.known.add(s.Fabric, leaf, s.hops(leaf, s.down)) || more
	}
	cyclic := more && s.known.rest() != nil
	for c, n := range before {
		s.known[c] = s.known[c][:n]
	}
	return cyclic
}

// lost reports whether a node lost its last next hop to a leaf.
func (s *survey) lost(leaf int) bool {
	for _, l := range s.failed {
		for _, c := range s.of[l] {
			hops := s.was[leaf][s.channels[c].From]
			if slices.Contains(hops, c) && !slices.ContainsFunc(hops, func(h int32) bool { return !s.down[s.channels[h].Link] }) {
				return true
			}
		}
	}
	return false
}
