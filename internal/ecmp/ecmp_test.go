package ecmp

import (
	"math"
	"net/netip"
	"testing"
)

// flow returns one of 1000 RoCE flows between two hosts; they differ in their source ports.
func flow(k int) Flow {
	return Flow{Src: netip.AddrFrom4([4]byte{10, 0, 1, 1}), Dst: netip.AddrFrom4([4]byte{10, 0, 2, 1}), Protocol: 17, SrcPort: uint16(49152 + k*7%16384), DstPort: 4791}
}

// kinds are sets of flows that differ in one field, as in real fabrics.
var kinds = map[string]func(k int) Flow{
	"source ports": flow,
	"hosts": func(k int) Flow {
		return Flow{Src: netip.AddrFrom4([4]byte{10, 0, 1, byte(k / 32)}), Dst: netip.AddrFrom4([4]byte{10, 0, 2, byte(k % 32)}), Protocol: 17, SrcPort: 49152, DstPort: 4791}
	},
	"queue pairs": func(k int) Flow {
		return Flow{Src: netip.AddrFrom4([4]byte{10, 0, 1, 1}), Dst: netip.AddrFrom4([4]byte{10, 0, 2, 1}), Protocol: 17, SrcPort: 49152, DstPort: 4791, By: QueuePair, QueuePair: uint32(k)}
	},
}

// tiers sends flows from a leaf through two aggregation switches to two cores each, over parallel links to each
// aggregation switch. It returns the largest relative deviation of a link from its share.
func tiers(devices [3]uint64, parallel, flows int) float64 {
	up, above := make([]int, 2*parallel), make([]int, 4)
	for k := range flows {
		f := flow(k)
		i := f.Choose(Seed(0, devices[0]), len(up))
		agg := i / parallel
		up[i]++
		above[2*agg+f.Choose(Seed(0, devices[1+agg]), 2)]++
	}
	worst := 0.0
	for _, links := range [][]int{up, above} {
		for _, n := range links {
			worst = max(worst, math.Abs(float64(n)*float64(len(links))/float64(flows)-1))
		}
	}
	return worst
}

// TestTiers: each link carries its share within 10 %. With 1000 flows, fair dice achieve that for four links in
// nine of ten cases (the standard deviation is 5.5 %), so device numbers start at 1 here. With 16 384 flows it
// always holds.
func TestTiers(t *testing.T) {
	for _, parallel := range []int{1, 2} {
		if worst := tiers([3]uint64{1, 2, 3}, parallel, 1000); worst > 0.1 {
			t.Errorf("1000 flows, %d links to each aggregation switch: a link is off its share by %.1f %%", parallel, 100*worst)
		}
		for id := uint64(0); id < 90; id += 3 {
			if worst := tiers([3]uint64{id, id + 1, id + 2}, parallel, 1<<14); worst > 0.1 {
				t.Errorf("16384 flows, %d links to each aggregation switch, device ids from %d: a link is off its share by %.1f %%", parallel, id, 100*worst)
			}
		}
	}
}

// TestSeedsAreIndependent: the choice of one switch says nothing about the next switch's choice. Counts deviate
// from their shares as with fair dice, for all seeds, fields and numbers of links.
func TestSeedsAreIndependent(t *testing.T) {
	const flows, seeds = 1000, 50
	for name, flow := range kinds {
		for _, n := range []int{2, 3, 4, 8} {
			cells := float64(n * n)
			share := flows / cells
			deviation := math.Sqrt(share * (1 - 1/cells))
			var sum float64
			for s := range uint64(seeds) {
				count := make([]int, n*n)
				for k := range flows {
					f := flow(k)
					count[f.Choose(Seed(0, 2*s), n)*n+f.Choose(Seed(0, 2*s+1), n)]++
				}
				for _, c := range count {
					z := (float64(c) - share) / deviation
					sum += z * z
					if math.Abs(z) > 6 {
						t.Errorf("%s, %d links, device ids %d and %d: %d flows by one pair of links, want %.0f: %.1f standard deviations", name, n, 2*s, 2*s+1, c, share, z)
					}
				}
			}
			if rms := math.Sqrt(sum / seeds / cells); rms < 0.9 || rms > 1.1 {
				t.Errorf("%s, %d links: %.2f standard deviations in the mean, want 1", name, n, rms)
			}
		}
	}
}

// TestSeed: numbers or switches next to each other do not have similar seeds.
func TestSeed(t *testing.T) {
	seen := map[uint32]bool{}
	for number := range uint32(100) {
		for id := range uint64(100) {
			seen[Seed(number, id)] = true
		}
	}
	if len(seen) != 100*100 {
		t.Errorf("%d seeds of 10 000 switches, want as many", len(seen))
	}
}
