package engine

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/hash"
	"github.com/headgate/headgate/softswitch/engine/phv"
	"github.com/headgate/headgate/units"
)

// mostLocks bounds the number of reader locks, see Instance.
const mostLocks = 16

// lock is a reader lock on a cache line of its own.
type lock struct {
	sync.RWMutex
	_ [40]byte
}

// newLocks returns up to mostLocks reader locks: one for ingress and one for egress on each core,
// rounded up to a power of two. So packets on different cores do not contend, and a control method
// acquires no more locks than needed.
func newLocks() []lock {
	n := uint32(2)
	for n < mostLocks && int(n) < 2*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return make([]lock, n)
}

// Instance is one running switch. Control methods may be called from any goroutine at any
// time, also while packets are processed, and packets may be processed by several
// goroutines at a time.
//
// Locking: a packet holds one reader lock during Ingress and another during Egress, both chosen by
// its ingress port. It holds none while an Out is called. A Worker's batch holds one reader lock for all of
// its packets. A control method that changes tables, profiles, value sets, groups or sessions
// acquires all reader locks, so a packet sees either the whole change or none of it. Counters are
// atomic. Meters and registers have their own locks. An action holds the locks of all registers it
// uses, as in BMv2.
type Instance struct {
	prog   *Program
	opts   Options
	pool   sync.Pool
	plain  Worker       // has no batch, so that nothing changes it
	locks  []lock       // a power of two, at least 2
	latest atomic.Int64 // latest time seen, units.Time
	seed   atomic.Uint64

	observed bool     // a Tracer or Times observes packets
	wanted   []wanted // the tracer's fields

	tables    []*table
	large     []*table // those into which packets look ahead
	profiles  []*profile
	vsets     [][]vsetMember
	counters  [][]counterCell
	meters    [][]meterCell
	registers []registerArray
	robins    []hash.Robin
	groups    map[uint16][]Replica
	sessions  map[uint16]*CloneSession
}

// New starts an instance of a program. Its tables contain only the program's own entries.
func New(prog *Program, o Options) *Instance {
	if o.DropPort == 0 {
		o.DropPort = 511
	}
	if o.Queues == 0 {
		o.Queues = 1
	}
	in := &Instance{prog: prog, opts: o, locks: newLocks(), groups: map[uint16][]Replica{}, sessions: map[uint16]*CloneSession{}}
	in.plain.in = in
	in.seed.Store(o.Seed)
	in.observed = o.Tracer != nil || o.Times != nil
	if o.Tracer != nil {
		in.find(o.Tracer.Fields)
	}
	in.pool.New = func() any {
		p := &Packet{in: in, vector: phv.Vector{
			W: make([]uint64, int(prog.code.base)+prog.code.temps), VL: make([]byte, prog.layout.VLBytes),
		}}
		p.eval = expr.Evaluator{Vector: &p.vector, Cell: in.cell}
		return p
	}
	for _, t := range prog.tables.list {
		in.tables = append(in.tables, newTable(t))
		for i := range t.entries {
			// This cannot fail: the loader has added the same entries to a table of the same kind.
			if _, err := in.tables[t.index].insertConst(&t.entries[i]); err != nil {
				panic(err)
			}
		}
	}
	for _, s := range prog.profiles.list {
		in.profiles = append(in.profiles, &profile{s, map[MemberID]*member{}, map[GroupID]*group{}})
	}
	in.vsets = make([][]vsetMember, len(prog.vsets.list))
	for _, s := range prog.counters.list {
		in.counters = append(in.counters, make([]counterCell, s.size))
	}
	for _, s := range prog.meters.list {
		in.meters = append(in.meters, make([]meterCell, s.size))
	}
	in.registers = make([]registerArray, len(prog.registers.list))
	for i, s := range prog.registers.list {
		in.registers[i].spec = s
		in.registers[i].mu = &in.registers[s.lock].own
		in.registers[i].cells = make([]uint64, s.size*s.words)
	}
	in.robins = make([]hash.Robin, prog.robins)
	return in
}

// Program returns the program that the instance runs.
func (in *Instance) Program() *Program { return in.prog }

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

// reader returns the reader lock for packets that arrived on a port. half is 0 in ingress and 1 in
// egress. The two use different locks because they may run on different cores.
func (in *Instance) reader(half, port uint32) *sync.RWMutex {
	return &in.locks[(half+2*port)&uint32(len(in.locks)-1)].RWMutex
}

// clock returns the latest time that a caller has passed in.
func (in *Instance) clock() units.Time { return units.Time(in.latest.Load()) }

// advanceClock records the latest time, from which the age of new entries counts.
func (in *Instance) advanceClock(now units.Time) {
	if old := in.latest.Load(); int64(now) > old {
		in.latest.CompareAndSwap(old, int64(now))
	}
}

func (in *Instance) log(msg string) {
	if in.opts.Log != nil {
		in.opts.Log.Info(msg)
	}
}

// cell returns the words of a register's cell, or nil beyond the register's end.
func (in *Instance) cell(register int, i uint64) []uint64 { return in.registers[register].at(i) }
