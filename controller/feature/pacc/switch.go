package pacc

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/session"
	"github.com/headgate/headgate/internal/canon"
	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/p4src/ids"
)

// overP4Runtime is a switch behind a session.
type overP4Runtime struct {
	sw     feature.Switch
	pipe   *pipeline.Pipeline
	queue  uint8 // that is watched
	ageing time.Duration
	cnp    cnpgen.CNPBuilder
	ctx    context.Context     // of the tick under way
	now    time.Time           // its time
	index  map[cnpgen.Flow]int // scratch of Counters
}

var _ cnpgen.Switch = (*overP4Runtime)(nil)

// readTimeout and writeTimeout bound the calls of a tick.
const (
	readTimeout  = time.Second
	writeTimeout = 5 * time.Second
)

// Poll implements cnpgen.Switch.
func (o *overP4Runtime) Poll(port uint32) error { return o.sw.Poll(o.now, 0, port) }

// CNP implements cnpgen.Switch: the pipeline routes it and sorts it into its class's queue.
func (o *overP4Runtime) CNP(f cnpgen.Flow, qp uint32) error {
	// The session keeps what it is given until it is sent.
	p, err := o.pipe.PacketOut(o.cnp.Append(nil, f.FlowKey, qp),
		pipeline.Arg{Name: "egress_port", Value: p4msg.Uint(0)},
		pipeline.Arg{Name: "queue", Value: p4msg.Uint(ids.HighestQueue)},
		pipeline.Arg{Name: "mode", Value: p4msg.Uint(ids.PacketOutPipeline)},
	)
	if err != nil {
		return err
	}
	return o.sw.PacketOut(p)
}

// Counters implements cnpgen.Switch: both tables in one request.
func (o *overP4Runtime) Counters(dst []cnpgen.Counters) ([]cnpgen.Counters, error) {
	ctx, cancel := context.WithTimeout(o.ctx, readTimeout)
	defer cancel()
	ask := func(table uint32) *p4v1.Entity {
		return p4msg.Of(&p4v1.TableEntry{TableId: table, CounterData: &p4v1.CounterData{}})
	}
	list, err := o.sw.Read(ctx, ask(ids.TableFlow), ask(ids.TableCongestedFlow))
	if err != nil {
		return dst, err
	}
	if o.index == nil {
		o.index = make(map[cnpgen.Flow]int)
	}
	clear(o.index)
	// A flow is whole once both tables have named it.
	for _, table := range []uint32{ids.TableFlow, ids.TableCongestedFlow} {
		for _, e := range list {
			t := e.GetTableEntry()
			f, ok := flowOfEntry(t)
			if !ok || t.GetTableId() != table {
				continue
			}
			i, known := o.index[f]
			if !known {
				i = len(dst)
				o.index[f] = i
				dst = append(dst, cnpgen.Counters{Flow: f, Partial: true})
			}
			if d := t.GetCounterData(); table == ids.TableFlow {
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
	var errs error
	plan := func(kind p4v1.Update_Type, f cnpgen.Flow) {
		both, err := o.entries(f)
		if err != nil {
			errs = errors.Join(errs, err)
			return
		}
		for _, e := range both {
			updates = append(updates, &p4v1.Update{Type: kind, Entity: e})
		}
	}
	for _, f := range remove {
		plan(p4v1.Update_DELETE, f)
	}
	for _, f := range add {
		plan(p4v1.Update_INSERT, f)
	}
	failed, err := o.write(updates)
	if err != nil {
		return add, errors.Join(errs, fmt.Errorf("learning %d flows: %w", len(add), err))
	}
	// Which flow a refused update is of stands in the update itself.
	refused := map[cnpgen.Flow]bool{}
	for _, u := range failed {
		errs = errors.Join(errs, fmt.Errorf("%v: %v: %s", u.Update.GetType(), u.Code, u.Message))
		if f, ok := flowOfEntry(u.Update.GetEntity().GetTableEntry()); ok && u.Update.GetType() == p4v1.Update_INSERT {
			refused[f] = true
		}
	}
	var list []cnpgen.Flow
	for _, f := range add {
		if refused[f] {
			list = append(list, f)
		}
	}
	return list, errs
}

// write sends updates and returns those that were refused, but for entries that were there
// already or not there any more. With an error nothing may have been written.
func (o *overP4Runtime) write(updates []*p4v1.Update) ([]session.UpdateError, error) {
	ctx, cancel := context.WithTimeout(o.ctx, writeTimeout)
	defer cancel()
	err := o.sw.Write(ctx, updates)
	var partial *session.WriteError
	if !errors.As(err, &partial) {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(partial.Failed), func(u session.UpdateError) bool {
		kind := u.Update.GetType()
		return kind == p4v1.Update_INSERT && u.Code == codes.AlreadyExists || kind == p4v1.Update_DELETE && u.Code == codes.NotFound
	}), nil
}

// entries are a flow's two.
func (o *overP4Runtime) entries(f cnpgen.Flow) ([]*p4v1.Entity, error) {
	var both []*p4v1.Entity
	for _, t := range []struct{ table, action string }{
		{ids.TableFlowName, ids.ActionCountFlowName}, {ids.TableCongestedFlowName, ids.ActionCountCongestedName},
	} {
		src, dst := f.Src.As4(), f.Dst.As4()
		e, err := o.pipe.Entry(t.table).Exact("src_addr", src[:]).Exact("dst_addr", dst[:]).
			Exact("egress_port", p4msg.Uint(uint64(f.Port))).Action(t.action).Entity()
		if err != nil {
			return nil, err
		}
		if t.table == ids.TableFlowName {
			e.GetTableEntry().IdleTimeoutNs = o.ageing.Nanoseconds()
		}
		both = append(both, e)
	}
	return both, nil
}

// flowOfEntry reads the keys, which are the same in both tables of flows.
func flowOfEntry(e *p4v1.TableEntry) (cnpgen.Flow, bool) {
	key, port, ok := keysOf(e)
	return cnpgen.Flow{FlowKey: key, Port: port}, ok
}

// keysOf reads the keys of a learned entry: two addresses, and a port or a queue pair.
func keysOf(e *p4v1.TableEntry) (key cnpgen.FlowKey, last uint32, ok bool) {
	for _, m := range e.GetMatch() {
		v := canon.Low64(m.GetExact().GetValue())
		switch m.GetFieldId() {
		case ids.FieldFlowSrcAddr:
			key.Src = address(v)
		case ids.FieldFlowDstAddr:
			key.Dst = address(v)
		case ids.FieldFlowEgressPort:
			last = uint32(v)
		}
	}
	return key, last, key.Src.IsValid() && key.Dst.IsValid()
}

// ofDigest reads flow_digest_t and queue_pair_digest_t.
func ofDigest(d *p4v1.P4Data) (key cnpgen.FlowKey, last uint32, ok bool) {
	m := d.GetStruct().GetMembers()
	if len(m) != 3 {
		return cnpgen.FlowKey{}, 0, false
	}
	number := func(i int) uint64 { return canon.Low64(m[i].GetBitstring()) }
	return cnpgen.FlowKey{Src: address(number(0)), Dst: address(number(1))}, uint32(number(2)), true
}

func address(v uint64) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}
