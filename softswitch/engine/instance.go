package engine

import (
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/units"
)

// lockShards is the number of reader locks; see Instance.
const lockShards = 16

// Instance is one running switch. Control methods may be called from any goroutine at any
// time, also while packets are processed, and packets may be processed by several
// goroutines at a time.
//
// Who locks what: a packet holds one of the reader locks, chosen by its ingress port, for
// its way through Ingress or Egress, which use different ones, but not while an Out is
// called; a Turn holds one for all of its packets. A control method that
// changes tables, profiles, value sets, groups or sessions takes all of them, so a packet
// sees a change wholly or not at all. Counters are atomic. Meters and registers have locks
// of their own; an action holds those of all registers it uses, as in BMv2.
type Instance struct {
	prog  *Program
	opts  Options
	pool  sync.Pool
	locks [lockShards]struct {
		sync.RWMutex
		_ [40]byte // one cache line each
	}
	latest  atomic.Int64 // latest time seen, units.Time
	seed    atomic.Uint64
	asserts atomic.Uint64

	tables    []*table
	profiles  []*profile
	vsets     [][]vsetMember
	counters  [][]counterCell
	meters    [][]meterCell
	registers []registerArray
	calcs     []robin
	groups    map[uint16][]Replica
	sessions  map[uint16]*CloneSession
}

// New starts an instance of a program with empty tables, but for the program's entries.
func New(prog *Program, o Options) *Instance {
	if o.DropPort == 0 {
		o.DropPort = 511
	}
	if o.Queues == 0 {
		o.Queues = 1
	}
	in := &Instance{prog: prog, opts: o, groups: map[uint16][]Replica{}, sessions: map[uint16]*CloneSession{}}
	in.seed.Store(o.Seed)
	in.pool.New = func() any {
		return &Packet{in: in, w: make([]uint64, prog.layout.words+prog.code.temps), vl: make([]byte, prog.layout.vlBytes)}
	}
	for _, t := range prog.tables {
		in.tables = append(in.tables, newTable(t))
		for i := range t.entries {
			// The loader has added the same entries to the same kind of table.
			if _, err := in.tables[t.index].insertConst(&t.entries[i]); err != nil {
				panic(err)
			}
		}
	}
	for _, s := range prog.profiles {
		in.profiles = append(in.profiles, &profile{s, map[MemberID]*member{}, map[GroupID]*group{}})
	}
	in.vsets = make([][]vsetMember, len(prog.vsets))
	for _, s := range prog.counters {
		in.counters = append(in.counters, make([]counterCell, s.size))
	}
	for _, s := range prog.meters {
		in.meters = append(in.meters, make([]meterCell, s.size))
	}
	in.registers = make([]registerArray, len(prog.registers))
	for i, s := range prog.registers {
		in.registers[i].spec = s
		in.registers[i].mu = &in.registers[s.lock].own
		in.registers[i].cells = make([]uint64, s.size*s.words)
	}
	in.calcs = make([]robin, prog.nCalcs)
	return in
}

// Program returns the program that the instance runs.
func (in *Instance) Program() *Program { return in.prog }

// Asserts returns how many assertions of the program failed; each dropped its packet.
func (in *Instance) Asserts() uint64 { return in.asserts.Load() }

func (in *Instance) lock() {
	for i := range in.locks {
		in.locks[i].Lock()
	}
}

func (in *Instance) unlock() {
	for i := range in.locks {
		in.locks[i].Unlock()
	}
}

// reader is the lock of packets that came in on a port. half is 0 in ingress and 1 in
// egress, which may be on different cores.
func (in *Instance) reader(half, port uint32) *sync.RWMutex {
	return &in.locks[half+2*port%lockShards].RWMutex
}

// clock is the latest time that packets brought.
func (in *Instance) clock() units.Time { return units.Time(in.latest.Load()) }

// sawTime keeps the latest time; entries that are added age from there.
func (in *Instance) sawTime(now units.Time) {
	if old := in.latest.Load(); int64(now) > old {
		in.latest.CompareAndSwap(old, int64(now))
	}
}

func (in *Instance) log(msg string) {
	if in.opts.Log != nil {
		in.opts.Log.Info(msg)
	}
}

