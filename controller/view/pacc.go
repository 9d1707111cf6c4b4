package view

import "github.com/headgate/headgate/pacc"

// PACC is how the PACC loop of a switch stands.
type PACC struct {
	Switch string
	pacc.Stats
	PortLoops []pacc.PortStats
}
