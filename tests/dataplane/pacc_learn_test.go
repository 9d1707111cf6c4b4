package dataplane

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature/pacc"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/embedded"
	"github.com/headgate/headgate/tests/dataplane/target"
	"github.com/headgate/headgate/tests/race"
)

// TestPaccLearningRateEmbedded logs how many new flows per second get into the table, over P4Runtime and inside
// the switch.
func TestPaccLearningRateEmbedded(t *testing.T) {
	race.SkipRealTime(t)
	for _, at := range []pacc.Place{pacc.AtController, pacc.AtSwitch} {
		t.Run(string(at), func(t *testing.T) {
			s, err := embedded.Start()
			if err != nil {
				t.Fatal(err)
			}
			learnMany(t, s, fmt.Sprintf(paccFabric, config.Embedded, at)+strangers)
		})
	}
}

func TestPaccLearningRateBMv2(t *testing.T) {
	bmv2.Need(t)
	learnMany(t, bmv2.Start(t), fmt.Sprintf(paccFabric, config.BMv2, pacc.AtController)+strangers)
}

// strangers permits frames from addresses that no host has.
const strangers = "source_check: {edge_ports: false}\n"

// loopStats returns the counters of PACC's loop, wherever it runs.
func loopStats(c *controller.Controller, tg target.Target) cnpgen.LoopStats {
	if s, ok := tg.(*embedded.Switch); ok && pacc.FromConfig(c.Config()).At == pacc.AtSwitch {
		st, _, _ := s.PACC()
		return st
	}
	number := func(metric string) uint64 {
		n, _ := shownNumber(c.Switches()[0], metric)
		return uint64(n)
	}
	return cnpgen.LoopStats{
		Ticks: number("pacc_ticks"), Missed: number("pacc_missed_ticks"), Flows: int(number("pacc_flows")),
		Learned: number("pacc_learned_flows"), Refused: number("pacc_refused_flows"), Evicted: number("pacc_evicted_flows"),
		QueuePairs: int(number("pacc_queue_pairs")),
	}
}

// learnMany sends a packet of each of many flows, and repeats those whose digest was lost, until the table has
// all of them.
func learnMany(t *testing.T, tg target.Target, yaml string) {
	const flows = 2000
	const lost = 3 * time.Second // without progress: much longer than a write on a slow machine
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must(t, tg.Shape(2, target.Shape{Depth: 2 * flows}))
	c := startController(t, tg, yaml)
	stats := func() cnpgen.LoopStats { return loopStats(c, tg) }
	wait := func(what string, done func() bool, most time.Duration) bool {
		for end := time.Now().Add(most); !done(); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(end) {
				if what != "" {
					t.Fatalf("%s: %+v", what, stats())
				}
				return false
			}
		}
		return true
	}
	wait("the loop does not tick", func() bool { return stats().Ticks > 0 }, patience)
	var frames [][]byte
	for i := range flows {
		f := newFrame(1, 2)
		f.src = netip.AddrFrom4([4]byte{10, 0, 1 + byte(i>>8)<<3, byte(i)})
		frames = append(frames, f.bytes(t))
	}
	start, rounds := time.Now(), 0
	for learned := false; !learned; rounds++ {
		if rounds == 20 {
			t.Fatalf("after %d rounds: %+v", rounds, stats())
		}
		for i := 0; i < flows; i += 50 { // BMv2's input queue is short
			must(t, tg.Send(1, frames[i:i+50]...))
		}
		before := stats().Learned
		for {
			if learned = wait("", func() bool { return stats().Learned >= flows }, lost); learned || stats().Learned == before {
				break
			}
			before = stats().Learned
		}
	}
	took := time.Since(start)
	if s := stats(); s.Learned != flows || s.Flows != flows || s.Refused != 0 || s.Evicted != 0 {
		t.Errorf("after %d flows: %+v", flows, s)
	}
	t.Logf("%d flows learned in %v, %.0f a second, in %d rounds", flows, took.Round(time.Millisecond), flows/took.Seconds(), rounds)
}
