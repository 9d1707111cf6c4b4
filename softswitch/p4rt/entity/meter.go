package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/softswitch/engine"
)

var errMeterCounters = status.Error(codes.Unimplemented, "per-colour meter counters are not supported: MeterCounterData must be unset")

// rateOf validates a meter's configuration (RFC 2698: the peak rate is at least the
// committed one); nil is the default, everything green.
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

// meterConfig is nil for the default configuration.
func meterConfig(r engine.MeterRate) *p4v1.MeterConfig {
	if !r.Configured {
		return nil
	}
	return &p4v1.MeterConfig{Cir: r.CIR, Cburst: r.CBurst, Pir: r.PIR, Pburst: r.PBurst}
}

func (s *State) writeMeter(op p4v1.Update_Type, in *p4v1.MeterEntry) error {
	if err := onlyModify(op, "meter entry"); err != nil {
		return err
	}
	a, ok := s.schema.Meters.ID(in.GetMeterId())
	if !ok {
		return invalid("meter_id is %#x, which is no meter of the P4Info", in.GetMeterId())
	}
	if in.CounterData != nil {
		return errMeterCounters
	}
	from, to, err := cells("meter", a.Name, a.Size, in.Index)
	if err != nil {
		return err
	}
	r, err := rateOf(in.Config)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if err := s.inst.WriteMeter(a.Name, i, r); err != nil {
			return fromEngine(err)
		}
	}
	return nil
}

func (s *State) readMeters(req *p4v1.MeterEntry, emit func(*p4v1.Entity)) error {
	if req.GetCounterData() != nil {
		return errMeterCounters
	}
	list := s.schema.Meters.List
	if id := req.GetMeterId(); id != 0 {
		a, ok := s.schema.Meters.ID(id)
		if !ok {
			return invalid("meter_id is %#x, which is no meter of the P4Info", id)
		}
		list = append(list[:0:0], a)
	} else if req.GetIndex() != nil {
		return invalid("index is set with meter_id 0, which reads all meters")
	}
	for _, a := range list {
		from, to, err := cells("meter", a.Name, a.Size, req.GetIndex())
		if err != nil {
			return err
		}
		for i := from; i < to; i++ {
			r, err := s.inst.ReadMeter(a.Name, i)
			if err != nil {
				return fromEngine(err)
			}
			emit(&p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{MeterEntry: &p4v1.MeterEntry{
				MeterId: a.ID, Index: &p4v1.Index{Index: int64(i)}, Config: meterConfig(r),
			}}})
		}
	}
	return nil
}

func (s *State) writeDirectMeter(op p4v1.Update_Type, in *p4v1.DirectMeterEntry) error {
	if err := onlyModify(op, "direct meter"); err != nil {
		return err
	}
	if in.GetCounterData() != nil {
		return errMeterCounters
	}
	if in.GetTableEntry().GetIsDefaultAction() {
		return errDefaultResources
	}
	t, e, err := s.directEntry(in.GetTableEntry())
	if err != nil {
		return err
	}
	if t.spec.MeterID == 0 {
		return invalid("table %q: it has no direct meter", t.spec.Name)
	}
	r, err := rateOf(in.Config)
	if err != nil {
		return err
	}
	return fromEngine(s.inst.SetEntryMeter(t.spec.Name, e.handle, r))
}

func (s *State) readDirectMeters(req *p4v1.DirectMeterEntry, emit func(*p4v1.Entity)) error {
	if req.GetCounterData() != nil {
		return errMeterCounters
	}
	in := req.GetTableEntry()
	if in.GetIsDefaultAction() {
		return errDefaultResources
	}
	list, err := s.directTables(in, func(t *table) bool { return t.spec.MeterID != 0 }, "direct meter")
	if err != nil {
		return err
	}
	for _, t := range list {
		err := s.readDirect(t, in, func(e *entry) error {
			r, err := s.inst.EntryMeter(t.spec.Name, e.handle)
			if err != nil {
				return fromEngine(err)
			}
			emit(&p4v1.Entity{Entity: &p4v1.Entity_DirectMeterEntry{DirectMeterEntry: &p4v1.DirectMeterEntry{
				TableEntry: e.keyOnly(), Config: meterConfig(r),
			}}})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
