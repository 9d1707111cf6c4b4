package inproc

// Losses counts every place where a packet can be lost. Retransmissions are beside it: hosts go
// back N when a packet was lost, but also when a route changes and packets overtake others.
type Losses struct {
	Queues      uint64 `json:"queue_drops"`     // traffic managers' tail drops
	Pipelines   uint64 `json:"pipeline_drops"`  // dropped by the P4 program's admission
	Links       uint64 `json:"link_drops"`      // sent into a link that was down
	Switches    uint64 `json:"switch_drops"`    // arrived at a switch that was down or had no program
	Retransmits uint64 `json:"retransmissions"` // by the hosts, whatever the reason
}

// Any reports whether a packet was lost anywhere.
func (l Losses) Any() bool {
	return l.Queues+l.Pipelines+l.Links+l.Switches > 0
}

// Since returns what was lost after o was taken.
func (l Losses) Since(o Losses) Losses {
	l.Queues -= o.Queues
	l.Pipelines -= o.Pipelines
	l.Links -= o.Links
	l.Switches -= o.Switches
	return l
}

func (l *Losses) add(o Losses) {
	l.Queues += o.Queues
	l.Pipelines += o.Pipelines
	l.Links += o.Links
	l.Switches += o.Switches
}

// Losses adds up what the fabric itself knows to be lost so far: in queues, on links and at
// switches. What pipelines dropped the controller tells, what was sent again the hosts; on
// the loop.
func (f *Fabric) Losses() Losses {
	l := f.buried
	for _, n := range f.switches {
		l.add(switchLosses(n))
	}
	for _, link := range f.links {
		for _, st := range link.Stats() {
			l.Links += st.Lost
		}
	}
	return l
}

func switchLosses(n *node) Losses {
	var l Losses
	st := n.sw.Stats()
	l.Switches = st.NoPipeline + st.UnknownPort + st.AgainDropped
	for _, p := range n.sw.PortStats() {
		l.Queues += p.Queues.Dropped().Packets
		l.Links += p.TxLost
	}
	return l
}
