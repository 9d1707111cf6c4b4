package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// TestReplaced: a member that lost its disk is replaced, under load, by one with an empty disk. A member that
// starts with an empty disk before that ends by itself. The new member counts: changes are acknowledged with it
// and without another one.
func TestReplaced(t *testing.T) {
	c := newTrio(t, false)
	w := newWork(c)
	w.await(t, 20)
	leader := c.leader()
	lost := c.nodes[(leader.index()+1)%members]
	// On a slow machine a lease may end, and the leader change, at any time.
	replace := func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for {
			_, err = pb.NewStateServiceClient(c.leader().conn).ReplaceMember(ctx, &pb.ReplaceMemberRequest{Name: lost.name}, grpc.WaitForReady(true))
			if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
		}
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
	// It is a follower once it has the others' data.
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

// TestZombie: a member that was replaced while it was cut off ends, with the reason, once it reaches the others. It
// ends again if it is restarted with its old data, and never answers from that data.
func TestZombie(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	c := newTrio(t, true)
	w := newWork(c)
	w.await(t, 20)
	leader := c.leader()
	zombie := c.nodes[(leader.index()+1)%members]
	c.cut(zombie, true)
	replace := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		_, err := pb.NewStateServiceClient(leader.conn).ReplaceMember(ctx, &pb.ReplaceMemberRequest{Name: zombie.name}, grpc.WaitForReady(true))
		return err
	}
	asked := metadata.AppendToOutgoingContext(t.Context(), pb.RequestIDKey, "zombie")
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := replace(asked)
		if err == nil {
			break
		}
		if status.Code(err) != codes.Unavailable || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	w.await(t, 20)
	if name := c.ask(zombie); name != "" {
		t.Errorf("a member that is cut off and no member any more says that %s leads", name)
	}
	c.cut(zombie, false)
	for _, when := range []string{"", "started again"} {
		if when != "" {
			c.start(zombie)
		}
		select {
		case <-zombie.done:
		case <-time.After(20 * time.Second):
			t.Fatalf("the zombie runs on %s; it says that %q leads", when, c.ask(zombie))
		}
		if text := zombie.log.String(); !strings.Contains(text, "member "+zombie.name+" was removed from the cluster") {
			t.Errorf("the zombie ended %s without a reason: %s", when, text)
		}
		zombie.log.Reset()
	}
	entries, err := os.ReadDir(zombie.state)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(zombie.state, e.Name())))
	}
	if err != nil {
		t.Fatal(err)
	}
	c.start(zombie)
	for end := time.Now().Add(time.Minute); c.ask(zombie) == ""; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new member does not answer")
		}
	}
	// A late copy of the request replaces nobody, although the member is unreachable now.
	c.cut(zombie, true)
	if err := replace(asked); err != nil {
		t.Error(err)
	}
	c.cut(zombie, false)
	w.await(t, 20)
	for end := time.Now().Add(time.Minute); c.ask(zombie) == ""; time.Sleep(20 * time.Millisecond) {
		if zombie.ended() || time.Now().After(end) {
			t.Fatal("a late copy of the request replaced the new member")
		}
	}
	w.stop()
	if err := w.verify(); err != nil {
		t.Error(err)
	}
	if _, _, err := c.check(); err != nil {
		t.Error(err)
	}
}
