// Package red turns RED's marking curve, with DCQCN's parameters Kmin, Kmax and Pmax (Zhu
// et al., SIGCOMM 2015, Fig. 5), into entries of the pipeline's table ecn_red: ranges of
// queue depth with one marking probability each.
//
// The table sees the depth in cells of 64 bytes, so Kmin and Kmax are rounded to the
// nearest cell. Against the curve between the rounded thresholds, the probability of an
// entry is wrong by at most half of a step's rise, and half of 1/65536.
package red

import (
	"cmp"
	"fmt"
	"math"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

const (
	// Cell is the unit in which the table matches the depth.
	Cell units.Bytes = 1 << ids.DepthCellShift
	// MaxDepth is the largest threshold: deeper queues all match as 65535 cells.
	MaxDepth = Cell * ids.Saturated16
	// MaxSteps is the largest number of steps: a queue's share of the table, less the
	// entry above Kmax.
	MaxSteps = ids.REDEntries/ids.QueuesPerPort - 1
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
	Kmax units.Bytes // Kmin … MaxDepth
	Pmax float64     // 0 … 1
}

// Entry is one entry of ecn_red for one queue: depths from Low to High cells, both
// included, are marked with probability P/65536. Entries never overlap, so any priority
// will do. An entry that covers all depths has to be written without its depth
// field, since P4Runtime forbids a don't-care match that is spelled out.
type Entry struct {
	Low, High uint16
	P         uint32 // 1 … Certain
}

// Validate returns a *units.FieldError for the first parameter out of range.
func (c Config) Validate() error {
	return cmp.Or(
		units.Fault(c.Kmax < 0 || c.Kmax > MaxDepth, "kmax", fmt.Sprintf("%d B", c.Kmax), fmt.Sprintf("0 to %d B", MaxDepth), ""),
		units.Fault(c.Kmin < 0 || c.Kmin > c.Kmax, "kmin", fmt.Sprintf("%d B", c.Kmin), fmt.Sprintf("0 to kmax, %d B", c.Kmax), ""),
		units.Fault(!(c.Pmax >= 0 && c.Pmax <= 1), "pmax", fmt.Sprintf("%g", c.Pmax), "0 to 1", ""), // catches NaN
	)
}

func (c Config) cells() (kmin, kmax int) {
	round := func(b units.Bytes) int { return int((b + Cell/2) / Cell) }
	return round(c.Kmin), min(round(c.Kmax), ids.Saturated16)
}

// Entries returns the curve in at most steps+1 entries, in order of depth. Depths without
// an entry are not marked. Steps is 1 to MaxSteps.
func Entries(c Config, steps int) ([]Entry, error) {
	if err := cmp.Or(c.Validate(), units.Fault(steps < 1 || steps > MaxSteps, "steps", steps, fmt.Sprintf("1 to %d", MaxSteps), "")); err != nil {
		return nil, err
	}
	kmin, kmax := c.cells()
	width := kmax - kmin
	stride := max(1, (width+steps-1)/steps) // cells of a step
	var list []Entry
	for at := kmin; at < kmax; at += stride {
		end := min(at+stride, kmax)
		centre := float64(at+end)/2 - float64(kmin)
		list = appendEntry(list, at, end-1, uint32(math.Round(c.Pmax*centre/float64(width)*Certain)))
	}
	return appendEntry(list, kmax, ids.Saturated16, Certain), nil
}

func appendEntry(list []Entry, low, high int, p uint32) []Entry {
	if p == 0 {
		return list
	}
	if n := len(list); n > 0 && list[n-1].P == p {
		list[n-1].High = uint16(high)
		return list
	}
	return append(list, Entry{Low: uint16(low), High: uint16(high), P: p})
}
