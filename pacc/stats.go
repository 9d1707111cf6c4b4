package pacc

import (
	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/units"
)

// Stats counts what a loop has done since it was made.
type Stats struct {
	Ticks         uint64     // periods begun
	Late          uint64     // of them, more than a quarter of a period late
	Missed        uint64     // periods without a tick
	Lateness      units.Time // of all ticks together
	WorstLateness units.Time
	Unanswered    uint64 // ports whose poll did not come back within a period
	Stale         uint64 // answers to polls that came too late, or unasked
	ReadErrors    uint64 // ticks without counters

	CNPs      uint64 // sent
	CNPErrors uint64 // that could not be sent

	Flows   int    // in the table now
	Learned uint64 // entered into it
	Aged    uint64 // left it because they were idle
	Evicted uint64 // left it for others, the least congested first
	Refused uint64 // found no place, or were refused by the switch
}

// PortStats is a watched port.
type PortStats struct {
	Port  uint32
	Queue units.Bytes // at the last poll
	cnpgen.Stats
}

// Stats returns the counters.
func (l *Loop) Stats() Stats { return l.stats }

// Ports returns the watched ports' own counters, in the order of the configuration.
func (l *Loop) Ports() []PortStats {
	list := make([]PortStats, len(l.ports))
	for i, p := range l.ports {
		list[i] = PortStats{p.number, p.queue, p.gen.Stats()}
	}
	return list
}
