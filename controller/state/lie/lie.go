// Package lie makes a controller give wrong answers, so that tests/cluster can show that its checker detects them.
// Only those tests set its variables.
package lie

var (
	// Early acknowledges changes a moment before they are in the journal.
	Early bool
	// Stale lets a follower answer from an earlier read.
	Stale bool
	// Late lets a leader answer without checking whether its lease has ended.
	Late bool
)
