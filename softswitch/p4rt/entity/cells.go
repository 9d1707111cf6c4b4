package entity

import (
	"math"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/internal/p4msg"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
)

// byID finds the object with the id that an entity names.
func byID[T any](kind string, find func(uint32) (T, bool), id uint32) (T, error) {
	v, ok := find(id)
	if !ok {
		return v, invalid("%s_id is %#x, which is no %s of the P4Info", strings.ReplaceAll(kind, " ", "_"), id, kind)
	}
	return v, nil
}

// selected returns the objects that a read selects. id 0 selects all of list.
func selected[T any](kind string, list []T, find func(uint32) (T, bool), id uint32) ([]T, error) {
	if id == 0 {
		return list, nil
	}
	v, err := byID(kind, find, id)
	return []T{v}, err
}

// onlyModify refuses INSERT and DELETE of entities that always exist.
func onlyModify(op p4v1.Update_Type, kind string) error {
	if op != p4v1.Update_MODIFY {
		return invalid("update type is %v, a %s allows MODIFY", op, kind)
	}
	return nil
}

// eachCell calls f for the cells of an array that an index selects. An unset index selects all.
func eachCell(kind string, a *schema.Array, index *p4v1.Index, f func(i int) error) error {
	from, to := int64(0), a.Size
	if index != nil {
		from, to = index.Index, index.Index+1
	}
	switch {
	case from < 0:
		return invalid("%s %q: index is %d, allowed are 0 to %d", kind, a.Name, from, a.Size-1)
	case to > a.Size:
		return status.Errorf(codes.OutOfRange, "%s %q: index is %d, allowed are 0 to %d", kind, a.Name, from, a.Size-1)
	}
	for i := from; i < to; i++ {
		if err := f(int(i)); err != nil {
			return fromEngine(err)
		}
	}
	return nil
}

// cells reads and writes the arrays of one kind: counters, meters or registers.
type cells struct {
	kind   string
	arrays *schema.Index[*schema.Array]
}

// write calls set for the cells that an update selects. It first calls prepare, which validates
// the update's value and returns nil if there is nothing to write.
func (c cells) write(op p4v1.Update_Type, id uint32, index *p4v1.Index, prepare func(*schema.Array) (set func(i int) error, err error)) error {
	if err := onlyModify(op, c.kind+" entry"); err != nil {
		return err
	}
	a, err := byID(c.kind, c.arrays.ID, id)
	if err != nil {
		return err
	}
	set, err := prepare(a)
	if err != nil {
		return err
	}
	return eachCell(c.kind, a, index, set)
}

