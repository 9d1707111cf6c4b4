// Package red turns RED's marking curve, with DCQCN's parameters Kmin, Kmax and Pmax (Zhu
// et al., SIGCOMM 2015, Fig. 5), into entries of the pipeline's table ecn_red: ranges of
// queue depth with one marking probability each.
//
// Programs see the depth in units of their own (Depth), to which Kmin and Kmax are rounded. Compared with the
// curve between the rounded thresholds, the probability of an entry is off by at most half of a step's rise and
// half of 1/65536.
package red

import (
	"cmp"
	"fmt"
	"math"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

// Depth converts the depth of a queue to the key of a program's table.
type Depth struct {
	Unit units.Bytes
	// Max is the largest value of the key; deeper queues have this value too.
	Max uint32
}

// DepthOf returns the depths of a table whose key has that many bits: 32 bits count bytes, fewer count cells.
func DepthOf(bits int) Depth {
	if bits == 32 {
		return Depth{1, math.MaxUint32}
	}
	return Depth{1 << ids.DepthCellShift, 1<<bits - 1}
}

// Most is the largest threshold.
func (d Depth) Most() units.Bytes { return d.Unit * units.Bytes(d.Max) }

const (
	// Least is the smallest threshold of a program that counts cells.
	Least units.Bytes = 1 << ids.DepthCellShift
	// MaxSteps is the largest number of steps: a curve's share of the table, less the
	// entry above Kmax.
	MaxSteps = ids.REDCurveEntries - 1
	// DefaultSteps keeps the error below Pmax/32, which for DCQCN's Pmax of 1 % is 0.03 %
	// of packets.
	DefaultSteps = 16
	// Certain is the probability of an entry that marks every packet.
	Certain = 1 << 16
)

// Config is a marking curve: no packet is marked while the queue is below Kmin, every
// packet from Kmax on, and between them the probability rises linearly from 0 to Pmax.
type Config struct {
	Kmin units.Bytes // 0 … Kmax
	Kmax units.Bytes // Kmin … Depth.Most
	Pmax float64     // 0 … 1
}

// Entry is one entry of ecn_red for one curve: depths from Low to High units, both
// included, are marked with probability P/65536. Entries never overlap, so any priority
// will do. An entry that covers all depths has to be written without its depth
// field, since P4Runtime forbids a don't-care match that is spelled out.
type Entry struct {
	Low, High uint32
	P         uint32 // 1 … Certain
}

func (c Config) validate(d Depth) error {
	return cmp.Or(
		units.Fault(c.Kmax < 0 || c.Kmax > d.Most(), "kmax", fmt.Sprintf("%d B", c.Kmax), fmt.Sprintf("0 to %d B", d.Most()), ""),
		units.Fault(c.Kmin < 0 || c.Kmin > c.Kmax, "kmin", fmt.Sprintf("%d B", c.Kmin), fmt.Sprintf("0 to kmax, %d B", c.Kmax), ""),
		units.Fault(!(c.Pmax >= 0 && c.Pmax <= 1), "pmax", fmt.Sprintf("%g", c.Pmax), "0 to 1", ""), // catches NaN
	)
}

func (c Config) in(d Depth) (kmin, kmax int64) {
	round := func(b units.Bytes) int64 { return int64((b + d.Unit/2) / d.Unit) }
	return round(c.Kmin), min(round(c.Kmax), int64(d.Max))
}

// Entries returns the curve in at most steps+1 entries, in order of depth. Depths without
// an entry are not marked. Steps is 1 to MaxSteps. The error is a *units.FieldError.
func Entries(c Config, steps int, d Depth) ([]Entry, error) {
	if err := cmp.Or(c.validate(d), units.Fault(steps < 1 || steps > MaxSteps, "steps", steps, fmt.Sprintf("1 to %d", MaxSteps), "")); err != nil {
		return nil, err
	}
	kmin, kmax := c.in(d)
	width := kmax - kmin
	stride := max(1, (width+int64(steps)-1)/int64(steps))
	var list []Entry
	add := func(low, high int64, p uint32) {
		if n := len(list); n > 0 && list[n-1].P == p {
			list[n-1].High = uint32(high)
		} else if p != 0 {
			list = append(list, Entry{uint32(low), uint32(high), p})
		}
	}
	for at := kmin; at < kmax; at += stride {
		end := min(at+stride, kmax)
		centre := float64(at+end)/2 - float64(kmin)
		add(at, end-1, uint32(math.Round(c.Pmax*centre/float64(width)*Certain)))
	}
	add(kmax, int64(d.Max), Certain)
	return list, nil
}
