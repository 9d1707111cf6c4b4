package observed

import "maps"

// maxSizes bounds the ranges of sizes that are kept; flows of others are left out.
const maxSizes = 16

// maxSlowdown bounds the sum of a host's slowdowns, so that no report makes the sum of all infinite.
const maxSlowdown = 1e18

// Sizes is a range of payloads: From bytes and more, below Below; 0 for no bound.
type Sizes struct{ From, Below uint64 }

// Completions counts flows that have ended.
type Completions struct {
	Flows    uint64
	FCT      uint64  // sum of completion times, ns modulo 2^64
	Slowdown float64 // sum of completion times over those alone
}

// Since returns what was counted since before.
func (c Completions) Since(before Completions) Completions {
	return Completions{Flows: c.Flows - before.Flows, FCT: c.FCT - before.FCT, Slowdown: c.Slowdown - before.Slowdown}
}

// With returns the sum of both.
func (c Completions) With(o Completions) Completions {
	return Completions{Flows: c.Flows + o.Flows, FCT: c.FCT + o.FCT, Slowdown: c.Slowdown + o.Slowdown}
}

// Completed takes all that a host has counted since it started. The first counts of a host say only where it
// stands; those with fewer flows than the last are of a host that was restarted. What is no number is left out.
func (t *Table) Completed(host string, counts map[Sizes]Completions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended, t.counted = map[Sizes]Completions{}, map[string]map[Sizes]Completions{}
	}
	before, known := t.counted[host]
	kept := map[Sizes]Completions{}
	for s, c := range counts {
		sum, old := t.ended[s]
		if !old && len(t.ended) >= maxSizes || !(c.Slowdown >= 0 && c.Slowdown <= maxSlowdown) {
			continue
		}
		kept[s] = c
		was := before[s]
		if c.Flows < was.Flows {
			was = Completions{}
		}
		if d := c.Since(was); known && d.Slowdown >= 0 {
			sum = sum.With(d)
		}
		t.ended[s] = sum
	}
	t.counted[host] = kept
}

// Completions returns what all hosts counted since the first report.
func (t *Table) Completions() map[Sizes]Completions {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.ended)
}
