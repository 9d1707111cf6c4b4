// Package cluster injects faults into three controllers while clients change weights and configurations at all of
// them. The leader is killed, frozen, asked to end, or cut off from the other members but not from the switches.
// Its disk fills up. It restarts with another uptime. A running member's wall clock is set. No acknowledged
// change may be lost, and no switch may accept a leader's write after a write of the next leader.
package cluster

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/cli"
)

// beHeadgate in the environment makes the test's binary the headgate command.
const beHeadgate = "HEADGATE_TEST_COMMAND"

func TestMain(m *testing.M) {
	switch member := os.Getenv(beGuest); {
	case os.Getenv(beKernel) != "":
		fmt.Println(becomeKernel(os.Args[1:]))
		os.Exit(1)
	case os.Getenv(beHeadgate) != "":
		if how := lies[os.Getenv(beLiar)]; how != nil {
			*how = true
		}
		os.Exit(cli.Main(cli.NewRoot(), os.Stderr))
	case member != "":
		fmt.Println(guest(member))
		_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	}
	os.Exit(m.Run())
}

// fault is a fault of the leader, and its repair after another member leads.
type fault struct {
	name    string
	happens func(c *trio, n *node)
	mend    func(c *trio, n *node)
	stays   bool // it may stay leader
}

var (
	killed = fault{"killed", func(_ *trio, n *node) { n.kill() }, func(c *trio, n *node) { c.start(n) }, false}
	frozen = fault{"frozen", func(_ *trio, n *node) { n.signal(syscall.SIGSTOP) }, func(_ *trio, n *node) { n.signal(syscall.SIGCONT) }, false}
	ended  = fault{"asked to end", func(_ *trio, n *node) { n.signal(syscall.SIGTERM) }, func(c *trio, n *node) { <-n.done; c.start(n) }, false}
	cut    = fault{"cut off", func(c *trio, n *node) { c.cut(n, true) }, func(c *trio, n *node) { c.cut(n, false) }, false}
	// After a restart, the clock that measures leases is an hour ahead; after the next one it is back.
	moved = fault{"killed, back with another uptime", func(_ *trio, n *node) { n.kill(); n.ahead = !n.ahead }, func(c *trio, n *node) { c.start(n) }, false}
	full  = fault{"out of disk", func(c *trio, n *node) { c.fill(n, true) }, func(c *trio, n *node) {
		c.fill(n, false)
		if n.ended() {
			c.start(n)
		}
	}, true}
)

// play injects a fault into the leader while changes are made, waits until changes are acknowledged again, and
// checks the acknowledged ones.
func (c *trio) play(f fault, busy time.Duration) (gap time.Duration, acks int) {
	c.t.Helper()
	w := newWork(c)
	w.await(c.t, 20)
	n := c.leader()
	_, terms, _ := c.check()
	time.Sleep(busy) // so that the fault comes at any moment of an apply
	f.happens(c, n)
	time.Sleep(time.Second) // calls in progress at the fault have ended
	w.await(c.t, 20)
	f.mend(c, n)
	w.await(c.t, 20)
	for end := time.Now().Add(time.Minute); !f.stays; time.Sleep(20 * time.Millisecond) {
		if _, now, _ := c.check(); now > terms {
			break
		}
		if time.Now().After(end) {
			c.t.Fatalf("the leader was %s: no switch took a write of another one within a minute", f.name)
		}
	}
	gap = w.stop()
	if err := w.verify(); err != nil {
		c.t.Errorf("the leader was %s: %v", f.name, err)
	}
	if _, _, err := c.check(); err != nil {
		c.t.Errorf("the leader was %s: %v", f.name, err)
	}
	if len(w.applied) == 0 {
		c.t.Errorf("the leader was %s: no configuration was applied in all that time", f.name)
	}
	return gap, w.count()
}

// TestLeaderEnds is the short form: the leader is asked to end, then the next one is killed.
func TestLeaderEnds(t *testing.T) {
	c := newTrio(t, false)
	for _, f := range []fault{ended, killed} {
		gap, acks := c.play(f, 0)
		t.Logf("%s: %d changes acknowledged, the longest time without one was %v", f.name, acks, gap.Round(time.Millisecond))
	}
}

// TestFaults plays every fault many times.
func TestFaults(t *testing.T) {
	times, _ := strconv.Atoi(os.Getenv("HEADGATE_HA"))
	if times == 0 || os.Geteuid() != 0 {
		t.Skip("needs root and HEADGATE_HA=10, how often each fault is played: it takes ten minutes")
	}
	c := newTrio(t, true)
	gaps, all := map[string][]time.Duration{}, 0
	faults := []fault{killed, frozen, cut, full, ended, moved}
	for round := range times {
		for _, f := range faults {
			gap, acks := c.play(f, time.Duration(round)*37*time.Millisecond)
			all += acks
			gaps[f.name] = append(gaps[f.name], gap)
			t.Logf("round %d, %s: %d changes acknowledged, the longest time without one was %v", round+1, f.name, acks, gap.Round(time.Millisecond))
			if t.Failed() {
				return
			}
		}
	}
	for _, f := range faults {
		list := gaps[f.name]
		slices.Sort(list)
		t.Logf("%-32s without an acknowledgement: least %5d, median %5d, most %5d ms", f.name, list[0].Milliseconds(), list[len(list)/2].Milliseconds(), list[len(list)-1].Milliseconds())
	}
	count, terms, _ := c.check()
	t.Logf("%d changes were acknowledged, none lost; the switches took %d writes of %d leaders, none of them late", all, count, terms)
}
