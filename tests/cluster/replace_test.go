package cluster

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// TestReplaced: a member that lost its disk is replaced by one with an empty one, under load. What begins
// with an empty disk before that ends by itself. The new member counts: with it and without another
// one changes are acknowledged.
func TestReplaced(t *testing.T) {
	c := newTrio(t, false)
	w := newWork(c)
	w.await(t, 20)
	leader := c.leader()
	lost := c.nodes[(leader.index()+1)%members]
	replace := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := pb.NewStateServiceClient(leader.conn).ReplaceMember(ctx, &pb.ReplaceMemberRequest{Name: lost.name}, grpc.WaitForReady(true))
		return err
	}
	if err := replace(); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "is not lost") {
		t.Errorf("a member that lives was replaced: %v", err)
	}
	lost.kill()
	if err := os.RemoveAll(lost.state); err != nil {
		t.Fatal(err)
	}
	c.start(lost)
	<-lost.done
	if !strings.Contains(lost.log.String(), "has already been bootstrapped") {
		t.Errorf("the log of a member that has lost its disk: %s", &lost.log)
	}
	if err := os.RemoveAll(lost.state); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := replace()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if err := replace(); err != nil {
		t.Errorf("asked twice: %v", err)
	}
	c.start(lost)
	w.await(t, 20)
	// It stands by once it has what the others have.
	for end := time.Now().Add(time.Minute); c.ask(lost) == ""; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new member does not answer")
		}
	}
	other := c.nodes[(leader.index()+2)%members]
	other.signal(syscall.SIGSTOP)
	w.await(t, 50)
	other.signal(syscall.SIGCONT)
	w.stop()
	if err := w.verify(); err != nil {
		t.Error(err)
	}
	if _, _, err := c.check(); err != nil {
		t.Error(err)
	}
}
