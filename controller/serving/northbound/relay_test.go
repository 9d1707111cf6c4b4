package northbound

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
)

// standIn is a leader that answers every call with an empty message, and records it.
type standIn struct {
	address string
	mu      sync.Mutex
	asked   []string
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	l := &standIn{}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(in)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asked = append(l.asked, method)
		return in.SendMsg(&raw{})
	}))
	l.address = serveOn(t, func(ctx context.Context, lis net.Listener) error {
		return serve(ctx, s, func() {}, 0, []net.Listener{lis})
	})
	return l
}

// took returns the methods called since the last time.
func (l *standIn) took() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.asked
	l.asked = nil
	return list
}

// serveOn serves on a loopback address until the test ends.
func serveOn(t *testing.T, run func(context.Context, net.Listener) error) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, lis) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

// asking calls a method of a relay with an empty request, and returns the member that answered.
func asking(t *testing.T, o RelayOptions, method string) (by string, err error) {
	t.Helper()
	r := NewRelay(o)
	conn, err := grpc.NewClient(serveOn(t, func(ctx context.Context, lis net.Listener) error { return r.Serve(ctx, lis) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendMsg(&raw{}); err != nil && !errors.Is(err, io.EOF) { // RecvMsg returns the reason of its end
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var answer raw
	err = s.RecvMsg(&answer)
	if header, _ := s.Header(); len(header.Get(AnsweredBy)) == 1 {
		by = header.Get(AnsweredBy)[0]
	}
	return by, err
}

// TestStandingBy: a follower either answers a method itself or passes it to the leader; each method is in
// one of the two groups. Without a leader, the second group fails with an error that says so.
func TestStandingBy(t *testing.T) {
	leader := newStandIn(t)
	log := audit.New(audit.Options{})
	state := func(role authz.Role) func(context.Context) (*FollowerState, error) {
		return func(context.Context) (*FollowerState, error) {
			return &FollowerState{
				Authorizer: authz.New(authz.Options{Loopback: role}), History: history.New(nil, nil), Fabric: func() *pb.GetFabricResponse { return &pb.GetFabricResponse{} },
				Weights: func() *weights.Registry { return weights.New(weights.Options{}) }, Audit: func() *audit.Log { return log },
				Leader:     func(context.Context) (string, error) { return "", nil },
				Priorities: func() (*priority.Registry, error) { return priority.New(nil), nil },
			}, nil
		}
	}
	broken := func(context.Context) (*FollowerState, error) { return nil, errors.New("no majority of etcd") }
	none := func(context.Context) (*FollowerState, error) { return nil, nil }
	never := make(chan struct{})
	leads := func() (string, <-chan struct{}) { return leader.address, never }
	nobody := func() (string, <-chan struct{}) { return "", never }
	services := New(Options{Backend: &backend{}, Weights: weights.New(weights.Options{}), Audit: log, Authorizer: authz.New(authz.Options{})}).grpc.GetServiceInfo()
	count := 0
	for name, service := range services {
		if name == "grpc.health.v1.Health" { // of the process
			continue
		}
		for _, m := range service.Methods {
			count++
			method := "/" + name + "/" + m.Name
			t.Run(m.Name, func(t *testing.T) {
				_, here := followerCalls[method]
				why := authz.MethodOf(method).Leader
				if !authz.Known(method) || here == (why != "") {
					t.Fatalf("%s must be one of followerCalls, or say in authz's table why only the leader answers: it does both, or neither", method)
				}
				for _, c := range []struct {
					what   string
					leader func() (string, <-chan struct{})
					shared func(context.Context) (*FollowerState, error)
					by     string   // the member that answers, empty for the leader
					want   []string // of the error, nil for none
				}{
					{"somebody leads", leads, state(authz.Admin), map[bool]string{true: "c2"}[here && !authz.MethodOf(method).LeaderFirst], nil},
					{"the caller has no role here", leads, state(""), "", nil},
					{"the state cannot be read here", leads, broken, "", nil},
					{"there is no state yet", leads, none, "", nil},
					{"nobody leads", nobody, state(authz.Admin), map[bool]string{true: "c2"}[here], map[bool][]string{false: {m.Name, why, "no controller of the cluster has been leading"}}[here]},
					{"neither leader nor state", nobody, broken, "", []string{m.Name, map[bool]string{true: "no majority of etcd", false: why}[here]}},
				} {
					by, err := asking(t, RelayOptions{Leader: c.leader, Creds: insecure.NewCredentials(), Member: "c2", State: c.shared, Wait: time.Millisecond, Log: slog.New(slog.DiscardHandler)}, method)
					asked := leader.took()
					if c.want == nil && (err != nil || by != c.by || slices.Contains(asked, method) == (by != "")) {
						t.Errorf("%s: %q answers and the leader was asked %v, error %v, want %q", c.what, by, asked, err, c.by)
					}
					if c.want != nil && status.Code(err) != codes.Unavailable {
						t.Errorf("%s: error %v, want UNAVAILABLE", c.what, err)
					}
					for _, w := range c.want {
						if !strings.Contains(err.Error(), w) {
							t.Errorf("%s: error %v, want %q in it", c.what, err, w)
						}
					}
				}
			})
		}
	}
	if count < len(followerCalls)+20 {
		t.Errorf("only %d methods were walked", count)
	}
}

// TestLeaderThatDoesNotAnswer: a call to a frozen leader ends when another member becomes leader.
func TestLeaderThatDoesNotAnswer(t *testing.T) {
	frozen, err := net.Listen("tcp", "127.0.0.1:0") // accepts the connection and never reads from it
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	next := newStandIn(t)
	var mu sync.Mutex
	address, changed := frozen.Addr().String(), make(chan struct{})
	who := func() (string, <-chan struct{}) {
		mu.Lock()
		defer mu.Unlock()
		return address, changed
	}
	go func() { // the call has looked up the leader once its connection exists
		c, err := frozen.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { c.Close() })
		mu.Lock()
		defer mu.Unlock()
		address = next.address
		close(changed)
		changed = make(chan struct{})
	}()
	_, err = asking(t, RelayOptions{Leader: who, Creds: insecure.NewCredentials(), Log: slog.New(slog.DiscardHandler)}, "/headgate.v1.FabricService/SetLink")
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "outcome unknown") || !strings.Contains(err.Error(), "another controller has become leader") {
		t.Error(err)
	}
}

// TestRelayThatEnds: a member becomes leader, or stops, while it relays a call. The caller then does not
// see its call as cancelled by itself.
func TestRelayThatEnds(t *testing.T) {
	leader, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer leader.Close()
	r := NewRelay(RelayOptions{
		Leader: func() (string, <-chan struct{}) { return leader.Addr().String(), nil },
		Creds:  insecure.NewCredentials(), Log: slog.New(slog.DiscardHandler),
	})
	defer r.hangUp()
	go func() { // the call waits for its connection, which ends before a leader exists
		if c, err := leader.Accept(); err == nil {
			defer c.Close()
			r.hangUp()
		}
	}()
	if _, err := r.ask(t.Context(), "/headgate.v1.FabricService/SetLink", nil); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "outcome unknown") || !strings.Contains(err.Error(), "has become leader, or is stopping") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.ask(ended, "/headgate.v1.FabricService/SetLink", nil); status.Code(err) != codes.Canceled {
		t.Errorf("a call that its caller cancelled: %v", err)
	}
}
