package cluster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// order gives a guest an order, and returns by how much its wall clock is ahead afterwards.
func (n *node) order(t *testing.T, text string) time.Duration {
	t.Helper()
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", ip(n.index()), guestOrders), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintln(conn, text)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	now, err := strconv.ParseInt(strings.TrimSpace(answer), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(time.Unix(0, now)).Round(time.Minute)
}

// TestClockStepped sets a running member's wall clock by an hour, while it leads and while it follows. The results
// for a leader whose clock is not set are a comparison: on a busy machine, leadership changes anyway.
func TestClockStepped(t *testing.T) {
	times, _ := strconv.Atoi(os.Getenv("HEADGATE_HA"))
	if times == 0 || os.Geteuid() != 0 {
		t.Skip("needs root and HEADGATE_HA=10, how often the clock goes forward and back: it takes some minutes")
	}
	if _, err := exec.LookPath(kernel); err != nil {
		t.Skipf("needs the Debian package %s: %v", kernelPackage, err)
	}
	c := newTrio(t, true, "c1")
	stepped := c.nodes[0]
	hour := []time.Duration{time.Hour, -time.Hour, -time.Hour, time.Hour}
	for _, p := range []struct {
		leads bool
		steps []time.Duration
	}{{true, make([]time.Duration, len(hour))}, {true, hour}, {false, hour}} {
		c.lead(stepped, p.leads)
		w := newWork(c)
		w.await(t, 20)
		time.Sleep(2 * time.Second) // until the present leader has written
		w.stop()
		_, before, _ := c.check()
		acks, longest := 0, map[time.Duration]time.Duration{}
		for round := range times {
			ahead := time.Duration(0)
			for _, step := range p.steps {
				w := newWork(c)
				w.await(t, 20)
				time.Sleep(time.Duration(round) * 37 * time.Millisecond) // so that it comes at any moment of an apply
				ahead += step
				if got := stepped.order(t, step.String()); got != ahead {
					t.Fatalf("the wall clock is ahead by %v, want %v", got, ahead)
				}
				time.Sleep(3 * time.Second) // longer than a lease
				w.await(t, 20)
				longest[step] = max(longest[step], w.stop().Round(time.Millisecond))
				if err := w.verify(); err != nil {
					t.Errorf("%s was set by %v: %v", stepped.name, step, err)
				}
				if _, _, err := c.check(); err != nil {
					t.Errorf("%s was set by %v: %v", stepped.name, step, err)
				}
				acks += w.count()
			}
			if t.Failed() {
				return
			}
		}
		_, after, _ := c.check()
		t.Logf("it leads: %v; %d steps: %d changes acknowledged, none lost, none late; %d other leaders wrote; the longest time without an acknowledgement by step: %v", p.leads, times*len(p.steps), acks, after-before, longest)
	}
	c.lead(stepped, true)
	c.confirmed(stepped)
	stepped.kill()
	for line := range strings.Lines(stepped.log.String()) {
		if strings.Contains(line, "lead the cluster") || strings.Contains(line, "leads the cluster") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// lead makes a guest leader, or follower.
func (c *trio) lead(n *node, leads bool) {
	c.t.Helper()
	for end := time.Now().Add(2 * time.Minute); (c.leader() == n) != leads; {
		l := c.leader()
		if time.Now().After(end) {
			c.t.Fatalf("%s leads, for two minutes", l.name)
		}
		if l.tap != "" {
			l.order(c.t, "again")
		} else {
			ended.happens(c, l)
			ended.mend(c, l)
		}
		time.Sleep(5 * time.Second) // longer than a lease
	}
}

// confirmed checks that a configuration waits for confirmation for the right time while its leader's clock is set.
func (c *trio) confirmed(leader *node) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	fabric := pb.NewFabricServiceClient(leader.conn)
	r, err := fabric.ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: fmt.Sprintf(c.yaml, 99), File: "fabric.yaml", Confirm: durationpb.New(10 * time.Minute)})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, step := range []time.Duration{time.Hour, -2 * time.Hour, time.Hour} {
		leader.order(c.t, step.String())
		time.Sleep(2 * time.Second)
		list, err := fabric.ListHistory(ctx, &pb.ListHistoryRequest{})
		if err != nil {
			c.t.Fatal(err)
		}
		last := list.GetConfigs()[len(list.GetConfigs())-1]
		if last.GetGeneration() != r.GetGeneration() || last.GetConfirmUntil() == nil {
			c.t.Errorf("after %v generation %d is in force, and not %d, which waits to be confirmed", step, last.GetGeneration(), r.GetGeneration())
		}
	}
	if _, err := fabric.ConfirmConfig(ctx, &pb.ConfirmConfigRequest{Generation: r.GetGeneration()}); err != nil {
		c.t.Error(err)
	}
}
