package softswitch

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/softswitch/port"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/units"
)

// fakePort is a driver and a source. Frames put into in arrive on the port; frames that the port
// sends come out of out.
type fakePort struct {
	in     chan *port.Batch
	out    chan sentFrame
	fail   error
	mu     sync.Mutex
	held   []sentFrame
	closed bool
}

type sentFrame struct {
	at time.Time
	report
}

func newFakePort() *fakePort {
	return &fakePort{in: make(chan *port.Batch), out: make(chan sentFrame, 4096)}
}

func (p *fakePort) Send(frame []byte) { p.held = append(p.held, sentFrame{time.Now(), decode(frame)}) }
func (p *fakePort) Flush() error {
	for _, f := range p.held {
		p.out <- f
	}
	p.held = p.held[:0]
	return nil
}
func (p *fakePort) Counters() port.Counters { return port.Counters{TxErrors: 3} }
func (p *fakePort) Up() bool                { return true }
func (p *fakePort) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return nil
}

func (p *fakePort) closedNow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *fakePort) Run(ctx context.Context, deliver func(*port.Batch)) error {
	for {
		select {
		case b := <-p.in:
			if b == nil {
				return p.fail
			}
			deliver(b)
		case <-ctx.Done():
			return nil
		}
	}
}

// batch returns a batch of frames that arrived on port 1.
func batch(frames ...[]byte) *port.Batch {
	b := port.NewBatch(96, 64<<10)
	for _, f := range frames {
		b.Add(1, f)
	}
	return b
}

// realtime starts a switch with a port that runs echo.
func realtime(t *testing.T, rate units.Rate) (*Realtime, *fakePort, func() error) {
	t.Helper()
	return realtimeOf(t, rate, config("a"))
}

