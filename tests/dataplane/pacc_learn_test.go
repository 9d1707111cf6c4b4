package dataplane

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/pacc"
	"github.com/headgate/headgate/tests/dataplane/embedded"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// TestPaccLearningRateEmbedded logs how many new flows a second get into the table, over
// P4Runtime and inside the switch.
func TestPaccLearningRateEmbedded(t *testing.T) {
	for _, at := range []config.PACCPlace{config.AtController, config.AtSwitch} {
		t.Run(string(at), func(t *testing.T) {
			s, err := embedded.Start()
			if err != nil {
				t.Fatal(err)
			}
			learnMany(t, s, fmt.Sprintf(paccFabric, config.Embedded, at), func() (pacc.Stats, bool) {
				st, _, ok := s.PACC()
				return st, ok
			})
		})
	}
}

func TestPaccLearningRateBMv2(t *testing.T) {
	needBMv2(t)
	learnMany(t, startBMv2(t), fmt.Sprintf(paccFabric, config.BMv2, config.AtController), nil)
}

// learnMany sends a packet of each of many flows, again where a digest was lost, until the
// table has them all. inside reads the loop of the switch itself.
func learnMany(t *testing.T, tg target.Target, yaml string, inside func() (pacc.Stats, bool)) {
	const flows = 2000
	const lost = 3 * time.Second // without progress: far longer than a slow machine takes for a write
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	must(t, tg.Shape(2, target.Shape{Depth: 2 * flows}))
	c := startController(t, tg, strings.Replace(yaml, "enabled: true", "enabled: true, ageing: 600s", 1))
	stats := func() pacc.Stats {
		if c.Config().PACC.At == config.AtSwitch {
			s, _ := inside()
			return s
		}
		if p := c.Switches()[0].PACC; p != nil {
			return p.Stats
		}
		return pacc.Stats{}
	}
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
