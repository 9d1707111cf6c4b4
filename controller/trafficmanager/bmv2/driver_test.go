package bmv2_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/controller/trafficmanager/bmv2"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// two is the desired state of two ports with two queues: one limited, one not.
func two() *trafficmanager.Config {
	return &trafficmanager.Config{
		Ports:  []trafficmanager.Port{{Number: 1, Rate: 12 * units.Mbps}, {Number: 3, Rate: 20 * units.Mbps}},
		Queues: 2, PacketSize: 1500,
		QueueLimits: []trafficmanager.QueueLimit{
			{Port: 1, Queue: 0, Bytes: 6001}, {Port: 1, Queue: 1, Bytes: 600}, {Port: 3, Queue: 0, Bytes: 600},
		},
	}
}

// held is the switch's state for two: 20 Mb/s are 1666.7 packets/s, 6001 B are 100.02 packets.
func held() map[int32]queues {
	return map[int32]queues{1: {Rate: 1000, Depth: 101 + 64}, 3: {Rate: 1666, Depth: 71582789 + 64}}
}

func driver(t *testing.T, address string) *bmv2.Driver {
	d := bmv2.New(address)
	t.Cleanup(func() { d.Close() })
	return d
}

func plan(t *testing.T, d *bmv2.Driver, want *trafficmanager.Config) []string {
	t.Helper()
	changes, err := d.Plan(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.Line())
	}
	return lines
}

// TestDriver: the desired state is planned and set once, and set again if the switch's state is
// unknown.
func TestDriver(t *testing.T) {
	s := newServer(t)
	d := driver(t, s.Addr())
	apply := func(from, want *trafficmanager.Config, written, calls int) {
		t.Helper()
		before := s.Calls()
		if n, err := d.Apply(t.Context(), from, want); err != nil || n != written {
			t.Errorf("Apply = %d, %v, want %d", n, err, written)
		}
		if n := s.Calls() - before; n != calls {
			t.Errorf("%d calls, want %d", n, calls)
		}
	}
	all := []string{
		"set_egress_queue_depth port 1: unknown → 165 packets",
		"set_egress_queue_rate port 1: unknown → 1000 packets/s",
		"set_egress_queue_depth port 3: unknown → 71582853 packets",
		"set_egress_queue_rate port 3: unknown → 1666 packets/s",
	}
	if diff := cmp.Diff(all, plan(t, d, two())); diff != "" || s.Calls() != 0 {
		t.Errorf("a plan of all, %d calls: %s", s.Calls(), diff)
	}
	apply(nil, two(), 4, 4)
	if diff := cmp.Diff(held(), s.Ports()); diff != "" {
		t.Error(diff)
	}
	if lines := plan(t, d, two()); len(lines) != 0 {
		t.Errorf("a plan of what is: %q", lines)
	}
	slower := two()
	slower.Ports[1].Rate = 6 * units.Mbps
	if diff := cmp.Diff([]string{"set_egress_queue_rate port 3: 1666 packets/s → 500 packets/s"}, plan(t, d, slower)); diff != "" {
		t.Error(diff)
	}
	apply(two(), slower, 1, 1)
	apply(slower, slower, 0, 0)
	apply(nil, slower, 0, 4) // another client may have set them

	s.Stop()
	s.Start()
	if lines := plan(t, d, slower); len(lines) != 4 {
		t.Errorf("a plan for a switch that was restarted: %q", lines)
	}
	apply(slower, two(), 4, 4)
	if diff := cmp.Diff(held(), s.Ports()); diff != "" {
		t.Error(diff)
	}
	if _, err := d.Pauses(t.Context(), nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Pauses: %v", err)
	}
}

// TestDriverFails: the error for a service that is unreachable, refuses or hangs names the call.
// All is set once it is back.
func TestDriverFails(t *testing.T) {
	s := newServer(t)
	d := driver(t, s.Addr())
	for _, c := range []struct {
		name       string
		begin, end func()
		text       string
		plans      bool // a plan does not notice
		patience   time.Duration
	}{
		{"away", s.Stop, s.Start, "connection refused", false, time.Minute},
		{"refuses", func() { s.Refuse("set_egress_queue_rate") }, func() { s.Refuse("") }, "set_egress_queue_rate: set_egress_queue_rate is refused", true, time.Minute},
		{"another service", func() { s.Refuse("get_time_elapsed_us") }, func() { s.Refuse("") }, "get_time_elapsed_us is refused", false, time.Minute},
		{"does not answer", func() { s.Stall(true) }, func() { s.Stall(false) }, "get_time_elapsed_us: context deadline exceeded", false, 400 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.begin()
			if !c.plans {
				ctx, cancel := context.WithTimeout(t.Context(), c.patience)
				defer cancel()
				changes, err := d.Plan(ctx, two())
				if err == nil || !strings.Contains(err.Error(), c.text) || len(changes) != 4 {
					t.Errorf("Plan = %d changes, %v, want %q", len(changes), err, c.text)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), c.patience)
			defer cancel()
			n, err := d.Apply(ctx, nil, two())
			if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), s.Addr()) || n != 0 {
				t.Errorf("Apply = %d, %v, want %q", n, err, c.text)
			}
			c.end()
			if n, err := d.Apply(t.Context(), nil, two()); err != nil || n != 4 {
				t.Errorf("then Apply = %d, %v", n, err)
			}
		})
	}
}

// TestDriverHangsUp: a call whose context ends before the answer closes its connection.
func TestDriverHangsUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			buf := make([]byte, 1)
			_, err = conn.Read(buf)
			cancel(errors.New("had enough"))
			for err == nil {
				_, err = conn.Read(buf)
			}
		}
		ended <- err
	}()
	if _, err := driver(t, l.Addr().String()).Apply(ctx, nil, two()); err == nil || !strings.Contains(err.Error(), "had enough") {
		t.Errorf("Apply = %v", err)
	}
	if err := <-ended; err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection ended with %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*trafficmanager.Config)
		want string
	}{
		{"fine", func(*trafficmanager.Config) {}, ""},
		{"a packet a second", func(c *trafficmanager.Config) { c.Ports[1].Rate = 12 * units.Kbps }, ""},
		{"less", func(c *trafficmanager.Config) { c.Ports[1].Rate = 11 * units.Kbps }, "ports[1].rate"},
		{"a policy", func(c *trafficmanager.Config) { c.MMU = &headroom.Config{} }, "policy"},
		{"a filter", func(c *trafficmanager.Config) { c.Filters = map[string]units.Time{"f": 1} }, "policy"},
	} {
		want := two()
		c.edit(want)
		err := bmv2.New("127.0.0.1:1").Check(want)
		var fault *units.FieldError
		if errors.As(err, &fault) != (c.want != "") || fault != nil && fault.Field != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
