package pacc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// overP4Runtime is a switch behind a session.
type overP4Runtime struct {
	sw       feature.Switch
	pipe     *pipeline.Pipeline
	families []*flowtable.Family // families of flow tables that the pipeline has
	queue    uint8               // the watched queue
	ageing   time.Duration
	cnp      cnpgen.CNPBuilder
	ctx      context.Context     // context of the tick under way
	now      time.Time           // time of the tick under way
	index    map[cnpgen.Flow]int // scratch of Counters
}

var (
	_ cnpgen.Switch         = (*overP4Runtime)(nil)
	_ cnpgen.QueuePairTable = (*overP4Runtime)(nil)
)

// readTimeout and writeTimeout bound the calls of a tick.
const (
	readTimeout  = time.Second
	writeTimeout = 5 * time.Second
)

// Poll implements cnpgen.Switch.
func (o *overP4Runtime) Poll(port uint32) error { return o.sw.Poll(o.now, 0, port) }

// CNP implements cnpgen.Switch: the pipeline routes it and sorts it into its class's queue.
func (o *overP4Runtime) CNP(f cnpgen.Flow, qp uint32) error {
	// The session keeps the update until it is sent.
	return feature.Send(o.pipe, o.sw, o.cnp.Append(nil, f.FlowKey, qp), 0, ids.HighestQueue, ids.PacketOutPipeline)
}

func (o *overP4Runtime) read(requests []*p4v1.Entity) ([]*p4v1.Entity, error) {
	ctx, cancel := context.WithTimeout(o.ctx, readTimeout)
	defer cancel()
	return o.sw.Read(ctx, requests...)
}

// Counters implements cnpgen.Switch: all tables in one request.
func (o *overP4Runtime) Counters(dst []cnpgen.Counters) ([]cnpgen.Counters, error) {
	ask := func(table uint32) *p4v1.Entity {
		return p4rtmsg.Entity(&p4v1.TableEntry{TableId: table, CounterData: &p4v1.CounterData{}})
	}
	var requests []*p4v1.Entity
	for _, of := range o.families {
		requests = append(requests, ask(of.Flow), ask(of.Congested))
	}
	list, err := o.read(requests)
	if err != nil {
		return dst, err
	}
	if o.index == nil {
		o.index = make(map[cnpgen.Flow]int)
	}
	clear(o.index)
	// A flow is whole once both tables have named it.
	for _, congested := range []bool{false, true} {
		for _, e := range list {
			t := e.GetTableEntry()
			f, ok := flowtable.ReadFlow(t)
			if !ok || congested != (t.GetTableId() == flowtable.FamilyOf(f.FlowKey).Congested) {
				continue
			}
			i, known := o.index[f]
			if !known {
				i = len(dst)
				o.index[f] = i
				dst = append(dst, cnpgen.Counters{Flow: f, Partial: true})
			}
			if d := t.GetCounterData(); !congested {
				dst[i].Bytes = uint64(max(0, d.GetByteCount()))
			} else {
				dst[i].Congested = uint64(max(0, d.GetPacketCount()))
				dst[i].Partial = !known
			}
		}
	}
	return dst, nil
}

// Write implements cnpgen.Switch.
func (o *overP4Runtime) Write(add, remove []cnpgen.Flow) ([]cnpgen.Flow, error) {
	var updates []*p4v1.Update
	entries := func(of []cnpgen.Flow, update func(any) *p4v1.Update) {
		for _, f := range of {
			for _, e := range flowtable.FlowEntries(f, o.ageing) {
				updates = append(updates, update(e))
			}
		}
	}
	entries(remove, p4rtmsg.Delete)
	entries(add, p4rtmsg.Insert)
	err := o.write(updates)
	if err == nil {
		return nil, nil
	}
	err = fmt.Errorf("learning %s: %w", units.Count(len(add), "flow"), err)
	var partial *session.WriteError
	if !errors.As(err, &partial) {
		return add, err
	}
	// A refused update contains its flow.
	refused := map[cnpgen.Flow]bool{}
	for _, u := range partial.Failed {
		if f, ok := flowtable.ReadFlow(u.Update.GetEntity().GetTableEntry()); ok && u.Update.GetType() == p4v1.Update_INSERT {
			refused[f] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(add), func(f cnpgen.Flow) bool { return !refused[f] }), err
}

// QueuePairs implements cnpgen.QueuePairTable.
func (o *overP4Runtime) QueuePairs(dst []cnpgen.QueuePair) ([]cnpgen.QueuePair, error) {
	var requests []*p4v1.Entity
	for _, of := range o.families {
		requests = append(requests, p4rtmsg.Entity(&p4v1.TableEntry{TableId: of.QueuePair}))
	}
	list, err := o.read(requests)
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
		updates = append(updates, p4rtmsg.Delete(flowtable.QueuePairEntry(q, o.ageing)))
	}
	for _, q := range add {
		updates = append(updates, p4rtmsg.Insert(flowtable.QueuePairEntry(q, o.ageing)))
	}
	if err := o.write(updates); err != nil {
		return fmt.Errorf("learning %d queue pairs: %w", len(add), err)
	}
	return nil
}

// write sends updates. It is no error if an added entry exists or a removed one does not. After an
// error other than a *session.WriteError it is possible that nothing was written.
func (o *overP4Runtime) write(updates []*p4v1.Update) error {
	ctx, cancel := context.WithTimeout(o.ctx, writeTimeout)
	defer cancel()
	err := o.sw.Write(ctx, updates)
	var partial *session.WriteError
	if !errors.As(err, &partial) {
		return err
	}
	failed := slices.DeleteFunc(slices.Clone(partial.Failed), func(u session.UpdateError) bool {
		kind := u.Update.GetType()
		return kind == p4v1.Update_INSERT && u.Code == codes.AlreadyExists || kind == p4v1.Update_DELETE && u.Code == codes.NotFound
	})
	if len(failed) == 0 {
		return nil
	}
	return &session.WriteError{Failed: failed, Total: partial.Total}
}