// read calls get for the cells that a read selects.
func (c cells) read(id uint32, index *p4v1.Index, get func(a *schema.Array, i *p4v1.Index) error) error {
	if id == 0 && index != nil {
		return invalid("index is set with %s_id 0, which reads all %ss", c.kind, c.kind)
	}
	list, err := selected(c.kind, c.arrays.List, c.arrays.ID, id)
	if err != nil {
		return err
	}
	for _, a := range list {
		err := eachCell(c.kind, a, index, func(i int) error { return get(a, &p4v1.Index{Index: int64(i)}) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *State) counters() cells  { return cells{"counter", &s.schema.Counters} }
func (s *State) meters() cells    { return cells{"meter", &s.schema.Meters} }
func (s *State) registers() cells { return cells{"register", &s.schema.Registers} }

func (s *State) writeCounter(op p4v1.Update_Type, in *p4v1.CounterEntry) error {
	return s.counters().write(op, in.GetCounterId(), in.GetIndex(), func(a *schema.Array) (func(int) error, error) {
		c, err := counterOf(in.Data)
		return func(i int) error {
			if in.Data == nil {
				return nil
			}
			return s.inst.WriteCounter(a.Name, i, c)
		}, err
	})
}

func (s *State) readCounters(req *p4v1.CounterEntry, emit func(*p4v1.Entity)) error {
	return s.counters().read(req.GetCounterId(), req.GetIndex(), func(a *schema.Array, i *p4v1.Index) error {
		c, err := s.inst.ReadCounter(a.Name, int(i.Index))
		if err == nil {
			emit(p4msg.Of(&p4v1.CounterEntry{CounterId: a.ID, Index: i, Data: counterData(c)}))
		}
		return err
	})
}

func (s *State) writeMeter(op p4v1.Update_Type, in *p4v1.MeterEntry) error {
	return s.meters().write(op, in.GetMeterId(), in.GetIndex(), func(a *schema.Array) (func(int) error, error) {
		if in.CounterData != nil {
			return nil, errMeterCounters
		}
		r, err := rateOf(in.Config)
		return func(i int) error { return s.inst.WriteMeter(a.Name, i, r) }, err
	})
}

func (s *State) readMeters(req *p4v1.MeterEntry, emit func(*p4v1.Entity)) error {
	if req.GetCounterData() != nil {
		return errMeterCounters
	}
	return s.meters().read(req.GetMeterId(), req.GetIndex(), func(a *schema.Array, i *p4v1.Index) error {
		r, err := s.inst.ReadMeter(a.Name, int(i.Index))
		if err == nil {
			emit(p4msg.Of(&p4v1.MeterEntry{MeterId: a.ID, Index: i, Config: meterConfig(r)}))
		}
		return err
	})
}

func (s *State) writeRegister(op p4v1.Update_Type, in *p4v1.RegisterEntry) error {
	return s.registers().write(op, in.GetRegisterId(), in.GetIndex(), func(a *schema.Array) (func(int) error, error) {
		if in.Data == nil {
			return nil, invalid("register %q: data is unset", a.Name)
		}
		v, err := a.Type.Decode(in.Data)
		return func(i int) error { return s.inst.WriteRegister(a.Name, i, v) }, err
	})
}

func (s *State) readRegisters(req *p4v1.RegisterEntry, emit func(*p4v1.Entity)) error {
	return s.registers().read(req.GetRegisterId(), req.GetIndex(), func(a *schema.Array, i *p4v1.Index) error {
		v, err := s.inst.ReadRegister(a.Name, int(i.Index))
		if err == nil {
			emit(p4msg.Of(&p4v1.RegisterEntry{RegisterId: a.ID, Index: i, Data: a.Type.Encode([][]byte{v})}))
		}
		return err
	})
}

func counterOf(d *p4v1.CounterData) (engine.Counter, error) {
	if d.GetPacketCount() < 0 || d.GetByteCount() < 0 {
		return engine.Counter{}, invalid("counter data is %d packets and %d bytes, neither may be negative", d.GetPacketCount(), d.GetByteCount())
	}
	return engine.Counter{Packets: uint64(d.GetPacketCount()), Bytes: uint64(d.GetByteCount())}, nil
}

func counterData(c engine.Counter) *p4v1.CounterData {
	return &p4v1.CounterData{
		PacketCount: int64(min(c.Packets, math.MaxInt64)),
		ByteCount:   int64(min(c.Bytes, math.MaxInt64)),
	}
}

var errMeterCounters = status.Error(codes.Unimplemented, "per-colour meter counters are not supported: MeterCounterData must be unset")

// rateOf validates a meter's configuration (RFC 2698: the peak rate is at least the committed
// one). nil is the default, which marks everything green.
func rateOf(c *p4v1.MeterConfig) (engine.MeterRate, error) {
	if c == nil {
		return engine.MeterRate{}, nil
	}
	switch {
	case c.Cir < 0 || c.Pir < 0 || c.Cburst < 0 || c.Pburst < 0:
		return engine.MeterRate{}, invalid("meter configuration is cir %d, cburst %d, pir %d, pburst %d; none may be negative", c.Cir, c.Cburst, c.Pir, c.Pburst)
	case c.Cir > c.Pir:
		return engine.MeterRate{}, invalid("meter configuration has cir %d above pir %d", c.Cir, c.Pir)
	}
	return engine.MeterRate{CIR: c.Cir, CBurst: c.Cburst, PIR: c.Pir, PBurst: c.Pburst, Configured: true}, nil
}

// meterConfig returns a meter's configuration, or nil for the default.
func meterConfig(r engine.MeterRate) *p4v1.MeterConfig {
	if !r.Configured {
		return nil
	}
	return &p4v1.MeterConfig{Cir: r.CIR, Cburst: r.CBurst, Pir: r.PIR, Pburst: r.PBurst}
}
