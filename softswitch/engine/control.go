package engine

import (
	"fmt"

	"github.com/headgate/headgate/softswitch/engine/phv"
	"github.com/headgate/headgate/units"
)

// errorf returns an error that wraps kind, for errors.Is.
func errorf(kind error, format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), kind)
}

// onUsage runs f on the direct counter and meter of an entry, or of DefaultEntry, while its table
// does not change. has reports whether the table has the resource that f uses.
func (in *Instance) onUsage(name string, h Handle, what string, has func(*tableSpec) bool, f func(u *usage)) error {
	in.locks[0].RLock()
	defer in.locks[0].RUnlock()
	t, err := in.table(name)
	if err != nil {
		return err
	}
	u := &t.missUse
	if h != DefaultEntry {
		e, err := t.entry(h)
		if err != nil {
			return err
		}
		u = e.usage
	}
	if !has(t.spec) {
		return errorf(ErrInvalid, "table %q has no %s", name, what)
	}
	f(u)
	return nil
}

func hasCounter(t *tableSpec) bool { return t.counters }
func hasMeter(t *tableSpec) bool   { return t.meter != nil }

// EntryCounter reads the direct counter of an entry. The counter of DefaultEntry counts the
// packets that miss the table; BMv2 does not count them.
func (in *Instance) EntryCounter(name string, h Handle) (v Counter, err error) {
	err = in.onUsage(name, h, "direct counter", hasCounter, func(u *usage) { v = u.count.read() })
	return v, err
}

// SetEntryCounter writes the direct counter of an entry.
func (in *Instance) SetEntryCounter(name string, h Handle, v Counter) error {
	return in.onUsage(name, h, "direct counter", hasCounter, func(u *usage) { u.count.write(v) })
}

// EntryMeter reads the direct meter of an entry.
func (in *Instance) EntryMeter(name string, h Handle) (v MeterRate, err error) {
	err = in.onUsage(name, h, "direct meter", hasMeter, func(u *usage) { v = u.meter.get() })
	return v, err
}

// SetEntryMeter configures the direct meter of an entry.
func (in *Instance) SetEntryMeter(name string, h Handle, m MeterRate) error {
	if err := checkRate(m); err != nil {
		return fmt.Errorf("table %q: %w", name, err)
	}
	return in.onUsage(name, h, "direct meter", hasMeter, func(u *usage) { u.meter.set(m) })
}

func checkRate(m MeterRate) error {
	if m.CIR < 0 || m.PIR < 0 || m.CBurst < 0 || m.PBurst < 0 {
		return errorf(ErrInvalid, "meter rates and bursts %+v must not be negative", m)
	}
	if m.CIR > m.PIR {
		return errorf(ErrInvalid, "meter has CIR %d above PIR %d", m.CIR, m.PIR)
	}
	return nil
}

// Expired lists the entries of a table that no packet has hit for their time to live.
func (in *Instance) Expired(name string, now units.Time) []Handle {
	in.advanceClock(now)
	in.locks[0].RLock()
	defer in.locks[0].RUnlock()
	t, err := in.table(name)
	if err != nil || !t.spec.timeout {
		return nil
	}
	var list []Handle
	for e := range t.entries.All {
		if e.usage != nil && e.ttl > 0 && now-units.Time(e.lastHit.Load()) >= e.ttl {
			list = append(list, e.handle())
		}
	}
	return list
}

// SinceHit returns the time since a packet last hit the entry, or since the entry was added. The
// table must have idle timeouts.
func (in *Instance) SinceHit(name string, h Handle, now units.Time) (d units.Time, err error) {
	has := func(t *tableSpec) bool { return t.timeout }
	err = in.onUsage(name, h, "idle timeouts", has, func(u *usage) { d = max(0, now-units.Time(u.lastHit.Load())) })
	return d, err
}

// cellOf finds the array that a control method names, and checks the index of a cell.
func cellOf[S interface{ array() *arraySpec }](k *catalogue[S], name string, i int) (S, error) {
	s, err := k.find(name)
	if err == nil && (i < 0 || i >= s.array().size) {
		err = errorf(ErrInvalid, "%s %q: index %d, allowed are 0 to %d", k.kind, name, i, s.array().size-1)
	}
	return s, err
}

// ReadCounter reads cell i of an indirect counter.
func (in *Instance) ReadCounter(name string, i int) (Counter, error) {
	s, err := cellOf(&in.prog.counters, name, i)
	if err != nil {
		return Counter{}, err
	}
	return in.counters[s.index][i].read(), nil
}

// WriteCounter writes cell i of an indirect counter.
func (in *Instance) WriteCounter(name string, i int, v Counter) error {
	s, err := cellOf(&in.prog.counters, name, i)
	if err == nil {
		in.counters[s.index][i].write(v)
	}
	return err
}

// ReadMeter reads the configuration of cell i of an indirect meter.
func (in *Instance) ReadMeter(name string, i int) (MeterRate, error) {
	s, err := cellOf(&in.prog.meters, name, i)
	if err != nil {
		return MeterRate{}, err
	}
	return in.meters[s.index][i].get(), nil
}

// WriteMeter configures cell i of an indirect meter.
func (in *Instance) WriteMeter(name string, i int, r MeterRate) error {
	s, err := cellOf(&in.prog.meters, name, i)
	if err != nil {
		return err
	}
	if err := checkRate(r); err != nil {
		return fmt.Errorf("meter %q: %w", name, err)
	}
	in.meters[s.index][i].set(r)
	return nil
}

// ReadRegister reads cell i, padded to whole bytes, big-endian.
func (in *Instance) ReadRegister(name string, i int) ([]byte, error) {
	s, err := cellOf(&in.prog.registers, name, i)
	if err != nil {
		return nil, err
	}
	r := &in.registers[s.index]
	r.mu.Lock()
	defer r.mu.Unlock()
	return fieldBytes(r.at(uint64(i)), s.bits), nil
}

// WriteRegister writes cell i.
func (in *Instance) WriteRegister(name string, i int, v []byte) error {
	s, err := cellOf(&in.prog.registers, name, i)
	if err != nil {
		return err
	}
	cell := make([]uint64, s.words)
	if !phv.PutBytes(cell, v, s.bits) {
		return errorf(ErrInvalid, "register %q: value 0x%x has more than %d bits", name, v, s.bits)
	}
	r := &in.registers[s.index]
	r.mu.Lock()
	defer r.mu.Unlock()
	copy(r.at(uint64(i)), cell)
	return nil
}
