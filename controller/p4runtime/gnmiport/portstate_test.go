package gnmiport

import (
	"context"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/tests/switchtest"
	"github.com/headgate/headgate/units"
)

// ports holds the port states that a switch has reported.
type ports = map[uint32]pb.PortStatus_State

// following follows a switch's port states in the background.
type following struct {
	conn  *grpc.ClientConn
	calls atomic.Int32
	said  chan ports
	ended chan error
	stop  context.CancelFunc
}

func follow(t *testing.T, address string, n Numbers) *following {
	t.Helper()
	f := &following{said: make(chan ports, 100), ended: make(chan error, 1)}
	var err error
	f.conn, err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, m string, s grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			f.calls.Add(1)
			return s(ctx, d, c, m, o...)
		}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.stop = cancel
	var wg sync.WaitGroup
	wg.Go(func() { f.ended <- Follow(ctx, f.conn, n, func(p ports) { f.said <- p }) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = f.conn.Close()
	})
	return f
}

// until waits for a state.
func (f *following) until(t *testing.T, want ports) {
	t.Helper()
	var last ports
	for late := time.After(30 * time.Second); ; {
		select {
		case last = <-f.said:
			if maps.Equal(last, want) {
				return
			}
		case err := <-f.ended:
			t.Fatalf("it ended: %v", err)
		case <-late:
			t.Fatalf("the switch said %v, want %v", last, want)
		}
	}
}

