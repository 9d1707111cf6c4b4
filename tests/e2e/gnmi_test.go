package e2e

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/tests/race"
)

// element is an element of a path, with a key if two more words are given.
func element(name string, key ...string) *gpb.PathElem {
	e := &gpb.PathElem{Name: name}
	if len(key) > 0 {
		e.Key = map[string]string{key[0]: key[1]}
	}
	return e
}

// seen holds the values that a stream has sent, by the last element of their paths.
type seen struct {
	mu sync.Mutex
	by map[string][]*gpb.TypedValue
}

func (s *seen) of(name string) []*gpb.TypedValue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[name]
}

// watch follows a port of a switch by gNMI until ctx ends.
func watch(ctx context.Context, t *testing.T, wg *sync.WaitGroup, address, target, port string) *seen {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	state := []*gpb.PathElem{element("interfaces"), element("interface", "name", port), element("state")}
	request := &gpb.SubscribeRequest{Request: &gpb.SubscribeRequest_Subscribe{Subscribe: &gpb.SubscriptionList{
		Prefix: &gpb.Path{Target: target, Elem: state}, Encoding: gpb.Encoding_PROTO,
		Subscription: []*gpb.Subscription{
			{Path: &gpb.Path{Elem: []*gpb.PathElem{element("*")}}, Mode: gpb.SubscriptionMode_ON_CHANGE},
			{Path: &gpb.Path{Elem: []*gpb.PathElem{element("counters"), element("out-octets")}}, Mode: gpb.SubscriptionMode_SAMPLE, SampleInterval: uint64(200 * time.Millisecond)},
		},
	}}}
	got := &seen{by: map[string][]*gpb.TypedValue{}}
	wg.Go(func() {
		stream, err := gpb.NewGNMIClient(conn).Subscribe(ctx, grpc.WaitForReady(true))
		if err == nil {
			err = stream.Send(request)
		}
		for err == nil || err == io.EOF { // Recv returns the reason why the stream ended
			var r *gpb.SubscribeResponse
			if r, err = stream.Recv(); err != nil {
				break
			}
			got.mu.Lock()
			for _, u := range r.GetUpdate().GetUpdate() {
				elems := u.GetPath().GetElem()
				name := elems[len(elems)-1].GetName()
				got.by[name] = append(got.by[name], u.GetVal())
			}
			got.mu.Unlock()
		}
		if ctx.Err() == nil && err != nil {
			t.Logf("%s: the stream of %s ended: %v", address, target, err)
		}
	})
	return got
}

// TestGNMI: a gNMI client sees traffic in the counters of the fabric's switch and of the embedded switch itself,
// and sees a link fail.
func TestGNMI(t *testing.T) {
	race.SkipRealTime(t)
	cfg := pair(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	fabric := watch(ctx, t, &wg, cfg.Controller.Listen, "leaf1", "3")
	embedded := watch(ctx, t, &wg, cfg.Switches[0].Address, "leaf1", "3")
	shares := emulation.Shares("test", "test",
		emulation.Phase{Name: "a flow", Actions: []emulation.Action{start("A", "h1", "h4", 20001, 1)}},
		emulation.Phase{Name: "without the link", Actions: []emulation.Action{{Link: &emulation.LinkChange{A: "leaf1", B: "spine"}}}})
	if _, err := emulation.Play(ctx, emulation.Options{Scenario: shares, Config: cfg, For: 8 * time.Second, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*seen{"controller": fabric, "switch": embedded} {
		octets := s.of("out-octets")
		if n := len(octets); n < 2 || octets[n-1].GetUintVal() < octets[0].GetUintVal()+1e6 {
			t.Errorf("%s: out-octets %v, want 1 MB more at the end than at first", name, octets)
		}
	}
	for _, leaf := range []string{"oper-status", "admin-status"} {
		values := fabric.of(leaf)
		if n := len(values); n < 2 || values[n-1].GetStringVal() != "DOWN" {
			t.Errorf("%s: %v, want DOWN at the end, after something else", leaf, values)
		}
	}
}
