package pacc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/cnpgen/flowtable"
	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/units"
)

// data implements cnpgen.Switch with the tables of one pipeline. The agent's lock guards it.
type data struct {
	host   Host
	in     *engine.Instance
	queue  map[uint32]uint8 // the watched queue of each port
	polled func(now, asked units.Time, port uint32, queue units.Bytes)
	cnp    cnpgen.CNPBuilder
	ageing time.Duration
	now    units.Time

	flows []row // rows of the flow table, in no order
	at    map[cnpgen.Flow]int
	pairs map[cnpgen.QueuePair]engine.Handle // entries of the table of queue pairs
	frame []byte
}

type row struct {
	cnpgen.Flow
	all, congested engine.Handle
}

var (
	_ cnpgen.Switch         = (*data)(nil)
	_ cnpgen.QueuePairTable = (*data)(nil)
)

func newData(host Host, in *engine.Instance) *data {
	return &data{host: host, in: in, at: map[cnpgen.Flow]int{}, pairs: map[cnpgen.QueuePair]engine.Handle{}}
}

// configure applies settings. The learned flows stay.
func (d *data) configure(list []flowtable.Watched, s cnpgen.Settings) {
	d.queue = make(map[uint32]uint8, len(list))
	for _, w := range list {
		d.queue[w.Port] = w.Queue
	}
	d.cnp.DSCP, d.ageing = s.DSCP, s.Ageing
}

// Poll implements cnpgen.Switch. It answers during the call.
func (d *data) Poll(port uint32) error {
	b, err := d.in.ReadRegister(ids.RegisterQueueBytesName, int(port*ids.QueuesPerPort)+int(d.queue[port]))
	if err != nil {
		return err
	}
	d.polled(d.now, d.now, port, units.Bytes(bytestring.Low64(b)))
	return nil
}

// Counters implements cnpgen.Switch.
func (d *data) Counters(dst []cnpgen.Counters) ([]cnpgen.Counters, error) {
	for _, r := range d.flows {
		of := flowtable.FamilyOf(r.FlowKey)
		all, err := d.in.EntryCounter(of.FlowName, r.all)
		congested, err2 := d.in.EntryCounter(of.CongestedName, r.congested)
		// A client may have deleted an entry.
		dst = append(dst, cnpgen.Counters{Flow: r.Flow, Bytes: all.Bytes, Congested: congested.Packets, Partial: err != nil || err2 != nil})
	}
	return dst, nil
}

// CNP implements cnpgen.Switch. It injects a packet-out; the pipeline routes it and queues it by
// its class.
func (d *data) CNP(f cnpgen.Flow, qp uint32) error {
	d.frame = append(d.frame[:0], 0, ids.HighestQueue<<4|ids.PacketOutPipeline)
	d.frame = d.cnp.Append(d.frame, f.FlowKey, qp)
	d.host.Inject(d.frame, d.now)
	return nil
}

// control calls use with the entities of d's pipeline. It returns false if that pipeline no longer
// runs; the next Sweep then stops this loop. The error is cnpgen.ErrBusy if a client is writing.
func (d *data) control(use func(*entity.State)) (running bool, err error) {
	if !d.host.TryControl(func(st *entity.State, in *engine.Instance) {
		if running = in == d.in; running {
			use(st)
		}
	}) {
		err = cnpgen.ErrBusy
	}
	return running, err
}

func unless(code codes.Code, err error) error {
	if status.Code(err) == code {
		return nil
	}
	return err
}

// Write implements cnpgen.Switch.
func (d *data) Write(add, remove []cnpgen.Flow) (refused []cnpgen.Flow, err error) {
	var errs error
	running, err := d.control(func(st *entity.State) {
		for _, f := range remove {
			errs = errors.Join(errs, d.remove(st, f))
		}
		for _, f := range add {
			if err := d.add(st, f); err != nil {
				errs = errors.Join(errs, err)
				refused = append(refused, f)
			}
		}
	})
	if err == nil && !running {
		refused = add
	}
	return refused, errors.Join(err, errs)
}

