package engine

import (
	"encoding/json"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/units"
)

// counterSpec declares an indirect counter array.
type counterSpec struct {
	name  string
	index int
	size  int
}

// meterSpec declares a meter array; a direct one belongs to a table.
type meterSpec struct {
	name   string
	index  int
	size   int
	bytes  bool
	rates  int
	direct bool
	target fieldRef // of a direct meter's color
}

// registerSpec declares a register array.
type registerSpec struct {
	name  string
	index int
	size  int
	bits  int
	words int // per cell
	lock  int // register whose lock it has
}

func (c *compiler) buildState(j *jsonProgram) {
	c.counterBy, c.meterBy, c.regBy = map[string]*counterSpec{}, map[string]*meterSpec{}, map[string]*registerSpec{}
	for i, a := range j.CounterArrays {
		c.in("counter_arrays", i, func() {
			if a.Direct {
				return // the table's with_counters says it
			}
			c.room(a.Name, a.Size, 16)
			s := &counterSpec{a.Name, len(c.counters), a.Size}
			if c.counterBy[a.Name] != nil {
				c.fail("counter %q is declared twice", a.Name)
			}
			c.counters, c.counterBy[a.Name] = append(c.counters, s), s
		})
	}
	for i, a := range j.MeterArrays {
		c.in("meter_arrays", i, func() {
			if a.Type != "bytes" && a.Type != "packets" {
				c.fail("meter %q has type %q, allowed are bytes and packets", a.Name, a.Type)
			}
			if a.RateCount < 1 || a.RateCount > 2 {
				c.fail("meter %q has rate_count %d, allowed are 1 and 2", a.Name, a.RateCount)
			}
			s := &meterSpec{name: a.Name, size: a.Size, bytes: a.Type == "bytes", rates: a.RateCount, direct: a.Direct}
			if a.Direct {
				if len(a.Target) != 2 {
					c.fail("result_target of meter %q is not [header, field]", a.Name)
				}
				s.target = c.fieldNamed(a.Target[0], a.Target[1])
				c.writes(s.target)
				s.index = -1
			} else {
				c.room(a.Name, a.Size, 80)
				s.index = len(c.meters)
				c.meters = append(c.meters, s)
			}
			if c.meterBy[a.Name] != nil {
				c.fail("meter %q is declared twice", a.Name)
			}
			c.meterBy[a.Name] = s
		})
	}
	for i, a := range j.RegisterArrays {
		c.in("register_arrays", i, func() {
			if a.Bits < 1 || a.Bits > maxFieldBits {
				c.fail("register %q has bitwidth %d, allowed are 1 to %d", a.Name, a.Bits, maxFieldBits)
			}
			n := len(c.registers)
			s := &registerSpec{name: a.Name, index: n, size: a.Size, bits: a.Bits, words: (a.Bits + 63) / 64, lock: n}
			c.room(a.Name, a.Size, 8*s.words)
			if c.regBy[a.Name] != nil {
				c.fail("register %q is declared twice", a.Name)
			}
			c.registers, c.regBy[a.Name] = append(c.registers, s), s
		})
	}
}

// room checks that an array's size is reasonable.
func (c *compiler) room(name string, size, cell int) {
	if size < 0 || size > maxArrayCells {
		c.fail("array %q has size %d, allowed are 0 to %d", name, size, maxArrayCells)
	}
	c.stateBytes += int64(size) * int64(cell)
	if c.stateBytes > maxStateBytes {
		c.fail("with array %q the state takes more than %d bytes", name, int64(maxStateBytes))
	}
}

// counterCell counts packets and bytes; updated with atomics by whoever processes packets.
type counterCell struct{ packets, bytes atomic.Uint64 }

func (c *counterCell) add(n int) {
	c.packets.Add(1)
	c.bytes.Add(uint64(n))
}

func (c *counterCell) read() Counter { return Counter{c.packets.Load(), c.bytes.Load()} }

func (c *counterCell) write(v Counter) {
	c.packets.Store(v.Packets)
	c.bytes.Store(v.Bytes)
}

// registerArray is the state of a register. mu guards cells: an action holds the locks of
// all registers it uses for as long as it runs, as in BMv2. Registers that are used together
// somewhere have one lock in common, so it is never more than one.
type registerArray struct {
	spec  *registerSpec
	mu    *shortLock
	cells []uint64
	own   shortLock // what mu points to in the first of those with a lock in common
	_     [64]byte  // the locks of different registers share no cache line
}

// shortLock is a lock that is held for less time than it takes to wake a goroutine: one
// that finds it taken tries again a number of times before it waits.
type shortLock struct{ sync.Mutex }

// shortTries is how often, about a microsecond's worth.
const shortTries = 400

// Lock locks it.
func (l *shortLock) Lock() {
	for range shortTries {
		if l.TryLock() {
			return
		}
	}
	l.Mutex.Lock()
}

// at returns the words of cell i, nil out of bounds.
func (r *registerArray) at(i uint64) []uint64 {
	if i >= uint64(r.spec.size) {
		return nil
	}
	n := uint64(r.spec.words)
	return r.cells[i*n : i*n+n]
}

