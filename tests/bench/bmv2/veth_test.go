package bmv2

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/headgate/headgate/tests/dataplane/bmv2"
)

// lossLimit is the loss up to which a rate counts as forwarded.
const lossLimit = 0.001

// veths searches for the highest rate that the switch forwards between veth pairs without loss, sent on all ports
// in turns, and for the rate that it forwards when everything is sent at once. It can also measure a single rate.
func veths(t *testing.T, k kind, p *program) sample {
	s := startVeth(t, k, p)
	if err := newSink(t); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err, "- the network stack drops it")
	}
	tx := newSender(t, *senderName, p, *size)
	offer := func(rate, seconds float64) trial { return offer(t, s, tx, rate, seconds) }
	offer(10000, *seconds/4) // warm up
	if *onlyRate > 0 {
		r := offer(*onlyRate, *seconds)
		return sample{
			{"packets/s", r.out, 1},
			{"packets lost of 1000", 1000 * r.loss(), 0},
			{"CPU ns per packet", r.cpu, -1},
		}
	}
	flood := offer(1e9, *seconds)
	best := search(flood.out, func(rate float64) trial { return offer(rate, *seconds/2) })
	return sample{
		{"packets/s without loss", best.out, 1},
		{"packets/s under flood", flood.out, 1},
		{"packets/s offered by flood", flood.in, 0},
		{"packets lost of 1000 under flood", 1000 * flood.loss(), 0},
		{"CPU ns per packet without loss", best.cpu, -1},
	}
}

// searchSteps bounds the search for the best rate. closeEnough ends it: the ratio of the lowest failed rate to
// the highest successful one. offered is the share of a rate that the sender must have sent before the next
// higher rate is tried.
const (
	searchSteps = 12
	closeEnough = 1.02
	offered     = 0.98
)

// search looks for the highest rate without loss, starting at a guess that does not bound the result. A rate
// fails if it has losses twice in a row, because the machine may have caused the first.
func search(rate float64, try func(rate float64) trial) (best trial) {
	var lo, hi float64 // 0 while unknown
	for range searchSteps {
		r := try(rate)
		if r.loss() > lossLimit {
			r = try(rate)
		}
		fine := r.loss() <= lossLimit
		if fine && r.out > best.out {
			best = r
		}
		if fine && r.in >= rate*offered {
			lo = rate
		} else {
			hi = rate
		}
		switch {
		case hi == 0:
			rate = lo * 1.5
		case lo == 0:
			rate = hi / 1.5
		case hi/lo < closeEnough:
			return best
		default:
			rate = (lo + hi) / 2
		}
	}
	return best
}

type trial struct {
	in, out float64 // packets/s
	cpu     float64 // ns per packet forwarded
}

func (t trial) loss() float64 { return max(0, 1-t.out/t.in) }

// offer sends at a rate for some seconds and counts the output.
func offer(t *testing.T, s *bmv2.Process, tx sender, rate, seconds float64) trial {
	before, sent0 := received(t), tx.sent(t)
	u0, s0 := cpu(t, s)
	elapsed, err := pace(tx, rate, time.Duration(seconds*1e9))
	must(t, err)
	took := elapsed.Seconds()
	// Packets that arrive a little later count, but prolong the time only slightly.
	last := received(t)
	for still := 0; still < 3; still++ {
		time.Sleep(20 * time.Millisecond)
		if n := received(t); n != last {
			last, still = n, -1
		}
	}
	u1, s1 := cpu(t, s)
	got := float64(last - before)
	return trial{float64(tx.sent(t)-sent0) / took, got / took, float64(u1+s1-u0-s0) / max(1, got)}
}

// received returns the number of frames that have reached the hosts' ends.
func received(t *testing.T) (n uint64) {
	t.Helper()
	for port := 1; port <= ports; port++ {
		l, err := netlink.LinkByName(hostEnd(port))
		must(t, err)
		n += l.Attrs().Statistics.RxPackets
	}
	return n
}