// QueuePairs implements cnpgen.QueuePairTable. The agent has emptied the table before, so it contains
// no other entries.
func (d *data) QueuePairs(dst []cnpgen.QueuePair) ([]cnpgen.QueuePair, error) {
	return slices.AppendSeq(dst, maps.Keys(d.pairs)), nil
}

// WriteQueuePairs implements cnpgen.QueuePairTable.
func (d *data) WriteQueuePairs(add, remove []cnpgen.QueuePair) error {
	var errs error
	_, err := d.control(func(st *entity.State) {
		for _, q := range remove {
			delete(d.pairs, q)
			errs = errors.Join(errs, unless(codes.NotFound, st.Apply(p4rtmsg.Delete(flowtable.QueuePairEntry(q, d.ageing)))))
		}
		for _, q := range add {
			e := flowtable.QueuePairEntry(q, d.ageing)
			if err := unless(codes.AlreadyExists, st.Apply(p4rtmsg.Insert(e))); err != nil {
				errs = errors.Join(errs, fmt.Errorf("learning %v: %w", q, err))
				continue
			}
			if h, ok := st.Handle(e); ok {
				d.pairs[q] = h
			}
		}
	})
	return errors.Join(err, errs)
}

func (d *data) add(st *entity.State, f cnpgen.Flow) error {
	var handles [2]engine.Handle
	for i, e := range flowtable.FlowEntries(f, d.ageing) {
		if err := unless(codes.AlreadyExists, st.Apply(p4rtmsg.Insert(e))); err != nil {
			return fmt.Errorf("learning %v: %w", f, errors.Join(err, d.drop(st, f)))
		}
		h, ok := st.Handle(e)
		if !ok {
			return fmt.Errorf("learning %v: the entry is not there", f)
		}
		handles[i] = h
	}
	d.at[f] = len(d.flows)
	d.flows = append(d.flows, row{f, handles[0], handles[1]})
	return nil
}

func (d *data) remove(st *entity.State, f cnpgen.Flow) error {
	if i, known := d.at[f]; known {
		last := len(d.flows) - 1
		d.flows[i] = d.flows[last]
		d.at[d.flows[i].Flow] = i
		d.flows = d.flows[:last]
		delete(d.at, f)
	}
	return d.drop(st, f)
}

// drop deletes those of a flow's entries that exist.
func (d *data) drop(st *entity.State, f cnpgen.Flow) error {
	var errs error
	for _, e := range flowtable.FlowEntries(f, d.ageing) {
		errs = errors.Join(errs, unless(codes.NotFound, st.Apply(p4rtmsg.Delete(e))))
	}
	return errs
}

func (d *data) clear() error {
	all := make([]cnpgen.Flow, len(d.flows))
	for i, r := range d.flows {
		all[i] = r.Flow
	}
	if _, err := d.Write(nil, all); err != nil {
		return err
	}
	return d.WriteQueuePairs(nil, slices.Collect(maps.Keys(d.pairs)))
}

// idleFlows returns the flows that no packet has hit for the ageing time.
func (d *data) idleFlows(now units.Time) []cnpgen.Flow {
	var list []cnpgen.Flow
	for _, of := range flowtable.Families() {
		if gone := d.expired(of.FlowName, now); len(gone) > 0 {
			for _, r := range d.flows {
				if flowtable.FamilyOf(r.FlowKey) == of && gone[r.all] {
					list = append(list, r.Flow)
				}
			}
		}
	}
	return list
}

// idleQueuePairs returns the queue pairs that no acknowledgement has named for the ageing time.
func (d *data) idleQueuePairs(now units.Time) []cnpgen.QueuePair {
	var list []cnpgen.QueuePair
	for _, of := range flowtable.Families() {
		if gone := d.expired(of.QueuePairName, now); len(gone) > 0 {
			for q, h := range d.pairs {
				if flowtable.FamilyOf(q.FlowKey) == of && gone[h] {
					list = append(list, q)
				}
			}
		}
	}
	return list
}

// expired returns the entries of a table that no packet has hit for their ageing time.
func (d *data) expired(table string, now units.Time) map[engine.Handle]bool {
	gone := map[engine.Handle]bool{}
	for _, h := range d.in.Expired(table, now) {
		gone[h] = true
	}
	return gone
}
