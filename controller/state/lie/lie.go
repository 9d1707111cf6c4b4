// Package lie makes a controller lie, so that tests/cluster can show that its checker finds that. Nobody else sets it.
package lie

var (
	// Early acknowledges changes a moment before they are in the journal.
	Early bool
	// Stale lets a follower answer from an earlier read.
	Stale bool
	// Late lets a leader answer after its lease, and not look whether that has ended.
	Late bool
)