func realtimeOf(t *testing.T, rate units.Rate, c Config) (*Realtime, *fakePort, func() error) {
	t.Helper()
	s, err := NewRealtime(c)
	if err != nil {
		t.Fatal(err)
	}
	p := newFakePort()
	if err := s.AddPort(port.Named{Number: 1, Name: "fake1"}, rate, p); err != nil {
		t.Fatal(err)
	}
	s.AddSource(p)
	s.Commit(echo(t, 8))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var once sync.Once
	stop := func() (err error) {
		once.Do(func() {
			cancel()
			err = <-done
			if !p.closedNow() {
				t.Error("Run did not close the driver")
			}
		})
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return s, p, stop
}

// The switch reports that its loop runs, and stops reporting when the loop is stuck.
func TestTurned(t *testing.T) {
	s, _, _ := realtime(t, 0)
	if err := s.Turned(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	stuck := make(chan struct{})
	s.r.post(func() { <-stuck })
	if err := s.Turned(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a loop that is stuck: %v", err)
	}
	close(stuck)
}

func (p *fakePort) next(t *testing.T) sentFrame {
	t.Helper()
	select {
	case f := <-p.out:
		return f
	case <-time.After(hang):
		t.Fatal("no frame came out")
		panic("unreachable")
	}
}

func TestRealtimeForwards(t *testing.T) {
	began := time.Now()
	s, p, _ := realtime(t, 0)
	p.in <- batch(frame(1, 0, 1, 60), frame(1, 3, 2, 70))
	s.PacketOut(frame(1, 0, 3, 80))
	got := map[uint32]sentFrame{}
	for range 3 {
		f := p.next(t)
		got[f.seq] = f
	}
	if got[1].ingress != 1 || got[2].queue != 3 || got[3].ingress != cpuPort {
		t.Errorf("sent %+v", got)
	}
	if p := stats(t, s.Switch, 1); p.RxFrames != 2 || p.TxFrames != 3 || p.Driver.TxErrors != 3 || p.Name != "fake1" || !p.Up {
		t.Errorf("port counted %+v", p)
	}
	if now := s.Now(); now <= 0 || now > units.FromDuration(time.Since(began)) {
		t.Errorf("the switch's clock shows %v after %v", now, time.Since(began))
	}
}

func TestRealtimeRate(t *testing.T) {
	s, p, _ := realtime(t, 8*units.Mbps)
	if err := s.SetQueueLimit(1, AllQueues, tm.Limit{Packets: 40}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	frames := [][]byte{}
	for i := range uint32(50) {
		frames = append(frames, frame(1, 0, i, 1000))
	}
	p.in <- batch(frames...)
	for i := range uint32(41) { // one leaves at once, forty wait
		f := p.next(t)
		// The frames' own timestamps show 1 us per byte, however late this test runs.
		if f.seq != i || f.delta != i*1000 {
			t.Errorf("frame %d waited %d us, want frame %d to wait %d us", f.seq, f.delta, i, i*1000)
		}
		if early := time.Duration(i)*time.Millisecond - f.at.Sub(start); early > 0 {
			t.Errorf("frame %d left %v early", i, early)
		}
	}
	if st := stats(t, s.Switch, 1); st.Queues.Dropped().Packets != 9 {
		t.Errorf("dropped %+v, want 9 packets", st.Queues.Dropped())
	}
	// A port that its rate blocks for very long sends again once the rate is raised.
	if err := s.SetPortRate(1, 1); err != nil {
		t.Fatal(err)
	}
	p.in <- batch(frame(1, 0, 100, 1000), frame(1, 0, 101, 1000))
	if err := s.SetPortRate(1, 0); err != nil {
		t.Fatal(err)
	}
	p.next(t)
	p.next(t)
}

func TestRealtimeSourceErrorEndsRun(t *testing.T) {
	_, p, stop := realtime(t, 0)
	p.fail = errors.New("the cable burnt")
	close(p.in)
	// The source's error alone must end the run.
	deadline := time.After(hang)
	for !p.closedNow() {
		select {
		case <-deadline:
			t.Fatal("Run goes on without its source")
		case <-time.After(time.Millisecond):
		}
	}
	if err := stop(); !errors.Is(err, p.fail) {
		t.Errorf("Run = %v", err)
	}
}

// TestStopGRPCAtOnce: stopping a server that has not begun to serve is not an error.
func TestStopGRPCAtOnce(t *testing.T) {
	var log strings.Builder
	c := config("a")
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	s, _, stop := realtimeOf(t, 0, c)
	for range 100 {
		if _, err := s.ServeGRPC("127.0.0.1:0", nil); err != nil {
			t.Fatal(err)
		}
		s.StopGRPC()
	}
	if err := stop(); err != nil { // after stop, no other goroutine writes the log
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Errorf("the log says\n%s", &log)
	}
}

func TestServeGRPC(t *testing.T) {
	s, p, _ := realtime(t, 0)
	for range 2 { // and again
		addr, err := s.ServeGRPC("127.0.0.1:0", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.ServeGRPC("127.0.0.1:0", nil); !errors.Is(err, ErrServing) {
			t.Errorf("serving twice: %v", err)
		}
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		s.StopGRPC()
		s.StopGRPC()
		if conn, err := net.Dial("tcp", addr.String()); err == nil {
			conn.Close()
			t.Error("a stopped server takes connections")
		}
		p.in <- batch(frame(1, 0, 1, 60)) // the data plane goes on
		p.next(t)
	}
	if _, err := s.ServeGRPC("300.0.0.1:1", nil); err == nil || !strings.HasPrefix(err.Error(), "P4Runtime server: listen tcp") {
		t.Errorf("bad address: %v", err)
	}
}

// slowPort takes as long to close as a socket with rings in the kernel.
type slowPort struct{ *fakePort }

func (slowPort) Close() error {
	time.Sleep(50 * time.Millisecond)
	return nil
}

// TestEndsAtOnce: a switch of 64 ports ends within a second, its ports' sockets at the same time.
func TestEndsAtOnce(t *testing.T) {
	s, err := NewRealtime(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint32(64) {
		if err := s.AddPort(port.Named{Number: n + 1, Name: "p"}, 0, slowPort{newFakePort()}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("the end took %v", took)
	}
}
