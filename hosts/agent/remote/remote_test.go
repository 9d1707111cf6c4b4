package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/hosts/law"
	"github.com/headgate/headgate/hosts/law/none"
	"github.com/headgate/headgate/hosts/transport"
	"github.com/headgate/headgate/int/maxqd"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/units"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeController answers Attach with a function of the test.
type fakeController struct {
	headgatev1.UnimplementedHostServiceServer
	attach func(grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error
}

func (f *fakeController) Attach(s grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error {
	return f.attach(s)
}

func serve(t *testing.T, attach func(grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error) headgatev1.HostServiceClient {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	srv := grpc.NewServer()
	headgatev1.RegisterHostServiceServer(srv, &fakeController{attach: attach})
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(lis) })
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		srv.Stop()
		wg.Wait()
	})
	return headgatev1.NewHostServiceClient(conn)
}

// owned is an agent with one flow, behind a lock.
func owned(t testing.TB) (func(context.Context, func(*agent.Agent, units.Time)) error, agent.FlowKey) {
	t.Helper()
	unit, err := maxqd.NewUnit(units.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	l, err := none.New(units.Gbps, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Config{
		Name: "h1", IP: netip.MustParseAddr("10.0.1.1"), Rate: units.Gbps, Unit: unit,
		NewLaw: func(agent.FlowSpec) (law.Law, error) { return l, nil },
	}, func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	key, err := a.StartFlow(0, agent.FlowSpec{Dst: netip.MustParseAddr("10.0.2.1"), SrcPort: 50000, Weight: 2, App: "search"})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	now := units.Time(0)
	return func(ctx context.Context, fn func(*agent.Agent, units.Time)) error {
		mu.Lock()
		defer mu.Unlock()
		now += units.Second
		fn(a, now)
		return ctx.Err()
	}, key
}

func command(k agent.FlowKey, w float64) *headgatev1.HostCommand {
	return &headgatev1.HostCommand{Weight: &headgatev1.FlowWeight{Weight: w, Flow: &headgatev1.FlowKey{
		SrcIpv4: k.Src.String(), DstIpv4: k.Dst.String(), SrcPort: uint32(k.SrcPort), DstPort: uint32(k.DstPort),
	}}}
}

func TestReportsAndObeys(t *testing.T) {
	began := time.Now().Round(0)
	do, key := owned(t)
	later := key
	later.SrcPort = 50001
	seen := make(chan *headgatev1.HostReport)
	client := serve(t, func(s grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error {
		for i := 0; ; i++ {
			r, err := s.Recv()
			if err != nil {
				return err
			}
			if i == 0 {
				for _, c := range []*headgatev1.HostCommand{{}, command(key, math.NaN()), command(key, 5), command(later, 7)} {
					if err := s.Send(c); err != nil {
						return err
					}
				}
			}
			select {
			case seen <- r:
			case <-s.Context().Done():
				return s.Context().Err()
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := Run(ctx, client, Options{Host: "h1", Do: DoFrom(do), Interval: 5 * time.Millisecond}); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	defer wg.Wait()
	defer cancel()

	first := <-seen
	if first.Host != "h1" || len(first.Flows) != 1 {
		t.Fatalf("first report %v", first)
	}
	if at := first.GetSent().AsTime(); at.After(time.Now()) || at.Before(began) {
		t.Errorf("sent at %v, by a clock between %v and now", at, began)
	}
	f := first.Flows[0]
	if f.Flow.SrcIpv4 != "10.0.1.1" || f.Flow.DstIpv4 != "10.0.2.1" || f.Flow.SrcPort != 50000 || f.Flow.DstPort != maxqd.Port || f.Weight != 2 || f.Application != "search" {
		t.Errorf("first report %v", f)
	}
	for r := range seen {
		if r.Flows[0].Weight == 5 {
			break
		}
	}
	// A weight that arrives before its flow is kept until the flow starts.
	if err := do(ctx, func(a *agent.Agent, now units.Time) {
		if _, err := a.StartFlow(now, agent.FlowSpec{Dst: key.Dst, SrcPort: later.SrcPort}); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for r := range seen {
		if len(r.Flows) == 2 && r.Flows[1].Weight == 7 {
			break
		}
	}
}

// A refused flow is held, and sends again after it is granted.
func TestRefusedFlowIsHeld(t *testing.T) {
	do, key := owned(t)
	refusal := command(key, 0)
	refusal.Refused = "over budget"
	step := make(chan struct{})
	client := serve(t, func(s grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error {
		for _, c := range []*headgatev1.HostCommand{refusal, command(key, 3)} {
			if _, err := s.Recv(); err != nil {
				return err
			}
			if err := s.Send(c); err != nil {
				return err
			}
			<-step
		}
		<-s.Context().Done()
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- Run(ctx, client, Options{Host: "h1", Do: DoFrom(do), Interval: time.Millisecond}) }()
	// sends reports whether the flow sends packets when time passes.
	sends := func() (sends bool) {
		_ = do(ctx, func(a *agent.Agent, now units.Time) {
			before := a.Stats().DataSent
			a.Wake(now)
			sends = a.Stats().DataSent > before
		})
		return sends
	}
	eventually(t, "the refused flow still sends", func() bool { return !sends() })
	close(step)
	eventually(t, "the granted flow does not send", sends)
	cancel()
	<-done
}

func eventually(t *testing.T, complaint string, ok func() bool) {
	t.Helper()
	lag.Await(t, complaint, ok)
}

func TestAttachesAgain(t *testing.T) {
	do, key := owned(t)
	var mu sync.Mutex
	attempts := 0
	obeyed := make(chan struct{})
	client := serve(t, func(s grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error {
		mu.Lock()
		attempts++
		n := attempts
		mu.Unlock()
		if n < 4 {
			return status.Error(codes.Unavailable, "not yet")
		}
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(command(key, 9)); err != nil {
			return err
		}
		for {
			r, err := s.Recv()
			if err != nil {
				return err
			}
			if r.Flows[0].Weight == 9 {
				close(obeyed)
				<-s.Context().Done()
				return s.Context().Err()
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = Run(ctx, client, Options{Host: "h1", Do: DoFrom(do), Interval: 2 * time.Millisecond, MinBackoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond})
	})
	<-obeyed
	cancel()
	wg.Wait()
}

func TestWire(t *testing.T) {
	key := agent.FlowKey{Src: netip.MustParseAddr("10.0.1.1"), Dst: netip.MustParseAddr("10.0.2.1"), SrcPort: 1, DstPort: 2}
	given := map[agent.FlowKey]*headgatev1.Channel{}
	r := toWire("h", []agent.FlowReport{
		{Key: key, SenderStats: transport.SenderStats{Acked: 3000, MaxQD: 5 * units.Microsecond, SRTT: units.Millisecond, Retransmits: 4}},
		{Key: key, Finished: 1},
	}, [4]agent.Completions{1: {Flows: 3, FCT: 70, Slowdown: 4.5}, 3: {Flows: 1}}, map[agent.FlowKey]units.Bytes{key: 1000}, given, units.Millisecond)
	if len(r.Flows) != 1 {
		t.Fatalf("report %v", r)
	}
	if f := r.Flows[0]; f.RateBps != 16_000_000 || f.AckedBytes != 3000 || f.MaxQd.AsDuration() != 5000 || f.Rtt.AsDuration() != 1_000_000 || f.Retransmits != 4 {
		t.Errorf("report %v", f)
	}
	ended := ""
	for _, c := range r.Completions {
		ended += fmt.Sprintf("%d-%d: %d %d %g; ", c.FromBytes, c.BelowBytes, c.Flows, headgatev1.Nanoseconds(c.Fct), c.Slowdown)
	}
	if want := "10000-100000: 3 70 4.5; 1000000-0: 1 0 0; "; ended != want {
		t.Errorf("completions %q, want %q", ended, want)
	}
	for want, change := range map[string]func(*headgatev1.FlowWeight){
		"src_ipv4":      func(w *headgatev1.FlowWeight) { w.Flow.SrcIpv4 = "x" },
		"dst_ipv4":      func(w *headgatev1.FlowWeight) { w.Flow.DstIpv4 = "" },
		"src_port 0":    func(w *headgatev1.FlowWeight) { w.Flow.SrcPort = 0 },
		"src_port 7000": func(w *headgatev1.FlowWeight) { w.Flow.SrcPort = 70000 },
		"dst_port":      func(w *headgatev1.FlowWeight) { w.Flow.DstPort = 70000 },
		"weight -1":     func(w *headgatev1.FlowWeight) { w.Weight = -1 },
	} {
		w := command(key, 1).Weight
		change(w)
		if _, _, err := fromWire(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	w := command(key, 2).Weight
	w.Flow.DstPort = 0
	if got, weight, err := fromWire(w); err != nil || got.DstPort != maxqd.Port || weight != 2 {
		t.Errorf("default port: %v, %v, %v", got, weight, err)
	}
}

// The callback gets the fabric's parameters; an error does not end the stream.
func TestParametersAreAdopted(t *testing.T) {
	do, key := owned(t)
	client := serve(t, func(s grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error {
		first := &headgatev1.HostCommand{Parameters: &headgatev1.HostParameters{Parameters: []*headgatev1.HostParameter{{Law: "l", Name: "n", Value: "v"}}}}
		for _, c := range []*headgatev1.HostCommand{first, command(key, 5)} {
			if err := s.Send(c); err != nil {
				return err
			}
		}
		<-s.Context().Done()
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan []*headgatev1.HostParameter, 1)
	done := make(chan error)
	go func() {
		done <- Run(ctx, client, Options{Host: "h1", Do: DoFrom(do), Interval: time.Millisecond, Adopt: func(_ context.Context, p []*headgatev1.HostParameter) error {
			got <- p
			return errors.New("refused")
		}})
	}()
	if p := <-got; len(p) != 1 || p[0].GetLaw() != "l" || p[0].GetName() != "n" || p[0].GetValue() != "v" {
		t.Errorf("parameters %v", p)
	}
	eventually(t, "the weight behind the parameters is not obeyed", func() bool {
		var w float64
		_ = do(ctx, func(a *agent.Agent, _ units.Time) { w = a.Report()[0].Weight })
		return w == 5
	})
	cancel()
	<-done
}

// A host that is not in the controller's fabric ends. A host that was in it before continues,
// because it may be added again.
func TestRefusedHost(t *testing.T) {
	do, _ := owned(t)
	refusal := status.Error(codes.InvalidArgument, "no such host")
	client := serve(t, func(s grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error { return refusal })
	if err := Run(t.Context(), client, Options{Host: "h9", Do: DoFrom(do)}); err == nil || !strings.Contains(err.Error(), `the controller refuses "h9": no such host`) {
		t.Errorf("Run: %v", err)
	}
	var attempts atomic.Int32
	client = serve(t, func(s grpc.BidiStreamingServer[headgatev1.HostReport, headgatev1.HostCommand]) error {
		if attempts.Add(1) > 1 {
			return refusal
		}
		for range 3 {
			if _, err := s.Recv(); err != nil {
				return err
			}
		}
		return status.Error(codes.Unavailable, "restarting")
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- Run(ctx, client, Options{Host: "h1", Do: DoFrom(do), Interval: time.Millisecond, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	}()
	eventually(t, "the host does not attach again", func() bool { return attempts.Load() > 3 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}