func (in *Instance) entryOf(name string, h Handle) (*table, *entry, error) {
	t, err := in.table(name)
	if err != nil {
		return nil, nil, err
	}
	e, err := t.entry(h)
	return t, e, err
}

// EntryCounter reads the direct counter of an entry.
func (in *Instance) EntryCounter(name string, h Handle) (Counter, error) {
	in.locks[0].RLock()
	defer in.locks[0].RUnlock()
	t, e, err := in.entryOf(name, h)
	if err != nil {
		return Counter{}, err
	}
	if !t.spec.counters {
		return Counter{}, fmt.Errorf("table %q has no direct counter: %w", name, ErrInvalid)
	}
	return e.count.read(), nil
}

// SetEntryCounter writes the direct counter of an entry.
func (in *Instance) SetEntryCounter(name string, h Handle, v Counter) error {
	in.locks[0].RLock()
	defer in.locks[0].RUnlock()
	t, e, err := in.entryOf(name, h)
	if err != nil {
		return err
	}
	if !t.spec.counters {
		return fmt.Errorf("table %q has no direct counter: %w", name, ErrInvalid)
	}
	e.count.write(v)
	return nil
}

// DefaultCounter reads how many packets missed a table with a direct counter. BMv2 does
// not count them.
func (in *Instance) DefaultCounter(name string) (Counter, error) {
	t, err := in.table(name)
	if err != nil {
		return Counter{}, err
	}
	if !t.spec.counters {
		return Counter{}, fmt.Errorf("table %q has no direct counter: %w", name, ErrInvalid)
	}
	return t.missed.read(), nil
}

// EntryMeter reads the direct meter of an entry.
func (in *Instance) EntryMeter(name string, h Handle) (MeterRate, error) {
	in.locks[0].RLock()
	defer in.locks[0].RUnlock()
	_, e, err := in.entryOf(name, h)
	if err != nil {
		return MeterRate{}, err
	}
	if e.meter == nil {
		return MeterRate{}, fmt.Errorf("table %q has no direct meter: %w", name, ErrInvalid)
	}
	return e.meter.get(), nil
}

// SetEntryMeter configures the direct meter of an entry.
func (in *Instance) SetEntryMeter(name string, h Handle, m MeterRate) error {
	in.locks[0].RLock()
	defer in.locks[0].RUnlock()
	_, e, err := in.entryOf(name, h)
	if err != nil {
		return err
	}
	if e.meter == nil {
		return fmt.Errorf("table %q has no direct meter: %w", name, ErrInvalid)
	}
	if err := checkRate(m); err != nil {
		return fmt.Errorf("table %q: %w", name, err)
	}
	e.meter.set(m)
	return nil
}

func checkRate(m MeterRate) error {
	if m.CIR < 0 || m.PIR < 0 || m.CBurst < 0 || m.PBurst < 0 {
		return fmt.Errorf("meter rates and bursts %+v must not be negative: %w", m, ErrInvalid)
	}
	if m.CIR > m.PIR {
		return fmt.Errorf("meter has CIR %d above PIR %d: %w", m.CIR, m.PIR, ErrInvalid)
	}
	return nil
}

// Expired lists the entries of a table that no packet hit for their time to live.
func (in *Instance) Expired(name string, now units.Time) []Handle {
	in.sawTime(now)
	in.locks[0].RLock()
	defer in.locks[0].RUnlock()
	t, err := in.table(name)
	if err != nil || !t.spec.timeout {
		return nil
	}
	var list []Handle
	for h, e := range t.entries {
		if e.ttl > 0 && now-units.Time(e.lastHit.Load()) >= e.ttl {
			list = append(list, h)
		}
	}
	return list
}

// SinceHit is the time since a packet hit the entry, or since it was added.
func (in *Instance) SinceHit(name string, h Handle, now units.Time) (units.Time, error) {
	in.locks[0].RLock()
	defer in.locks[0].RUnlock()
	_, e, err := in.entryOf(name, h)
	if err != nil {
		return 0, err
	}
	return max(0, now-units.Time(e.lastHit.Load())), nil
}

