package cluster

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/serving/northbound"
	"github.com/headgate/headgate/tests/lag"
)

// TestStandbysAnswer: while the leader is frozen, the followers report what was acknowledged earlier, and the one
// that does not become leader does so by itself. Without a majority, no member returns data that may be out of
// date.
func TestStandbysAnswer(t *testing.T) {
	c := newTrio(t, false)
	w := newWork(c)
	w.await(t, 20)
	w.stop()
	leader := c.leader()
	leader.signal(syscall.SIGSTOP)
	others := []*node{c.nodes[(leader.index()+1)%members], c.nodes[(leader.index()+2)%members]}
	history := func(n *node) (by string, notes map[string]bool, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var header metadata.MD
		r, err := pb.NewFabricServiceClient(n.conn).ListHistory(ctx, &pb.ListHistoryRequest{}, grpc.Header(&header))
		notes = map[string]bool{}
		for _, e := range r.GetConfigs() {
			notes[e.GetWhy()] = true
		}
		return strings.Join(header.Get(northbound.AnsweredBy), ","), notes, err
	}
	// On a busy machine leadership moves between the calls, so each call may have been the leader's to answer.
	lag.Await(t, "an answer of a member that stands by", func() (alone bool) {
		for _, n := range others {
			by, notes, err := history(n)
			for end := time.Now().Add(time.Minute); status.Code(err) == codes.Unavailable && time.Now().Before(end); by, notes, err = history(n) {
				time.Sleep(20 * time.Millisecond) // etcd elects, or this member becomes leader
			}
			if err != nil {
				t.Fatalf("%s: %v", n.name, err)
			}
			for note := range w.applied {
				if !notes[note] {
					t.Errorf("%s does not have the configuration %q, which was acknowledged", n.name, note)
				}
			}
			alone = alone || by == n.name
		}
		return alone
	})
	others[0].kill()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		by, _, err := history(others[1])
		if status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "ListHistory: it is answered from the cluster's state") {
			break
		}
		// The old leader continues until its lease ends.
		if err == nil && by != "" || time.Now().After(end) {
			t.Fatalf("without a majority: %q answers, %v", by, err)
		}
	}
	leader.signal(syscall.SIGCONT)
	w = newWork(c)
	w.await(t, 20)
	w.stop()
}
