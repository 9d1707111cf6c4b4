package pacc

import (
	"context"
	"fmt"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
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
		if q, ok := flowtable.ReadQueuePair(e.GetTableEntry()); ok {
			dst = append(dst, q)
		}
	}
	return dst, nil
}

// WriteQueuePairs implements cnpgen.QueuePairTable.
func (o *overP4Runtime) WriteQueuePairs(add, remove []cnpgen.QueuePair) error {
	var updates []*p4v1.Update
	for _, q := range remove {
		updates = append(updates, p4msg.Delete(flowtable.QueuePairEntry(q, o.ageing)))
	}
	for _, q := range add {
		updates = append(updates, p4msg.Insert(flowtable.QueuePairEntry(q, o.ageing)))
	}
	if err := o.write(updates); err != nil {
		return fmt.Errorf("learning %d queue pairs: %w", len(add), err)
	}
	return nil
}
