package entity

import (
	"math"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
)

type arrays = *schema.Index[*schema.Array]

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
			return err
		}
	}
	return nil
}

// writeCells calls set for the cells that an update selects. It first calls prepare, which validates
// the update's value.
func writeCells(x arrays, op p4v1.Update_Type, id uint32, index *p4v1.Index, prepare func(*schema.Array) (set func(i int) error, err error)) error {
	if err := onlyModify(op, x.Kind+" entry"); err != nil {
		return err
	}
	a, err := x.Find(id)
	if err != nil {
		return err
	}
	set, err := prepare(a)
	if err != nil {
		return err
	}
	return eachCell(x.Kind, a, index, set)
}

func readCells(x arrays, id uint32, index *p4v1.Index, emit func(Found), get func(a *schema.Array, i *p4v1.Index) (message any, err error)) error {
	if id == 0 && index != nil {
		return invalid("index is set with %s_id 0, which reads all %ss", x.Kind, x.Kind)
	}
	list, err := x.Select(id)
	for _, a := range list {
		err := eachCell(x.Kind, a, index, func(i int) error {
			m, err := get(a, &p4v1.Index{Index: int64(i)})
			if err == nil {
				emit(found(m))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return err
}

func (s *State) writeCounter(op p4v1.Update_Type, in *p4v1.CounterEntry) error {
	return writeCells(&s.schema.Counters, op, in.GetCounterId(), in.GetIndex(), func(a *schema.Array) (func(int) error, error) {
		c, err := counterOf(in.Data)
		return func(i int) error {
			if in.Data == nil {
				return nil
			}
			return s.inst.WriteCounter(a.Name, i, c)
		}, err
	})
}

func (s *State) readCounters(req *p4v1.CounterEntry, emit func(Found)) error {
	return readCells(&s.schema.Counters, req.GetCounterId(), req.GetIndex(), emit, func(a *schema.Array, i *p4v1.Index) (any, error) {
		c, err := s.inst.ReadCounter(a.Name, int(i.Index))
		return &p4v1.CounterEntry{CounterId: a.ID, Index: i, Data: counterData(c)}, err
	})
}

func (s *State) writeMeter(op p4v1.Update_Type, in *p4v1.MeterEntry) error {
	return writeCells(&s.schema.Meters, op, in.GetMeterId(), in.GetIndex(), func(a *schema.Array) (func(int) error, error) {
		if in.CounterData != nil {
			return nil, errMeterCounters
		}
		r, err := rateOf(in.Config)
		return func(i int) error { return s.inst.WriteMeter(a.Name, i, r) }, err
	})
}

func (s *State) readMeters(req *p4v1.MeterEntry, emit func(Found)) error {
	if req.GetCounterData() != nil {
		return errMeterCounters
	}
	return readCells(&s.schema.Meters, req.GetMeterId(), req.GetIndex(), emit, func(a *schema.Array, i *p4v1.Index) (any, error) {
		r, err := s.inst.ReadMeter(a.Name, int(i.Index))
		return &p4v1.MeterEntry{MeterId: a.ID, Index: i, Config: meterConfig(r)}, err
	})
}

func (s *State) writeRegister(op p4v1.Update_Type, in *p4v1.RegisterEntry) error {
	return writeCells(&s.schema.Registers, op, in.GetRegisterId(), in.GetIndex(), func(a *schema.Array) (func(int) error, error) {
		if in.Data == nil {
			return nil, invalid("register %q: data is unset", a.Name)
		}
		v, err := a.Type.Decode(in.Data)
		return func(i int) error { return s.inst.WriteRegister(a.Name, i, v) }, err
	})
}

func (s *State) readRegisters(req *p4v1.RegisterEntry, emit func(Found)) error {
	return readCells(&s.schema.Registers, req.GetRegisterId(), req.GetIndex(), emit, func(a *schema.Array, i *p4v1.Index) (any, error) {
		v, err := s.inst.ReadRegister(a.Name, int(i.Index))
		return &p4v1.RegisterEntry{RegisterId: a.ID, Index: i, Data: a.Type.Encode([][]byte{v})}, err
	})
}

type directKind struct {
	name string
	of   func(*schema.Table) uint32 // returns the id of the table's resource, 0 if the table has none
}

var (
	directCounter = directKind{"direct counter", func(t *schema.Table) uint32 { return t.CounterID }}
	directMeter   = directKind{"direct meter", func(t *schema.Table) uint32 { return t.MeterID }}
)

func (k directKind) check(t *table) error {
	if k.of(t.spec) == 0 {
		return invalid("table %q: it has no %s in the program", t.spec.Name, k.name)
	}
	return nil
}

// directEntry finds the entry whose direct resource an update writes. The handle is
// engine.DefaultEntry for the default entry.
func (s *State) directEntry(op p4v1.Update_Type, k directKind, in *p4v1.TableEntry) (*table, engine.Handle, error) {
	if err := onlyModify(op, k.name); err != nil {
		return nil, 0, err
	}
	if in == nil {
		return nil, 0, invalid("table_entry is unset")
	}
	t, err := s.tableByID(in.TableId)
	if err != nil {
		return nil, 0, err
	}
	h := engine.DefaultEntry
	if in.IsDefaultAction {
		err = t.checkDefaultKey(in)
	} else if e, lost := s.mustLocate(t, &s.key, in); lost != nil {
		err = lost
	} else {
		h = e.handle
	}
	if err == nil {
		err = k.check(t)
	}
	return t, h, err
}

func (s *State) writeDirectCounter(op p4v1.Update_Type, in *p4v1.DirectCounterEntry) error {
	t, h, err := s.directEntry(op, directCounter, in.GetTableEntry())
	if err != nil || in.Data == nil {
		return err
	}
	return s.setCounter(t, h, in.Data)
}

func (s *State) writeDirectMeter(op p4v1.Update_Type, in *p4v1.DirectMeterEntry) error {
	if in.GetCounterData() != nil {
		return errMeterCounters
	}
	t, h, err := s.directEntry(op, directMeter, in.GetTableEntry())
	if err != nil {
		return err
	}
	return s.setMeter(t, h, in.Config)
}

func (s *State) setCounter(t *table, h engine.Handle, d *p4v1.CounterData) error {
	c, err := counterOf(d)
	if err != nil {
		return err
	}
	return s.inst.SetEntryCounter(t.spec.Name, h, c)
}

func (s *State) setMeter(t *table, h engine.Handle, c *p4v1.MeterConfig) error {
	r, err := rateOf(c)
	if err != nil {
		return err
	}
	return s.inst.SetEntryMeter(t.spec.Name, h, r)
}

// readDirect calls get for each entry that a read of direct resources selects, and emits the result. table_id 0 selects
// all tables with such a resource. The key that get receives identifies the entry. A read of a single entry that does
// not exist is NOT_FOUND.
func (s *State) readDirect(k directKind, in *p4v1.TableEntry, emit func(Found), get func(t *table, key *p4v1.TableEntry, h engine.Handle) (message any, err error)) error {
	var list []*table
	if in.GetTableId() == 0 {
		if len(in.GetMatch()) > 0 || in.GetPriority() != 0 {
			return invalid("table_entry.table_id is 0, which reads all tables: match and priority must be unset")
		}
		for _, spec := range s.schema.Tables.List {
			if k.of(spec) != 0 {
				list = append(list, s.tables[spec.ID])
			}
		}
	} else {
		t, err := s.tableByID(in.TableId)
		if err == nil {
			err = k.check(t)
		}
		if err != nil {
			return err
		}
		list = append(list, t)
	}
	key := &p4v1.TableEntry{TableId: in.GetTableId(), Match: in.GetMatch(), Priority: in.GetPriority()}
	for _, t := range list {
		n := 0
		one := func(e *entry) error {
			n++
			key, h := t.identify(e)
			m, err := get(t, key, h)
			if err == nil {
				emit(found(m))
			}
			return err
		}
		if in.GetIsDefaultAction() {
			if err := one(nil); err != nil {
				return err
			}
			continue
		}
		if err := s.selected(t, key, one); err != nil {
			return err
		}
		if n == 0 && len(in.GetMatch()) > 0 && (!t.spec.NeedsPriority || in.Priority != 0) {
			return t.noEntry(in)
		}
	}
	return nil
}

func (s *State) readDirectCounters(req *p4v1.DirectCounterEntry, emit func(Found)) error {
	return s.readDirect(directCounter, req.GetTableEntry(), emit, func(t *table, key *p4v1.TableEntry, h engine.Handle) (any, error) {
		c, err := s.inst.EntryCounter(t.spec.Name, h)
		return &p4v1.DirectCounterEntry{TableEntry: key, Data: counterData(c)}, err
	})
}

func (s *State) readDirectMeters(req *p4v1.DirectMeterEntry, emit func(Found)) error {
	if req.GetCounterData() != nil {
		return errMeterCounters
	}
	return s.readDirect(directMeter, req.GetTableEntry(), emit, func(t *table, key *p4v1.TableEntry, h engine.Handle) (any, error) {
		r, err := s.inst.EntryMeter(t.spec.Name, h)
		return &p4v1.DirectMeterEntry{TableEntry: key, Config: meterConfig(r)}, err
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
	switch {
	case c == nil:
		return engine.MeterRate{}, nil
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