// TestEmbedded: the embedded switch reports the state of its cables, also of cables that are cut
// later.
func TestEmbedded(t *testing.T) {
	loop := clock.NewLoop()
	s, err := softswitch.NewOnLoop(loop, softswitch.Config{Name: "s", DeviceID: 1, CPUPort: 510, Traffic: tm.Config{Queues: 8}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var p [4]*softswitch.Port
	for n := uint32(1); n <= 3; n++ {
		if p[n], err = s.AddPort(n, units.Gbps); err != nil {
			t.Fatal(err)
		}
	}
	cable, err := softswitch.Connect(loop, 0, p[1], p[2])
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.ServeGRPC(switchtest.Loopback(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, addr.String(), OpenConfig)
	f.until(t, ports{1: pb.PortStatus_STATE_UP, 2: pb.PortStatus_STATE_UP, 3: pb.PortStatus_STATE_DOWN})
	cable.SetUp(false)
	f.until(t, ports{1: pb.PortStatus_STATE_DOWN, 2: pb.PortStatus_STATE_DOWN, 3: pb.PortStatus_STATE_DOWN})
	cable.SetUp(true)
	f.until(t, ports{1: pb.PortStatus_STATE_UP, 2: pb.PortStatus_STATE_UP, 3: pb.PortStatus_STATE_DOWN})
	s.StopGRPC()
	if err := <-f.ended; err == nil {
		t.Error("it ended without a reason")
	}
}

// stratum imitates Stratum as in its sources of 2023: it sends the ifindex of all interfaces once, and
// changes of oper-status for one interface at a time. Interface names consist of slot and port.
type stratum struct {
	gpb.UnimplementedGNMIServer
	change chan *gpb.Notification
}

func update(name, leaf string, v *gpb.TypedValue) *gpb.Notification {
	return &gpb.Notification{Update: []*gpb.Update{{Path: state(name, leaf), Val: v}}}
}

func oper(name, is string) *gpb.Notification {
	return update(name, "oper-status", &gpb.TypedValue{Value: &gpb.TypedValue_StringVal{StringVal: is}})
}

func (s *stratum) Subscribe(stream gpb.GNMI_SubscribeServer) error {
	r, err := stream.Recv()
	if err != nil {
		return err
	}
	send := func(n *gpb.Notification) error {
		return stream.Send(&gpb.SubscribeResponse{Response: &gpb.SubscribeResponse_Update{Update: n}})
	}
	list := r.GetSubscribe()
	sync := &gpb.SubscribeResponse{Response: &gpb.SubscribeResponse_SyncResponse{SyncResponse: true}}
	if list.GetMode() == gpb.SubscriptionList_ONCE {
		for name, port := range map[string]uint64{"1/0": 132, "2/0": 140} {
			if err := send(update(name, "ifindex", &gpb.TypedValue{Value: &gpb.TypedValue_UintVal{UintVal: port}})); err != nil {
				return err
			}
		}
		return stream.Send(sync)
	}
	for _, sub := range list.GetSubscription() {
		name := sub.GetPath().GetElem()[1].GetKey()["name"]
		if name == "*" || sub.GetMode() != gpb.SubscriptionMode_ON_CHANGE || sub.GetPath().GetElem()[3].GetName() != "oper-status" {
			return status.Error(codes.Unimplemented, "unsupported path")
		}
		if err := send(oper(name, "UP")); err != nil {
			return err
		}
	}
	if err := stream.Send(sync); err != nil {
		return err
	}
	for n := range s.change {
		if err := send(n); err != nil {
			return err
		}
	}
	return nil
}

func serve(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	l, err := net.Listen("tcp", switchtest.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	register(s)
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { s.Stop(); wg.Wait() })
	return l.Addr().String()
}

// TestStratum: interface names are not port numbers, and states arrive one by one.
func TestStratum(t *testing.T) {
	s := &stratum{change: make(chan *gpb.Notification)}
	f := follow(t, serve(t, func(g *grpc.Server) { gpb.RegisterGNMIServer(g, s) }), Stratum)
	f.until(t, ports{132: pb.PortStatus_STATE_UP, 140: pb.PortStatus_STATE_UP})
	for _, step := range []struct {
		n    *gpb.Notification
		want ports
	}{
		{oper("2/0", "DOWN"), ports{132: pb.PortStatus_STATE_UP, 140: pb.PortStatus_STATE_DOWN}},
		{oper("1/0", "LOWER_LAYER_DOWN"), ports{132: pb.PortStatus_STATE_DOWN, 140: pb.PortStatus_STATE_DOWN}},
		{oper("1/0", "TESTING"), ports{132: pb.PortStatus_STATE_UNKNOWN, 140: pb.PortStatus_STATE_DOWN}},
		{&gpb.Notification{Delete: []*gpb.Path{state("2/0", "oper-status")}}, ports{132: pb.PortStatus_STATE_UNKNOWN, 140: pb.PortStatus_STATE_UNKNOWN}},
		{&gpb.Notification{
			Prefix: &gpb.Path{Elem: state("2/0", "oper-status").GetElem()[:2]},
			Update: []*gpb.Update{{Path: &gpb.Path{Elem: state("2/0", "oper-status").GetElem()[2:]}, Val: oper("", "UP").Update[0].Val}},
		}, ports{132: pb.PortStatus_STATE_UNKNOWN, 140: pb.PortStatus_STATE_UP}},
		{oper("9/0", "DOWN"), nil}, // an interface added later: its port number is unknown
		{oper("2/0", "DOWN"), ports{132: pb.PortStatus_STATE_UNKNOWN, 140: pb.PortStatus_STATE_DOWN}},
	} {
		s.change <- step.n
		if step.want != nil {
			f.until(t, step.want)
		}
	}
	close(s.change)
	if err := <-f.ended; err == nil {
		t.Error("it ended without a reason")
	}
}

// TestNoGNMI: a switch without gNMI, such as BMv2, is asked once.
func TestNoGNMI(t *testing.T) {
	for _, n := range []Numbers{OpenConfig, Stratum} {
		f := follow(t, serve(t, func(*grpc.Server) {}), n)
		if err := <-f.ended; status.Code(err) != codes.Unimplemented || !strings.HasPrefix(err.Error(), "gNMI: ") || f.calls.Load() != 1 {
			t.Errorf("%+v: %v after %d calls, want Unimplemented after one", n, err, f.calls.Load())
		}
	}
}
