package buffer

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/topology"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/yamlnode"
)

// validate is feature.Description.Validate: routes of lossless classes must have no cyclic buffer
// dependency, unless the file allows it.
func validate(ctx context.Context, c *config.Config, g *topology.Graph, down map[string]bool, failures int) (risks []feature.Risk) {
	fabric := config.Of[Config](c, "buffer")
	for _, set := range losslessSets(c) {
		found := g.Cycles(ctx, down, failures, func(sw string) bool { return Of(c.Switch(sw)).On() && Of(c.Switch(sw)).Lossless&set != 0 })
		r := feature.Risk{Text: classes(set) + ": " + found.Text(failures)}
		switch {
		case found.Now == "" && failures == 0:
			continue
		case found.Now != "" && !fabric.AllowCycles:
			r.Refused = yamlnode.Fault{Field: "buffer.allow_cycles", Text: "is false; " + r.Text +
				"; want true, or links with which paths go up and then down, or a switch of them without PFC"}
		}
		risks = append(risks, r)
	}
	return risks
}

// losslessSets returns the lossless classes, those together that are so on the same switches. A
// port-level PAUSE of DSH stops all classes, so with it they are one set.
func losslessSets(c *config.Config) []uint8 {
	var on [headroom.Classes]string
	var all uint8
	shared := false
	for i := range c.Switches {
		b := Of(&c.Switches[i])
		if !b.On() {
			continue
		}
		all |= b.Lossless
		shared = shared || b.Shares()
		for class := range on {
			if b.Lossless>>class&1 != 0 {
				on[class] += fmt.Sprintf(" %d", i)
			}
		}
	}
	if shared {
		return []uint8{all}
	}
	var sets []uint8
	for class, where := range on {
		if where == "" || slices.Contains(on[:class], where) {
			continue
		}
		var set uint8
		for other := range on {
			if on[other] == where {
				set |= 1 << other
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// classes prints a set such as "class 3" or "classes 3, 4".
func classes(set uint8) string {
	var list []string
	for class := range headroom.Classes {
		if set>>class&1 != 0 {
			list = append(list, fmt.Sprint(class))
		}
	}
	if bits.OnesCount8(set) == 1 {
		return "class " + list[0]
	}
	return "classes " + strings.Join(list, ", ")
}
