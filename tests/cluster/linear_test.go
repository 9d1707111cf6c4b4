package cluster

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/state/lie"
	"github.com/headgate/headgate/tests/lag"
)

// beLiar in the environment makes members lie, in the way that it names.
const beLiar = "HEADGATE_TEST_LIE"

// lies are the ways in which a member can lie.
var lies = map[string]*bool{"early": &lie.Early, "stale": &lie.Stale, "late": &lie.Late}

// strike is a fault of one or more members, and its repair. Faults of disks and networks need namespaces.
func (c *trio) strike(r *rand.Rand) (name string, mend func()) {
	leader := c.leader()
	one := c.nodes[r.IntN(members)]
	if r.IntN(3) > 0 { // most often the leader
		one = leader
	}
	who := one.name
	if one == leader {
		who = "the leader"
	}
	kinds := 3
	if len(c.spaces) > 0 {
		kinds = 6
	}
	switch r.IntN(kinds) {
	case 0:
		one.kill()
		return "kill -9 of " + who, func() { c.start(one) }
	case 1:
		one.signal(syscall.SIGSTOP)
		return "SIGSTOP of " + who, func() { one.signal(syscall.SIGCONT) }
	case 2:
		var others []*node
		for _, n := range c.nodes {
			if n != leader {
				others = append(others, n)
				n.signal(syscall.SIGSTOP)
			}
		}
		return "SIGSTOP of all but the leader", func() {
			for _, n := range others {
				n.signal(syscall.SIGCONT)
			}
		}
	case 3, 4:
		c.cut(one, true)
		return "partition of " + who, func() { c.cut(one, false) }
	default:
		c.fill(one, true)
		name := "full disk of " + who
		if r.IntN(2) == 0 { // etcd's log has room for a while; a start needs more
			name += " and a restart on it"
			one.kill()
			c.start(one)
		}
		return name, func() {
			c.fill(one, false)
			if one.ended() {
				c.start(one)
			}
		}
	}
}

// TestLinearizable is the short form: the leader is frozen for longer than its lease, then the next one is killed.
func TestLinearizable(t *testing.T) {
	c := newTrio(t, false)
	l := newLoad(t, c, 0)
	time.Sleep(time.Second)
	frozen := c.leader()
	frozen.signal(syscall.SIGSTOP)
	time.Sleep(4 * time.Second)
	frozen.signal(syscall.SIGCONT)
	time.Sleep(500 * time.Millisecond)
	killed := c.leader()
	killed.kill()
	time.Sleep(time.Second)
	c.start(killed)
	time.Sleep(time.Second)
	for _, f := range l.end(t, "") {
		t.Error(f)
	}
	t.Logf("%d calls of %d operations, %d of them again with the same id; %d outcomes unknown, %d not made; %d reads, %d without an answer",
		l.asked.Load(), l.h.Count(), l.again.Load(), l.unknown.Load(), l.notMade.Load(), l.reads.Load(), l.lost.Load())
}

// TestCheckerFinds: the checker detects lying members. They acknowledge a change a moment before it is made, or answer
// with an old read.
func TestCheckerFinds(t *testing.T) {
	const most = 20 // rounds of a second: on a slow machine few calls fall into a lie
	for _, how := range []string{"early", "stale"} {
		t.Run(how, func(t *testing.T) {
			t.Setenv(beLiar, how)
			c := newTrio(t, false)
			operations := 0
			for round := range most {
				l := newLoad(t, c, round)
				time.Sleep(time.Second)
				faults := l.end(t, "")
				if operations += l.h.Count(); len(faults) > 0 {
					t.Logf("%d operations, found: %s", operations, faults[0])
					return
				}
			}
			t.Errorf("%d operations of members that lie, and no fault was found", operations)
		})
	}
}

// TestThawedLeader: a leader that was frozen for longer than its lease gives no stale answer after it is thawed. With
// the lease check disabled it does.
func TestThawedLeader(t *testing.T) {
	if os.Getenv("HEADGATE_HA") == "" {
		t.Skip("needs HEADGATE_HA=10: it takes a minute")
	}
	for _, tc := range []struct {
		how   string
		stale bool
	}{{"honest", false}, {"late", true}} {
		t.Run(tc.how, func(t *testing.T) {
			t.Setenv(beLiar, tc.how)
			c := newTrio(t, false)
			stale, answers := 0, 0
			for range 3 {
				s, a := c.thaw(t)
				stale, answers = stale+s, answers+a
			}
			if (stale > 0) != tc.stale {
				t.Errorf("%d of %d answers were out of date", stale, answers)
			}
			t.Logf("%d of %d answers were out of date", stale, answers)
		})
	}
}