// cellIndex checks an index into an array.
func cellIndex(kind, name string, i, size int) error {
	if i < 0 || i >= size {
		return fmt.Errorf("%s %q: index %d, allowed are 0 to %d: %w", kind, name, i, size-1, ErrInvalid)
	}
	return nil
}

// CounterSize is the number of cells of a counter array.
func (in *Instance) CounterSize(name string) (int, error) {
	s := in.prog.counterBy[name]
	if s == nil {
		return 0, fmt.Errorf("counter %q: %w", name, ErrNotFound)
	}
	return s.size, nil
}

// ReadCounter reads cell i.
func (in *Instance) ReadCounter(name string, i int) (Counter, error) {
	n, err := in.CounterSize(name)
	if err == nil {
		err = cellIndex("counter", name, i, n)
	}
	if err != nil {
		return Counter{}, err
	}
	return in.counters[in.prog.counterBy[name].index][i].read(), nil
}

// WriteCounter writes cell i.
func (in *Instance) WriteCounter(name string, i int, v Counter) error {
	n, err := in.CounterSize(name)
	if err == nil {
		err = cellIndex("counter", name, i, n)
	}
	if err != nil {
		return err
	}
	in.counters[in.prog.counterBy[name].index][i].write(v)
	return nil
}

func (in *Instance) meterAt(name string, i int) (*meterCell, error) {
	s := in.prog.meterBy[name]
	if s == nil || s.direct {
		return nil, fmt.Errorf("meter %q: %w", name, ErrNotFound)
	}
	if err := cellIndex("meter", name, i, s.size); err != nil {
		return nil, err
	}
	return &in.meters[s.index][i], nil
}

// MeterSize is the number of cells of a meter array.
func (in *Instance) MeterSize(name string) (int, error) {
	s := in.prog.meterBy[name]
	if s == nil || s.direct {
		return 0, fmt.Errorf("meter %q: %w", name, ErrNotFound)
	}
	return s.size, nil
}

// ReadMeter reads the configuration of cell i.
func (in *Instance) ReadMeter(name string, i int) (MeterRate, error) {
	m, err := in.meterAt(name, i)
	if err != nil {
		return MeterRate{}, err
	}
	return m.get(), nil
}

// WriteMeter configures cell i.
func (in *Instance) WriteMeter(name string, i int, r MeterRate) error {
	m, err := in.meterAt(name, i)
	if err != nil {
		return err
	}
	if err := checkRate(r); err != nil {
		return fmt.Errorf("meter %q: %w", name, err)
	}
	m.set(r)
	return nil
}

// RegisterSize returns the number of cells of a register and the width of one in bits.
func (in *Instance) RegisterSize(name string) (size, bits int, err error) {
	s := in.prog.regBy[name]
	if s == nil {
		return 0, 0, fmt.Errorf("register %q: %w", name, ErrNotFound)
	}
	return s.size, s.bits, nil
}

func (in *Instance) register(name string, i int) (*registerArray, error) {
	n, _, err := in.RegisterSize(name)
	if err == nil {
		err = cellIndex("register", name, i, n)
	}
	if err != nil {
		return nil, err
	}
	return &in.registers[in.prog.regBy[name].index], nil
}

// ReadRegister reads cell i, padded to whole bytes, big-endian.
func (in *Instance) ReadRegister(name string, i int) ([]byte, error) {
	r, err := in.register(name, i)
	if err != nil {
		return nil, err
	}
	b := make([]byte, (r.spec.bits+7)/8)
	r.mu.Lock()
	defer r.mu.Unlock()
	writeField(b, 8*len(b)-r.spec.bits, r.at(uint64(i)), r.spec.bits)
	return b, nil
}

// WriteRegister writes cell i.
func (in *Instance) WriteRegister(name string, i int, v []byte) error {
	r, err := in.register(name, i)
	if err != nil {
		return err
	}
	z := new(big.Int).SetBytes(v)
	if z.BitLen() > r.spec.bits {
		return fmt.Errorf("register %q: value 0x%x has more than %d bits: %w", name, v, r.spec.bits, ErrInvalid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	putWords(r.at(uint64(i)), z, r.spec.bits)
	return nil
}
