package headgatev1

import (
	"iter"
	"slices"
)

// Values returns what a switch shows for a metric, by the keys of the rows.
func (x *SwitchStatus) Values(metric string) iter.Seq2[[]string, *StatusValue] {
	return func(yield func([]string, *StatusValue) bool) {
		for _, t := range x.GetStatus() {
			i := slices.IndexFunc(t.GetColumns(), func(c *StatusColumn) bool { return c.GetMetric() == metric })
			for _, r := range t.GetRows() {
				if i >= 0 && i < len(r.GetValues()) && !yield(r.GetKeys(), r.GetValues()[i]) {
					return
				}
			}
		}
	}
}
