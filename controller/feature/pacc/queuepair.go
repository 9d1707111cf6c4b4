package pacc

import (
	"context"
	"errors"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
)

var _ cnpgen.QueuePairTable = (*overP4Runtime)(nil)

// QueuePairs implements cnpgen.QueuePairTable.
func (o *overP4Runtime) QueuePairs(dst []cnpgen.QueuePair) ([]cnpgen.QueuePair, error) {
	ctx, cancel := context.WithTimeout(o.ctx, readTimeout)
	defer cancel()
	list, err := o.sw.Read(ctx, p4msg.Of(&p4v1.TableEntry{TableId: ids.TableQueuePair}))
	if err != nil {
		return dst, fmt.Errorf("queue pairs: %w", err)
	}
	for _, e := range list {
		if key, qp, ok := keysOf(e.GetTableEntry()); ok {
			dst = append(dst, cnpgen.QueuePair{FlowKey: key, QP: qp})
		}
	}
	return dst, nil
}

// WriteQueuePairs implements cnpgen.QueuePairTable.
func (o *overP4Runtime) WriteQueuePairs(add, remove []cnpgen.QueuePair) error {
	var updates []*p4v1.Update
	var errs error
	plan := func(kind p4v1.Update_Type, list []cnpgen.QueuePair) {
		for _, q := range list {
			src, dst := q.Src.As4(), q.Dst.As4()
			e, err := o.pipe.Entry(ids.TableQueuePairName).Exact("src_addr", src[:]).Exact("dst_addr", dst[:]).
				Exact("qp", p4msg.Uint(uint64(q.QP))).Action(ids.ActionKnowQueuePairName).Entity()
			if err != nil {
				errs = errors.Join(errs, err)
				continue
			}
			e.GetTableEntry().IdleTimeoutNs = o.ageing.Nanoseconds()
			updates = append(updates, &p4v1.Update{Type: kind, Entity: e})
		}
	}
	plan(p4v1.Update_DELETE, remove)
	plan(p4v1.Update_INSERT, add)
	failed, err := o.write(updates)
	if err != nil {
		return errors.Join(errs, fmt.Errorf("learning %d queue pairs: %w", len(add), err))
	}
	for _, u := range failed {
		errs = errors.Join(errs, fmt.Errorf("%v: %v: %s", u.Update.GetType(), u.Code, u.Message))
	}
	return errs
}
