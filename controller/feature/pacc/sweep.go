package pacc

import (
	"context"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/internal/p4msg"
)

// sweeper removes learned entries from a switch that has no loop any more. Learned entries are in no
// desired state, so nothing else removes them.
type sweeper struct {
	sw     feature.Switch
	tables []uint32
	done   bool
}

// sweepInterval is how often a switch that cannot be read is tried again.
const sweepInterval = time.Second

// sweepMost bounds the entries that one tick takes out.
const sweepMost = 512

// Interval implements feature.Loop.
func (s *sweeper) Interval() time.Duration { return sweepInterval }

// Tick implements feature.Loop.
func (s *sweeper) Tick(ctx context.Context, _ time.Time) error {
	if s.done {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var updates []*p4v1.Update
	for _, table := range s.tables {
		list, err := s.sw.Read(ctx, p4msg.Of(&p4v1.TableEntry{TableId: table}))
		if err != nil {
			return err
		}
		for _, e := range list {
			t := e.GetTableEntry()
			key := &p4v1.TableEntry{TableId: t.GetTableId(), Match: t.GetMatch()}
			updates = append(updates, p4msg.Delete(key))
		}
	}
	if len(updates) == 0 {
		s.done = true
		return nil
	}
	return s.sw.Write(ctx, updates[:min(len(updates), sweepMost)])
}

// Receive implements feature.Loop.
func (*sweeper) Receive(time.Time, feature.Message) {}