// registerRef compiles [register, index] as a value that can be read and assigned.
func (c *compiler) registerRef(raw json.RawMessage) expr {
	var v []json.RawMessage
	c.decode(raw, &v)
	if len(v) != 2 {
		c.fail("a register reference is [register, index], not %s", clip(raw))
	}
	r := c.registerNamed(c.str(v[0]))
	idx := c.dataOperand(v[1])
	return expr{kind: xData, data: c.readRegister(r, idx), lval: &lvalue{reg: r, idx: idx}}
}

func (c *compiler) registerNamed(name string) *registerSpec {
	r := c.regBy[name]
	if r == nil {
		c.fail("unknown register %q", name)
	}
	c.useRegister(r)
	return r
}

// useRegister notes that the code being compiled needs the register's lock.
func (c *compiler) useRegister(r *registerSpec) {
	if c.regs == nil {
		c.regs = map[int]bool{}
	}
	c.regs[r.index] = true
}

// readRegister is the value of a cell, 0 out of bounds.
func (c *compiler) readRegister(r *registerSpec, idx *dexpr) *dexpr {
	at, k := index(idx, r.size), r.index
	if r.bits <= 64 {
		return &dexpr{lo: bigZero, hi: constMask(r.bits), word: -1, m: func(p *Packet) uint64 {
			if i := at(p); i >= 0 {
				return p.in.registers[k].cells[i]
			}
			return 0
		}}
	}
	zero := make([]uint64, r.words)
	return wideValue(func(p *Packet) []uint64 {
		if i := at(p); i >= 0 {
			return p.in.registers[k].at(uint64(i))
		}
		return zero
	}, r.bits, false)
}

// writeRegister compiles writing a cell; writes out of bounds are ignored.
func (c *compiler) writeRegister(r *registerSpec, idx, src *dexpr) opFn {
	at, k, m := index(idx, r.size), r.index, src.m
	if r.bits <= 64 {
		mask := lastMask(r.bits)
		return func(p *Packet) {
			if i := at(p); i >= 0 {
				p.in.registers[k].cells[i] = m(p) & mask
			}
		}
	}
	store := wideStore(src, r.words, r.bits)
	return func(p *Packet) {
		if i := at(p); i >= 0 {
			store(p, p.in.registers[k].at(uint64(i)))
		}
	}
}

// withRegisters runs compile and wraps its result in the locks of the registers it uses.
func (c *compiler) withRegisters(compile func() opFn) opFn {
	outer := c.regs
	c.regs = nil
	f := compile()
	lock := c.lockOf(c.regs)
	c.regs = outer
	return locked(lock, f)
}

// lockOf gives registers that are used together a lock in common, and returns one of them,
// −1 when there are none.
func (c *compiler) lockOf(regs map[int]bool) int {
	lock := -1
	for _, r := range sortedKeys(regs) {
		if lock < 0 {
			lock = r
			continue
		}
		old, common := c.registers[r].lock, c.registers[lock].lock
		for _, s := range c.registers {
			if s.lock == old {
				s.lock = common
			}
		}
	}
	return lock
}

// locked runs f under a register's lock, or just so when it is −1.
func locked(lock int, f opFn) opFn {
	if lock < 0 {
		return f
	}
	return func(p *Packet) {
		mu := p.in.registers[lock].mu
		mu.Lock()
		f(p)
		mu.Unlock()
	}
}

// meterCell is one meter: two token buckets (RFC 2698), as BMv2 computes them. mu guards
// the rest.
type meterCell struct {
	mu     sync.Mutex
	rate   MeterRate
	tokens [2]uint64 // committed, peak
	last   [2]uint64 // tokens earned since time 0 that are accounted for
}

func (m *meterCell) set(r MeterRate) {
	m.mu.Lock()
	m.rate = r
	m.tokens = [2]uint64{uint64(r.CBurst), uint64(r.PBurst)}
	m.last = [2]uint64{}
	m.mu.Unlock()
}

func (m *meterCell) get() MeterRate {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rate
}

// run meters one packet of n bytes or packets: 0 green, 1 yellow, 2 red.
func (m *meterCell) run(n uint64, rates int, now units.Time) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.rate.Configured {
		return 0
	}
	micros := uint64(max(0, now)) / uint64(units.Microsecond)
	if rates == 2 && !m.take(1, m.rate.PIR, m.rate.PBurst, n, micros) {
		return 2
	}
	if !m.take(0, m.rate.CIR, m.rate.CBurst, n, micros) {
		return 1
	}
	return 0
}

func (m *meterCell) take(i int, rate, burst int64, n, micros uint64) bool {
	hi, lo := bits.Mul64(micros, uint64(max(0, rate)))
	earned := ^uint64(0)
	if hi < 1e6 {
		earned, _ = bits.Div64(hi, lo, 1e6)
	}
	if earned > m.last[i] { // cores may see the clock in different order
		m.tokens[i] = addSat(m.tokens[i], earned-m.last[i])
		m.last[i] = earned
	}
	m.tokens[i] = min(m.tokens[i], uint64(max(0, burst)))
	if m.tokens[i] < n {
		return false
	}
	m.tokens[i] -= n
	return true
}

func addSat(a, b uint64) uint64 {
	if s := a + b; s >= a {
		return s
	}
	return ^uint64(0)
}
