package pacc

import (
	"encoding/binary"
	"errors"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/units"
)

// QueuePairs implements cnpgen.QueuePairTable: a table that the agent has emptied holds
// nothing else.
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
			return // the next Sweep sees to it
		}
		for _, q := range remove {
			delete(d.pairs, q)
			if err := st.Apply(d.update(p4v1.Update_DELETE, q)); err != nil && status.Code(err) != codes.NotFound {
				errs = errors.Join(errs, err)
			}
		}
		for _, q := range add {
			u := d.update(p4v1.Update_INSERT, q)
			if err := st.Apply(u); err != nil && status.Code(err) != codes.AlreadyExists {
				errs = errors.Join(errs, fmt.Errorf("learning %v: %w", q, err))
				continue
			}
			if h, ok := st.Handle(u.GetEntity().GetTableEntry()); ok {
				d.pairs[q] = h
			}
		}
	})
	if !done {
		return cnpgen.ErrBusy
	}
	return errs
}

// idleQueuePairs returns those that nobody has acknowledged for the ageing time.
func (d *data) idleQueuePairs(now units.Time) []cnpgen.QueuePair {
	expired := d.in.Expired(ids.TableQueuePairName, now)
	if len(expired) == 0 {
		return nil
	}
	gone := make(map[engine.Handle]bool, len(expired))
	for _, h := range expired {
		gone[h] = true
	}
	var list []cnpgen.QueuePair
	for q, h := range d.pairs {
		if gone[h] {
			list = append(list, q)
		}
	}
	return list
}

func (d *data) update(kind p4v1.Update_Type, q cnpgen.QueuePair) *p4v1.Update {
	src, dst := q.Src.As4(), q.Dst.As4()
	return &p4v1.Update{Type: kind, Entity: &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{
		TableId: ids.TableQueuePair,
		Match: []*p4v1.FieldMatch{
			exact(ids.FieldQueuePairSrcAddr, src[:]), exact(ids.FieldQueuePairDstAddr, dst[:]),
			exact(ids.FieldQueuePairQP, binary.BigEndian.AppendUint32(nil, q.QP)),
		},
		Action: call(ids.ActionKnowQueuePair), IdleTimeoutNs: d.ageing,
	}}}}
}
