package engine

import (
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/phv"
	"github.com/headgate/headgate/units"
)

// Limits that keep a hostile program from exhausting memory. BMv2 has none.
const (
	maxArrayCells = 1 << 26
	maxStateBytes = 4 << 30
)

// arraySpec declares an array of counters, meters or register cells.
type arraySpec struct{ index, size int }

func (s *arraySpec) array() *arraySpec { return s }

// meterSpec declares a meter array; a direct one belongs to a table.
type meterSpec struct {
	arraySpec
	bytes  bool
	rates  int
	target phv.Ref // where a direct meter writes the color
	colors [3]uint64
}

// registerSpec declares a register array.
type registerSpec struct {
	arraySpec
	bits  int
	words int // per cell
	lock  int // register whose lock it shares
}

func (c *compiler) buildState(j *bmv2json.Program) {
	c.counters.kind, c.meters.kind, c.directMeters.kind, c.registers.kind = "counter", "meter", "direct meter", "register"
	for i, a := range j.CounterArrays {
		c.In("counter_arrays", i, func() {
			if !a.Direct { // direct counters are declared by the table's with_counters
				c.reserve(a.Name, a.Size, 16)
				c.counters.add(c, a.Name, &arraySpec{len(c.counters.list), a.Size})
			}
		})
	}
	for i, m := range j.Meters() {
		c.In("meter_arrays", i, func() { c.buildMeter(&m) })
	}
	for i, a := range j.RegisterArrays {
		c.In("register_arrays", i, func() {
			if a.Bits < 1 || a.Bits > bmv2json.MaxBits {
				c.Fail("register %q has bitwidth %d, allowed are 1 to %d", a.Name, a.Bits, bmv2json.MaxBits)
			}
			n := len(c.registers.list)
			s := &registerSpec{arraySpec: arraySpec{n, a.Size}, bits: a.Bits, words: phv.Words(a.Bits), lock: n}
			c.reserve(a.Name, a.Size, 8*s.words)
			c.registers.add(c, a.Name, s)
		})
	}
}

func (c *compiler) buildMeter(a *bmv2json.MeterArray) {
	if a.Type != "bytes" && a.Type != "packets" {
		c.Fail("meter %q has type %q, allowed are bytes and packets", a.Name, a.Type)
	}
	if a.RateCount < 1 || a.RateCount > 2 {
		c.Fail("meter %q has rate_count %d, allowed are 1 and 2", a.Name, a.RateCount)
	}
	s := &meterSpec{arraySpec: arraySpec{len(c.meters.list), a.Size}, bytes: a.Type == "bytes", rates: a.RateCount, colors: c.arch.Colors}
	if !a.Direct {
		c.reserve(a.Name, a.Size, 80)
		c.meters.add(c, a.Name, s)
		return
	}
	if len(a.Target) != 2 {
		c.Fail("result_target of meter %q is not [header, field]", a.Name)
	}
	s.target = c.fieldNamed(a.Target[0], a.Target[1])
	c.writes(s.target)
	c.directMeters.add(c, a.Name, s)
}

// reserve checks the size of an array and counts the memory of all arrays.
func (c *compiler) reserve(name string, size, cell int) {
	if size < 0 || size > maxArrayCells {
		c.Fail("array %q has size %d, allowed are 0 to %d", name, size, maxArrayCells)
	}
	c.stateBytes += int64(size) * int64(cell)
	if c.stateBytes > maxStateBytes {
		c.Fail("with array %q the state takes more than %d bytes", name, int64(maxStateBytes))
	}
}

// counterCell counts packets and bytes. Any goroutine may use it.
type counterCell struct{ packets, bytes atomic.Uint64 }

// Add counts one packet of n bytes.
func (c *counterCell) Add(n int) {
	c.packets.Add(1)
	c.bytes.Add(uint64(n))
}

func (c *counterCell) read() Counter { return Counter{c.packets.Load(), c.bytes.Load()} }

func (c *counterCell) write(v Counter) {
	c.packets.Store(v.Packets)
	c.bytes.Store(v.Bytes)
}

// registerArray is the state of a register. mu guards cells. While an action runs it holds the
// locks of all registers it uses, as in BMv2. Registers that are used together anywhere share one
// lock, so an action never holds more than one.
type registerArray struct {
	spec  *registerSpec
	mu    *shortLock
	cells []uint64
	own   shortLock // the lock that mu points to, in the first of the registers that share it
	_     [64]byte  // the locks of different registers share no cache line
}

