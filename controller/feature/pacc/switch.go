package pacc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/session"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/pacc"
)

// overP4Runtime is a switch behind a session.
type overP4Runtime struct {
	sw     feature.Switch
	pipe   *pipeline.Pipeline
	queue  uint8 // that is watched
	ageing time.Duration
	cnp    pacc.CNPBuilder
	ctx    context.Context   // of the tick under way
	index  map[pacc.Flow]int // scratch of Counters
}

var _ pacc.Switch = (*overP4Runtime)(nil)

// readTimeout and writeTimeout bound the calls of a tick.
const (
	readTimeout  = time.Second
	writeTimeout = 5 * time.Second
)

// Poll implements pacc.Switch.
func (o *overP4Runtime) Poll(port uint32, tick uint64) error {
	return o.out(port, ids.PacketOutPoll, binary.BigEndian.AppendUint64([]byte(payload), tick))
}

// CNP implements pacc.Switch: the pipeline routes it and sorts it into its class's queue.
func (o *overP4Runtime) CNP(f pacc.Flow) error {
	// The session keeps what it is given until it is sent.
	return o.out(0, ids.PacketOutPipeline, o.cnp.Append(nil, f.FlowKey))
}

func (o *overP4Runtime) out(port uint32, mode uint64, payload []byte) error {
	p, err := o.pipe.PacketOut(payload,
		pipeline.Arg{Name: "egress_port", Value: pipeline.Uint(uint64(port))},
		pipeline.Arg{Name: "queue", Value: pipeline.Uint(ids.HighestQueue)},
		pipeline.Arg{Name: "mode", Value: pipeline.Uint(mode)},
	)
	if err != nil {
		return err
	}
	return o.sw.PacketOut(p)
}

// Counters implements pacc.Switch: both tables in one request.
func (o *overP4Runtime) Counters(dst []pacc.Count) ([]pacc.Count, error) {
	ctx, cancel := context.WithTimeout(o.ctx, readTimeout)
	defer cancel()
	ask := func(table uint32) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: table, CounterData: &p4v1.CounterData{}}}}
	}
	list, err := o.sw.Read(ctx, ask(ids.TableFlow), ask(ids.TableCongestedFlow))
	if err != nil {
		return dst, err
	}
	if o.index == nil {
		o.index = make(map[pacc.Flow]int)
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
				dst = append(dst, pacc.Count{Flow: f, Partial: true})
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

// Write implements pacc.Switch.
func (o *overP4Runtime) Write(add, remove []pacc.Flow) ([]pacc.Flow, error) {
	var updates []*p4v1.Update
	var flows []pacc.Flow // of each update
	var errs error
	plan := func(kind p4v1.Update_Type, f pacc.Flow) {
		both, err := o.entries(f)
		if err != nil {
			errs = errors.Join(errs, err)
			return
		}
		for _, e := range both {
			updates = append(updates, &p4v1.Update{Type: kind, Entity: e})
			flows = append(flows, f)
		}
	}
	for _, f := range remove {
		plan(p4v1.Update_DELETE, f)
	}
	for _, f := range add {
		plan(p4v1.Update_INSERT, f)
	}
	ctx, cancel := context.WithTimeout(o.ctx, writeTimeout)
	defer cancel()
	err := o.sw.Write(ctx, updates)
	if err == nil {
		return nil, errs
	}
	var partial *session.WriteError
	if !errors.As(err, &partial) {
		return add, errors.Join(errs, fmt.Errorf("learning %d flows: %w", len(add), err))
	}
	// Which flow a refused update is of stands in the update itself.
	refused := map[pacc.Flow]bool{}
	for _, u := range partial.Failed {
		kind := u.Update.GetType()
		if kind == p4v1.Update_INSERT && u.Code == codes.AlreadyExists || kind == p4v1.Update_DELETE && u.Code == codes.NotFound {
			continue
		}
		errs = errors.Join(errs, fmt.Errorf("%v: %v: %s", kind, u.Code, u.Message))
		if f, ok := flowOfEntry(u.Update.GetEntity().GetTableEntry()); ok && kind == p4v1.Update_INSERT {
			refused[f] = true
		}
	}
	var list []pacc.Flow
	for _, f := range add {
		if refused[f] {
			list = append(list, f)
		}
	}
	return list, errs
}

// entries are a flow's two.
func (o *overP4Runtime) entries(f pacc.Flow) ([]*p4v1.Entity, error) {
	var both []*p4v1.Entity
	for _, t := range []struct{ table, action string }{
		{ids.TableFlowName, ids.ActionCountFlowName}, {ids.TableCongestedFlowName, ids.ActionCountCongestedName},
	} {
		src, dst := f.Src.As4(), f.Dst.As4()
		e, err := o.pipe.Entry(t.table).Exact("src_addr", src[:]).Exact("dst_addr", dst[:]).
			Exact("egress_port", pipeline.Uint(uint64(f.Port))).Action(t.action).Entity()
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

// flowOfEntry reads the keys, which are the same in both tables.
func flowOfEntry(e *p4v1.TableEntry) (pacc.Flow, bool) {
	var f pacc.Flow
	for _, m := range e.GetMatch() {
		v := pipeline.Number(m.GetExact().GetValue())
		switch m.GetFieldId() {
		case ids.FieldFlowSrcAddr:
			f.Src = address(v)
		case ids.FieldFlowDstAddr:
			f.Dst = address(v)
		case ids.FieldFlowEgressPort:
			f.Port = uint32(v)
		}
	}
	return f, f.Src.IsValid() && f.Dst.IsValid()
}

// flowOfDigest reads flow_digest_t.
func flowOfDigest(d *p4v1.P4Data) (pacc.Flow, bool) {
	m := d.GetStruct().GetMembers()
	if len(m) != 3 {
		return pacc.Flow{}, false
	}
	number := func(i int) uint64 { return pipeline.Number(m[i].GetBitstring()) }
	return pacc.Flow{FlowKey: cnpgen.FlowKey{Src: address(number(0)), Dst: address(number(1))}, Port: uint32(number(2))}, true
}

func address(v uint64) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}