// thaw freezes the leader, lets another member lead and change something, and counts the old leader's answers that
// lack the change.
func (c *trio) thaw(t *testing.T) (stale, answers int) {
	t.Helper()
	l := &load{c: c, h: newHistory()}
	set := func(n *node, weight float64) {
		t.Helper()
		lag.Await(t, "a weight to be set", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), tryWait)
			defer cancel()
			_, err := pb.NewWeightServiceClient(n.conn).SetWeight(ctx, &pb.SetWeightRequest{
				Flow: &pb.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: l.port(0), DstPort: 50151}, Weight: weight, Application: "web",
			})
			return err == nil
		})
	}
	leader := c.leader()
	set(leader, 1)
	leader.signal(syscall.SIGSTOP)
	set(c.nodes[(leader.index()+1)%members], 2)
	var wg sync.WaitGroup
	var mu sync.Mutex
	over := time.Now().Add(4 * time.Second)
	for i := range 8 {
		wg.Go(func() {
			for time.Now().Before(over) {
				values, err := l.weights(t.Context(), leader, i%2 == 1)
				mu.Lock()
				if err == nil {
					answers++
					if values[0] != 2 {
						stale++
					}
				}
				mu.Unlock()
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	leader.signal(syscall.SIGCONT)
	wg.Wait()
	return stale, answers
}

// TestFrozenFollowers: a leader without followers reports a change as unknown if it does not know its outcome. The
// change is made once, however often it is requested.
func TestFrozenFollowers(t *testing.T) {
	if os.Getenv("HEADGATE_HA") == "" {
		t.Skip("needs HEADGATE_HA=10: it takes a quarter of a minute")
	}
	c := newTrio(t, false)
	leader := c.leader()
	set := func(n *node, id string, wait time.Duration) (*pb.AllocatePriorityResponse, error) {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), pb.RequestIDKey, id), wait)
		defer cancel()
		return pb.NewPriorityServiceClient(n.conn).AllocatePriority(ctx, &pb.AllocatePriorityRequest{Application: "a1"})
	}
	lag.Await(t, "a priority", func() bool { _, err := set(leader, "first", tryWait); return err == nil })
	for _, n := range c.nodes {
		if n != leader {
			n.signal(syscall.SIGSTOP)
		}
	}
	_, err := set(leader, "second", time.Minute)
	if status.Code(err) != codes.Unavailable || reason(err) != "OUTCOME_UNKNOWN" || !strings.Contains(err.Error(), "outcome unknown") || strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("the followers are frozen: %v", err)
	}
	for _, n := range c.nodes {
		if n != leader {
			n.signal(syscall.SIGCONT)
		}
	}
	for i := range 6 {
		lag.Await(t, "the outcome", func() bool {
			r, err := set(c.nodes[i%members], "second", tryWait)
			if err == nil && r.GetChannel().GetPriority() != 2 {
				t.Errorf("asked again: %v", r)
			}
			return err == nil
		})
	}
}

// TestRounds injects kills, freezes, partitions and full disks, one or two at a time, while clients use all members:
// three rounds for each of HEADGATE_HA.
func TestRounds(t *testing.T) {
	times, _ := strconv.Atoi(os.Getenv("HEADGATE_HA"))
	if times == 0 || os.Geteuid() != 0 {
		t.Skip("needs root and HEADGATE_HA=10, a third of the rounds: it takes ten minutes")
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("HEADGATE_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	folder := os.Getenv("HEADGATE_HISTORIES") // for pages of faulty histories
	r := rand.New(rand.NewPCG(seed, 0))
	c := newTrio(t, true)
	struck := map[string]int{}
	operations, asked, again, unknown, notMade, reads, lost, bad := 0, int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 0
	for round := range 3 * times {
		c.leader()
		l := newLoad(t, c, round)
		time.Sleep(time.Second)
		var did []string
		for range 2 {
			name, mend := c.strike(r)
			did = append(did, name)
			time.Sleep(500*time.Millisecond + time.Duration(r.IntN(4500))*time.Millisecond)
			mend()
			time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		}
		time.Sleep(time.Second)
		faults := l.end(t, folder)
		for _, f := range faults {
			t.Errorf("round %d, %s: %s", round+1, strings.Join(did, ", "), f)
		}
		if _, _, err := c.check(); err != nil {
			t.Errorf("round %d: %v", round+1, err)
		}
		bad += len(faults)
		for _, name := range did {
			struck[name]++
		}
		operations += l.h.Count()
		asked, again, unknown, notMade = asked+l.asked.Load(), again+l.again.Load(), unknown+l.unknown.Load(), notMade+l.notMade.Load()
		reads, lost = reads+l.reads.Load(), lost+l.lost.Load()
		t.Logf("round %d, %s: %d operations, %d changes asked for again, %d unknown, %d not made, %d faults", round+1, strings.Join(did, ", "), l.h.Count(), l.again.Load(), l.unknown.Load(), l.notMade.Load(), len(faults))
		if t.Failed() {
			break
		}
	}
	var all []string
	for name, n := range struck {
		all = append(all, fmt.Sprintf("%d × %s", n, name))
	}
	slices.Sort(all)
	t.Logf("seed %d: %s", seed, strings.Join(all, ", "))
	t.Logf("%d operations; %d calls for changes, %d of them again with the same id; %d outcomes stayed unknown, %d were not made; %d reads, %d without an answer; %d faults", operations, asked, again, unknown, notMade, reads, lost, bad)
}
