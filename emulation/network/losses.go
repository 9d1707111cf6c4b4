package network

import (
	"context"
	"errors"
	"fmt"
	"io"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/p4src/ids"
)

// Losses counts every place where a packet can be lost. It also counts retransmissions: hosts go back N after a
// loss, and also after packets overtake others because a route changed.
type Losses struct {
	Admission uint64 `json:"admission_drops"` // drops by the P4 program: the queue was at its limit
	Buffer    uint64 `json:"buffer_drops"`    // drops by the P4 program: no memory that the packet may take
	Lossless  uint64 `json:"lossless_drops"`  // part of Buffer in lossless classes
	Pipelines uint64 `json:"pipeline_drops"`  // drops by the P4 program for any other reason, such as no route
	Queues    uint64 `json:"queue_drops"`     // traffic managers' tail drops
	Links     uint64 `json:"link_drops"`      // sent into a link that was down
	Switches  uint64 `json:"switch_drops"`    // arrived at a switch that was down or had no program

	Retransmits uint64 `json:"retransmissions"` // packets that the hosts sent again, for any reason
}

// Dropped returns the packets that switches dropped because a queue or the memory was full.
func (l Losses) Dropped() uint64 { return l.Admission + l.Buffer }

// Faults returns the losses whose cause is not congestion.
func (l Losses) Faults() uint64 { return l.Pipelines + l.Queues + l.Links + l.Switches }

// Since returns the losses after o.
func (l Losses) Since(o Losses) Losses {
	for i, n := range l.counts() {
		*n -= *o.counts()[i]
	}
	return l
}

func (l *Losses) add(o Losses) {
	for i, n := range l.counts() {
		*n += *o.counts()[i]
	}
}

func (l *Losses) counts() [8]*uint64 {
	return [...]*uint64{&l.Admission, &l.Buffer, &l.Lossless, &l.Pipelines, &l.Queues, &l.Links, &l.Switches, &l.Retransmits}
}

// Losses adds up all losses so far except retransmissions, which only hosts know. It asks the
// switches, so the result does not depend on the controller's polls.
func (f *Fabric) Losses(ctx context.Context) (l Losses, err error) {
	if err := f.Loop.Do(ctx, func() {
		l = f.buried
		for _, n := range f.switches {
			l.add(switchLosses(n))
		}
		for _, link := range f.links {
			for _, st := range link.Stats() {
				l.Links += st.Lost
			}
		}
	}); err != nil {
		return l, err
	}
	for _, n := range f.switches {
		dropped, err := pipelineLosses(ctx, n.conf)
		if err != nil {
			return l, fmt.Errorf("drop counters of switch %s: %w", n.conf.Name, err)
		}
		l.add(dropped)
	}
	return l, nil
}

// switchLosses returns a switch's losses outside its pipeline. It runs on the loop.
func switchLosses(n *node) (l Losses) {
	st := n.sw.Stats()
	l.Switches = st.NoPipeline + st.UnknownPort + st.RecirculationsDropped
	for _, p := range n.sw.PortStats() {
		l.Queues += p.Queues.Dropped().Packets
		l.Links += p.TxLost
	}
	return l
}

// pipelineLosses reads a switch's drop counters over P4Runtime.
func pipelineLosses(ctx context.Context, s config.Switch) (Losses, error) {
	conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return Losses{}, err
	}
	defer conn.Close()
	all := func(counter uint32) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{CounterId: counter}}}
	}
	stream, err := p4v1.NewP4RuntimeClient(conn).Read(ctx, &p4v1.ReadRequest{
		DeviceId: s.DeviceID, Entities: []*p4v1.Entity{all(ids.CounterDrops), all(ids.CounterLosslessDrops)},
	}, grpc.WaitForReady(true))
	var l Losses
	for err == nil {
		var r *p4v1.ReadResponse
		if r, err = stream.Recv(); err == nil {
			for _, e := range r.Entities {
				l.count(e.GetCounterEntry())
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		return l, err
	}
	return l, nil
}

// count adds a cell of a drop counter. A PAUSE that ends at a MAC is no loss.
func (l *Losses) count(c *p4v1.CounterEntry) {
	n := uint64(c.GetData().GetPacketCount())
	switch reason := c.GetIndex().GetIndex(); {
	case c.GetCounterId() == ids.CounterLosslessDrops:
		l.Lossless += n
	case reason == ids.DropAdmission:
		l.Admission += n
	case reason == ids.DropBuffer:
		l.Buffer += n
	case reason != ids.DropMACControl:
		l.Pipelines += n
	}
}
