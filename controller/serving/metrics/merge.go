package metrics

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/controller/view"
)

// MaxSeries is how many time series a table of a feature, and each of port_up and link_up, may have
// over all switches: a scrape of each takes about 1 MB then. Where there would be more, the series of a
// switch that differ in port and peer alone are one, with AllPorts for both: counters add up, times
// are the oldest, whether a port or link is up the worst, and anything else is the largest.
const MaxSeries = 10_000

// AllPorts is the label of a series that stands for all ports of a switch.
const AllPorts = "(all)"

// series are the values of one column under one set of labels.
type series struct {
	labels []string
	values []float64
	known  []bool
}

// kind is how the values of series are merged.
type kind uint8

const (
	largest kind = iota
	least
	sum
)

func kindOf(c view.Column) kind {
	switch {
	case c.Counter:
		return sum
	case strings.HasSuffix(c.Metric, "_timestamp_seconds"):
		return least
	}
	return largest
}

// merge combines all series that have the same labels except the labels at, whose value becomes
// AllPorts. The order of the first of each is kept.
func merge(list []series, kinds []kind, at []int) []series {
	index := map[string]int{}
	var out []series
	for _, s := range list {
		for _, i := range at {
			s.labels[i] = AllPorts
		}
		key := strings.Join(s.labels, "\x00")
		i, ok := index[key]
		if !ok {
			index[key] = len(out)
			out = append(out, s)
			continue
		}
		into := &out[i]
		for c, v := range s.values {
			switch {
			case !s.known[c]:
			case !into.known[c]:
				into.values[c], into.known[c] = v, true
			case kinds[c] == sum:
				into.values[c] += v
			case kinds[c] == least:
				into.values[c] = min(into.values[c], v)
			default:
				into.values[c] = max(into.values[c], v)
			}
		}
	}
	return out
}

// bounded returns the series of a table with that many metrics, merged if there are too many, and how
// many series the merging saved.
func bounded(list []series, kinds []kind, columns int, at []int) ([]series, int) {
	if len(list)*columns <= MaxSeries || len(at) == 0 {
		return list, 0
	}
	out := merge(list, kinds, at)
	return out, (len(list) - len(out)) * columns
}

// ofPort returns which labels of a table's series say the port, where the first is the switch's.
func ofPort(t *view.Table) (at []int) {
	for i, key := range t.Keys {
		if slices.Contains([]string{"port", "peer"}, key) {
			at = append(at, 1+i)
		}
	}
	return at
}