// shortLock is a lock that is held for less time than it takes to wake a goroutine, so Lock spins
// for a while before it blocks.
type shortLock struct{ sync.Mutex }

// shortTries is how often Lock tries before it blocks, for about a microsecond.
const shortTries = 400

// Lock acquires the lock.
func (l *shortLock) Lock() {
	for range shortTries {
		if l.TryLock() {
			return
		}
	}
	l.Mutex.Lock()
}

// at returns the words of cell i, or nil beyond the end.
func (r *registerArray) at(i uint64) []uint64 {
	if i >= uint64(r.spec.size) {
		return nil
	}
	n := uint64(r.spec.words)
	return r.cells[i*n : i*n+n]
}

// register finds a register. The code being compiled then needs the register's lock.
func (c *compiler) register(name string) *registerSpec {
	r := c.registers.named(c, name)
	if c.regs == nil {
		c.regs = map[int]bool{}
	}
	c.regs[r.index] = true
	return r
}

// locking runs compile and makes the registers that it uses share one lock. It returns the index of one of these
// registers, or −1 if there are none.
func (c *compiler) locking(compile func()) int {
	outer := c.regs
	c.regs = nil
	compile()
	lock := -1
	for _, r := range slices.Sorted(maps.Keys(c.regs)) {
		if lock < 0 {
			lock = r
			continue
		}
		old, common := c.registers.list[r].lock, c.registers.list[lock].lock
		for _, s := range c.registers.list {
			if s.lock == old {
				s.lock = common
			}
		}
	}
	c.regs = outer
	return lock
}

// meterCell is one meter with two token buckets (RFC 2698), computed as in BMv2. mu guards the
// rest.
type meterCell struct {
	mu     sync.Mutex
	rate   MeterRate
	tokens [2]uint64 // committed, peak
	last   [2]uint64 // tokens earned since time 0 and already added to tokens
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

// run meters one packet and returns its color as the architecture writes it.
func (m *meterCell) run(bytes int, s *meterSpec, now units.Time) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.rate.Configured {
		return s.colors[0]
	}
	n := uint64(1)
	if s.bytes {
		n = uint64(bytes)
	}
	micros := uint64(max(0, now)) / uint64(units.Microsecond)
	if s.rates == 2 && !m.spend(1, m.rate.PIR, m.rate.PBurst, n, micros) {
		return s.colors[2]
	}
	if !m.spend(0, m.rate.CIR, m.rate.CBurst, n, micros) {
		return s.colors[1]
	}
	return s.colors[0]
}

func (m *meterCell) spend(i int, rate, burst int64, n, micros uint64) bool {
	hi, lo := bits.Mul64(micros, uint64(max(0, rate)))
	earned := ^uint64(0)
	if hi < 1e6 {
		earned, _ = bits.Div64(hi, lo, 1e6)
	}
	if earned > m.last[i] { // times may be out of order between packets on different cores
		sum, carry := bits.Add64(m.tokens[i], earned-m.last[i], 0)
		m.tokens[i] = sum | -carry
		m.last[i] = earned
	}
	m.tokens[i] = min(m.tokens[i], uint64(max(0, burst)))
	if m.tokens[i] < n {
		return false
	}
	m.tokens[i] -= n
	return true
}

// SharesRegisters reports whether ingress and egress use the same register, or registers that one
// action uses together. Such programs depend on the order of ingress and egress, so packets must
// pass them in the order of their arrival.
func (prog *Program) SharesRegisters() bool {
	ingress := prog.locksFrom(prog.passes[Ingress].first, map[*node]bool{}, map[int]bool{})
	for lock := range prog.locksFrom(prog.passes[Egress].first, map[*node]bool{}, map[int]bool{}) {
		if ingress[lock] {
			return true
		}
	}
	return false
}

// locksFrom adds the locks of the registers that node n and all nodes after it use.
func (prog *Program) locksFrom(n *node, seen map[*node]bool, locks map[int]bool) map[int]bool {
	if n == nil || seen[n] {
		return locks
	}
	seen[n] = true
	add := func(lock int) {
		if lock >= 0 {
			locks[prog.registers.list[lock].lock] = true
		}
	}
	add(n.lock)
	if n.call != nil {
		add(n.call.act.lock)
	}
	if n.table != nil {
		for _, a := range n.table.actions {
			add(a.lock)
		}
	}
	for _, m := range n.followers() {
		prog.locksFrom(m, seen, locks)
	}
	return locks
}
