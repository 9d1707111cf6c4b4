// Package phi holds the threshold table that turns a queue's conservatively estimated gradient ĝ into the
// headroom φ̂ it needs (DSH Fig. 12 and the last line of Algorithm 3). With it a switch compares instead of
// multiplying.
//
// All steps have one width, a power of two, so that a CPU finds its step by a shift and a
// pipeline by a range or a prefix. A step has the headroom of its upper end: φ̂ is never
// below ĝ·D and exceeds it by at most Table.Error.
package phi

import (
	"cmp"
	"fmt"
	"math"
	"math/big"

	"github.com/headgate/headgate/units"
)

// Limits and default of Config.Entries. The default keeps φ̂ within Φ/32 of ĝ·D.
const (
	MinEntries, MaxEntries = 2, 4096
	DefaultEntries         = 64
)

// MaxUnit is the largest Config.Unit: 2^32 ps are 4.3 ms.
const MaxUnit = 32

// maxGradientBits bounds the gradient that needs all of Φ.
const maxGradientBits = 61

// MaxTick is the largest Config.Tick, of a clock coarser than any switch's.
const MaxTick = units.Millisecond

// Config describes one table.
type Config struct {
	Phi     units.Bytes // Φ, the headroom at which φ̂ is clamped; positive
	Delay   units.Time  // D, how long a PAUSE takes to take effect; positive
	Unit    uint        // gradients are in bytes per 2^Unit ticks; 0 to MaxUnit
	Tick    units.Time  // tick of the clock that measures gradients, up to MaxTick; 0 means 1 ps
	Entries int         // largest number of entries, MinEntries to MaxEntries
}

// Validate returns a *units.FieldError for the first parameter out of range.
func (c Config) Validate() error {
	full := c.Delay > 0 && c.Unit <= MaxUnit && c.full().BitLen() > maxGradientBits
	return cmp.Or(
		units.Fault(c.Phi <= 0 || c.Phi > math.MaxInt32, "phi", fmt.Sprintf("%d B", c.Phi), fmt.Sprintf("1 to %d B", math.MaxInt32), ""),
		units.Fault(c.Delay <= 0, "delay", fmt.Sprintf("%d ps", c.Delay), "1 ps or more", ""),
		units.Fault(c.Unit > MaxUnit, "unit", c.Unit, fmt.Sprintf("0 to %d (2^n ticks)", MaxUnit), ""),
		units.Fault(c.Tick < 0 || c.Tick > MaxTick, "tick", fmt.Sprintf("%d ps", c.Tick), fmt.Sprintf("0 to %v", MaxTick), ""),
		units.Fault(full, "unit", c.Unit, fmt.Sprintf("one with which Φ = %d B in %v is below 2^%d", c.Phi, c.Delay, maxGradientBits), ""),
		units.Fault(c.Entries < MinEntries || c.Entries > MaxEntries, "entries", c.Entries, fmt.Sprintf("%d to %d", MinEntries, MaxEntries), ""),
	)
}

// Entry says that gradients from Low to High, both included, need Phi.
type Entry struct {
	Low, High int64
	Phi       units.Bytes
}

// Table is a threshold table. It is never written after New, so it can be shared.
type Table struct {
	config Config
	shift  uint // a step is 2^shift gradients wide
	phi    []units.Bytes
}

// New returns the finest table that fits into c.Entries. It returns a *units.FieldError when c is
// out of range.
func New(c Config) (*Table, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	t := &Table{config: c}
	for c.full().Int64()>>t.shift+1 > int64(c.Entries) {
		t.shift++
	}
	for low := int64(0); ; low += 1 << t.shift {
		p := Headroom(c, low+1<<t.shift)
		t.phi = append(t.phi, p)
		if p == c.Phi {
			return t, nil
		}
	}
}

// time returns the time over which a gradient counts bytes, in ps.
func (c Config) time() *big.Int {
	return new(big.Int).Lsh(big.NewInt(max(1, int64(c.Tick))), c.Unit)
}

func (c Config) full() *big.Int {
	g := new(big.Int).Mul(big.NewInt(int64(c.Phi)-1), c.time())
	return g.Quo(g, big.NewInt(int64(c.Delay)))
}

// Headroom returns the value that the table approximates: ĝ·D, rounded up and clamped to [0, Φ] (Eq. 8). It is
// exact but slow, for building tables and for tests.
func Headroom(c Config, g int64) units.Bytes {
	if g <= 0 {
		return 0
	}
	p := new(big.Int).Mul(big.NewInt(g), big.NewInt(int64(c.Delay)))
	per := c.time()
	p.Add(p, per).Sub(p, big.NewInt(1)).Quo(p, per)
	if p.IsInt64() && p.Int64() < int64(c.Phi) {
		return units.Bytes(p.Int64())
	}
	return c.Phi
}

// Lookup returns φ̂ for a gradient in bytes per 2^Unit ticks. A queue that does not grow needs
// none.
func (t *Table) Lookup(g int64) units.Bytes {
	if g <= 0 {
		return 0
	}
	i := (g - 1) >> t.shift
	if i >= int64(len(t.phi)) {
		return t.config.Phi
	}
	return t.phi[i]
}

// Error bounds Lookup(g) − Headroom(g), which is never negative: one step's growth.
func (t *Table) Error() units.Bytes {
	return min(t.config.Phi, Headroom(t.config, 1<<t.shift))
}

// Entries returns the table as ranges of ĝ in ascending order, from 1 on. The last reaches
// to the end of the numbers. Gradients up to 0 need no headroom and have no entry.
func (t *Table) Entries() []Entry {
	list := make([]Entry, len(t.phi))
	for i, p := range t.phi {
		list[i] = Entry{int64(i)<<t.shift + 1, int64(i+1) << t.shift, p}
	}
	list[len(list)-1].High = math.MaxInt64
	return list
}
