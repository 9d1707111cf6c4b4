package pacc

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/units"
)

// QueuePairs implements cnpgen.QueuePairTable. The agent has emptied the table before, so it contains
// no other entries.
func (d *data) QueuePairs(dst []cnpgen.QueuePair) ([]cnpgen.QueuePair, error) {
	for q := range d.pairs {
		dst = append(dst, q)
	}
	return dst, nil
}

// WriteQueuePairs implements cnpgen.QueuePairTable.
func (d *data) WriteQueuePairs(add, remove []cnpgen.QueuePair) error {
	var errs error
	done := d.host.TryControl(func(st *entity.State, in *engine.Instance) {
		if in != d.in {
			return // the next Sweep stops this loop
		}
		for _, q := range remove {
			delete(d.pairs, q)
			if err := st.Apply(p4msg.Delete(flowtable.QueuePairEntry(q, d.ageing))); err != nil && status.Code(err) != codes.NotFound {
				errs = errors.Join(errs, err)
			}
		}
		for _, q := range add {
			e := flowtable.QueuePairEntry(q, d.ageing)
			if err := st.Apply(p4msg.Insert(e)); err != nil && status.Code(err) != codes.AlreadyExists {
				errs = errors.Join(errs, fmt.Errorf("learning %v: %w", q, err))
				continue
			}
			if h, ok := st.Handle(e); ok {
				d.pairs[q] = h
			}
		}
	})
	if !done {
		return cnpgen.ErrBusy
	}
	return errs
}

// idleQueuePairs returns the queue pairs that no acknowledgement has named for the ageing time.
func (d *data) idleQueuePairs(now units.Time) []cnpgen.QueuePair {
	var list []cnpgen.QueuePair
	if gone := d.expired(ids.TableQueuePairName, now); len(gone) > 0 {
		for q, h := range d.pairs {
			if gone[h] {
				list = append(list, q)
			}
		}
	}
	return list
}
