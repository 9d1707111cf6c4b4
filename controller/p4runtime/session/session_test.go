package session

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"go.uber.org/goleak"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/softswitch/p4rt"
	"github.com/headgate/headgate/tests/switchtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a handler with conditions that a test can wait for.
type recorder struct {
	mu      sync.Mutex
	changed chan struct{}
	role    Role
	why     error
	packets []*p4v1.PacketIn
	digests int
	idle    int
}

func newRecorder() *recorder { return &recorder{changed: make(chan struct{}, 1)} }

func (r *recorder) note(f func()) {
	r.mu.Lock()
	f()
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *recorder) Role(role Role, why error) { r.note(func() { r.role, r.why = role, why }) }
func (r *recorder) PacketRefused(error)       {}

func (r *recorder) Message(m *p4v1.StreamMessageResponse) {
	r.note(func() {
		switch {
		case m.GetPacket() != nil:
			r.packets = append(r.packets, m.GetPacket())
		case m.GetDigest() != nil:
			r.digests++
		case m.GetIdleTimeoutNotification() != nil:
			r.idle++
		}
	})
}

// until waits until a condition holds for the recorder.
func (r *recorder) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		r.mu.Lock()
		ok, role, why := cond(), r.role, r.why
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-r.changed:
		case <-deadline:
			t.Fatalf("never came: %s; the role is %v (%v)", what, role, why)
		}
	}
}

func (r *recorder) is(t *testing.T, role Role) {
	t.Helper()
	r.until(t, role.String(), func() bool { return r.role == role })
}

// start runs a session until the test ends, or until the returned function is called. A busy
// machine may compile a pushed program slowly, so no heartbeat is due meanwhile.
func start(t *testing.T, s *switchtest.Switch, election uint64) (*Session, *recorder, func()) {
	t.Helper()
	return startWith(t, s, election, time.Minute)
}

func startWith(t *testing.T, s *switchtest.Switch, election uint64, heartbeat time.Duration) (*Session, *recorder, func()) {
	t.Helper()
	return startAs(t, s, Options{ElectionID: election, Heartbeat: heartbeat})
}

func startAs(t *testing.T, s *switchtest.Switch, o Options) (*Session, *recorder, func()) {
	t.Helper()
	r := newRecorder()
	o.Name, o.DeviceID, o.Address, o.RetryMin, o.RetryMax, o.BatchSize = "s1", 1, s.Address(), 5*time.Millisecond, 20*time.Millisecond, 2
	ses := New(o, r)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = ses.Run(ctx) }()
	var once sync.Once
	stop := func() { once.Do(func() { cancel(); <-done }) }
	t.Cleanup(stop)
	return ses, r, stop
}

func load(t *testing.T) *pipeline.Pipeline {
	t.Helper()
	p, err := pipeline.Load(p4src.P4Info, p4src.JSON())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// terms are a leader's terms; over is set when it has lost leadership.
type terms struct {
	now  uint64
	over bool
}

func (l *terms) Term() uint64 { return l.now }

func (l *terms) RaiseTerm(above uint64) (uint64, error) {
	if l.over {
		return 0, errors.New("it leads no more")
	}
	l.now = max(l.now, above+1)
	return l.now, nil
}

// TestTermsGoOn: the leader of a cluster that is new, or was restored from an older backup, takes over a switch that
// knows a higher term, once that term's owner has left, and keeps it.
func TestTermsGoOn(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	lead := func(l *terms) (*Session, *recorder, func()) {
		return startAs(t, s, Options{Terms: l, ElectionID: 3, Heartbeat: time.Minute})
	}
	_, lost, stopLost := lead(&terms{now: 1000})
	lost.is(t, Primary)
	restored := &terms{now: 5}
	ses, r, stop := lead(restored)
	r.until(t, "another controller is primary", func() bool { return r.role == Backup && errors.As(r.why, new(*HeldError)) })
	stopLost()
	r.is(t, Primary)
	client, err := ses.Client()
	if err == nil {
		err = client.Push(t.Context(), load(t))
	}
	if err != nil {
		t.Error(err)
	}
	stop()
	if restored.now != 1001 {
		t.Errorf("the term is %d", restored.now)
	}
	_, r, _ = lead(&terms{now: restored.now + 1, over: true})
	r.is(t, Primary)
}

// TestTerms: a cluster's leader never takes over a switch from a later leader, even one that is gone. A
// later leader takes it over at once, whatever the lower halves of the election ids are.
func TestTerms(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	lead := func(term, election uint64) (*recorder, func()) {
		_, r, stop := startAs(t, s, Options{Terms: &terms{now: term, over: true}, ElectionID: election, Heartbeat: time.Minute})
		return r, stop
	}
	old, _ := lead(5, 100)
	old.is(t, Primary)
	next, stop := lead(7, 1)
	next.is(t, Primary)
	old.is(t, Backup)
	stop()
	old.until(t, "why", func() bool {
		return old.why != nil && strings.Contains(old.why.Error(), "another leader had the switch") && strings.Contains(old.why.Error(), "leads no more")
	})
	old.is(t, Backup)
	again, _ := lead(9, 1)
	again.is(t, Primary)
}

func TestMastership(t *testing.T) {
	for _, bmv2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "specification", true: "bmv2"}[bmv2], func(t *testing.T) {
			s := switchtest.New(t, 1)
			s.BMv2 = bmv2
			s.Start()
			_, first, stopFirst := start(t, s, 10)
			first.is(t, Primary)
			second, r, _ := start(t, s, 5)
			r.is(t, Backup)
			r.until(t, "why", func() bool { return r.why != nil && strings.Contains(r.why.Error(), "election id 10") })
			client, err := second.Client()
			if err != nil {
				t.Fatal(err)
			}
			err = client.Write(context.Background(), []*p4v1.Update{{Type: p4v1.Update_INSERT, Entity: pipeline.CloneSession(1, 1)}})
			if !isCode(errors.Unwrap(err), codes.PermissionDenied) {
				t.Errorf("a backup writes: %v", err)
			}
			stopFirst()
			r.is(t, Primary)
			if err := client.Push(context.Background(), load(t)); err != nil {
				t.Errorf("the new primary cannot push: %v", err)
			}
		})
	}
}

func TestHigherElectionIDTakesOver(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	_, first, _ := start(t, s, 1)
	first.is(t, Primary)
	_, second, _ := start(t, s, 2)
	second.is(t, Primary)
	first.is(t, Backup)
}

func TestSameElectionIDStaysBackup(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	_, first, stop := start(t, s, 7)
	first.is(t, Primary)
	_, second, _ := start(t, s, 7)
	second.is(t, Backup)
	if !strings.Contains(second.why.Error(), "election id 7") {
		t.Errorf("why = %v", second.why)
	}
	stop()
	second.is(t, Primary)
}

func TestReconnect(t *testing.T) {
	s := switchtest.New(t, 1)
	ses, r, _ := start(t, s, 1)
	r.until(t, "refused connection", func() bool { return r.role == Disconnected && r.why != nil })
	r.mu.Lock()
	if want := "Error while dialing: dial tcp " + s.Address() + ": connect: connection refused"; r.why.Error() != want {
		t.Errorf("why = %v, want %s", r.why, want)
	}
	if !errors.Is(r.why, ErrRefused) {
		t.Errorf("%v is not ErrRefused", r.why)
	}
	r.mu.Unlock()
	if _, err := ses.Client(); !errors.Is(err, ErrDisconnected) {
		t.Errorf("Client = %v", err)
	}
	if err := ses.PacketOut(&p4v1.PacketOut{}); !errors.Is(err, ErrDisconnected) {
		t.Errorf("PacketOut = %v", err)
	}
	for range 3 {
		s.Start()
		r.is(t, Primary)
		s.Stop()
		r.until(t, "nothing listens", func() bool { return r.role == Disconnected && errors.Is(r.why, ErrRefused) })
	}
}

// TestNextSession: the switch notices the end of a session, so the next session can use the same
// election id at once.
func TestNextSession(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	for n := range 20 {
		r := newRecorder()
		roles := make(chan Role, 10)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		ses := New(Options{Name: "s", DeviceID: 1, Address: s.Address(), ElectionID: 7}, first{r, roles})
		go func() { ended <- ses.Run(ctx) }()
		if role := <-roles; role != Primary {
			t.Errorf("session %d begins as %v", n, role)
		}
		cancel()
		<-ended
	}
}

// first is a recorder that passes on the session's roles.
type first struct {
	*recorder
	roles chan Role
}

func (f first) Role(r Role, why error) {
	f.recorder.Role(r, why)
	f.roles <- r
}

func TestHangingSwitch(t *testing.T) {
	s := switchtest.New(t, 1)
	hang := make(chan struct{})
	s.Start(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		select {
		case <-hang:
			<-ctx.Done()
			return nil, ctx.Err()
		default:
			return next(ctx, req)
		}
	}))
	_, r, _ := startWith(t, s, 1, 50*time.Millisecond)
	r.is(t, Primary)
	close(hang)
	r.until(t, "the heartbeat's verdict", func() bool {
		return r.role == Disconnected && r.why != nil && strings.Contains(r.why.Error(), "not answered") && !errors.Is(r.why, ErrRefused)
	})
}

func TestWrite(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	ses, r, _ := start(t, s, 1)
	r.is(t, Primary)
	c, err := ses.Client()
	if err != nil {
		t.Fatal(err)
	}
	ctx, p := context.Background(), load(t)
	if running, err := c.Compare(ctx, p); err != nil || running != Missing {
		t.Fatalf("Compare = %v, %v", running, err)
	}
	if err := c.Push(ctx, p); err != nil {
		t.Fatal(err)
	}
	if running, err := c.Compare(ctx, p); err != nil || running != Same {
		t.Fatalf("Compare = %v, %v", running, err)
	}
	other, err := pipeline.New(p.Info(), append(slices.Clone(p4src.JSON()), '\n')) // other bytes, the same program
	if err != nil {
		t.Fatal(err)
	}
	if running, err := c.Compare(ctx, other); err != nil || running != Other {
		t.Fatalf("Compare = %v, %v", running, err)
	}
	var updates []*p4v1.Update
	for id := range uint32(5) {
		updates = append(updates, &p4v1.Update{Type: p4v1.Update_INSERT, Entity: pipeline.CloneSession(id+1, 1)})
	}
	if err := c.Write(ctx, updates); err != nil {
		t.Fatal(err)
	}
	if writes, done, _ := s.Counts(); writes != 3 || done != 5 {
		t.Errorf("%d writes with %d updates, want 3 with 5", writes, done)
	}
	err = c.Write(ctx, append([]*p4v1.Update{{Type: p4v1.Update_DELETE, Entity: pipeline.CloneSession(9)}, {Type: p4v1.Update_INSERT, Entity: pipeline.CloneSession(8, 1)}}, updates[0]))
	var failed *WriteError
	if !errors.As(err, &failed) || len(failed.Failed) != 2 || failed.Total != 3 {
		t.Fatalf("error = %v", err)
	}
	if failed.Failed[0].Code != codes.NotFound || failed.Failed[1].Code != codes.AlreadyExists || failed.Failed[1].Update != updates[0] {
		t.Errorf("failed = %v", failed)
	}
	list, err := c.Read(ctx, pipeline.CloneSession(0))
	if err != nil || len(list) != 6 {
		t.Errorf("read %d, %v", len(list), err)
	}
	// A push first removes the state of the replication engine.
	if err := c.Push(ctx, other); err != nil {
		t.Fatal(err)
	}
	if _, done, _ := s.Counts(); done != 6+6 {
		t.Errorf("%d updates, want the push to delete 6 sessions", done)
	}
	if v, err := c.Version(ctx); err != nil || v != p4rt.APIVersion {
		t.Errorf("Version = %q, %v", v, err)
	}
}

func TestMessages(t *testing.T) {
	s := switchtest.New(t, 1)
	s.Start()
	sent := make(chan *p4v1.PacketOut, 1)
	s.OnPacket(func(p *p4v1.PacketOut) { sent <- p })
	ses, r, _ := start(t, s, 1)
	r.is(t, Primary)
	if err := ses.PacketOut(&p4v1.PacketOut{Payload: []byte("out")}); err != nil {
		t.Fatal(err)
	}
	if p := <-sent; string(p.GetPayload()) != "out" {
		t.Errorf("sent %v", p)
	}
	s.PacketIn(&p4v1.PacketIn{Payload: []byte("in")})
	s.ToPrimary(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Digest{Digest: &p4v1.DigestList{DigestId: 1, ListId: 2}}})
	s.ToPrimary(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_IdleTimeoutNotification{IdleTimeoutNotification: &p4v1.IdleTimeoutNotification{}}})
	s.ToPrimary(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Error{Error: &p4v1.StreamError{CanonicalCode: 3}}})
	r.until(t, "all messages", func() bool { return len(r.packets) == 1 && r.digests == 1 && r.idle == 1 })
}

// TestPushWithoutDevice: for a program without a device configuration, the session compares P4Info
// and pushes nothing.
func TestPushWithoutDevice(t *testing.T) {
	fake := switchtest.New(t, 1)
	fake.Start()
	half, err := pipeline.LoadChip(p4src.P4Info, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, done, err := Dial(fake.Address(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if err := c.Push(context.Background(), half); !errors.Is(err, ErrNoDevice) {
		t.Errorf("push: %v, want %v", err, ErrNoDevice)
	}
	if got, err := c.Compare(context.Background(), half); got != Missing || err != nil {
		t.Errorf("an empty switch compares as %v, %v", got, err)
	}
}

// TestHollowPush: BMv2 answers OK to a program that it cannot run.
func TestHollowPush(t *testing.T) {
	s := switchtest.New(t, 1)
	s.BMv2 = true
	s.Start()
	ses, r, _ := start(t, s, 1)
	r.is(t, Primary)
	c, err := ses.Client()
	if err != nil {
		t.Fatal(err)
	}
	broken, err := pipeline.New(load(t).Info(), []byte(`{"not":"a program"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Push(context.Background(), broken); err == nil || !strings.Contains(err.Error(), "does not run it") {
		t.Errorf("error = %v", err)
	}
}

// TestLaterLeaderSeen: BMv2 makes the next candidate primary when the primary leaves. A candidate
// that knows of a later leader of its cluster still writes nothing.
func TestLaterLeaderSeen(t *testing.T) {
	conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	told := func(l *stream, code codes.Code, term uint64) Role {
		t.Helper()
		a := &p4v1.MasterArbitrationUpdate{ElectionId: &p4v1.Uint128{High: term, Low: 1}, Status: &statuspb.Status{Code: int32(code)}}
		if err := l.arbitrate(a, &recorder{}); err != nil {
			t.Fatal(err)
		}
		return l.role
	}
	for _, c := range []struct {
		term, other uint64
		want        Role
	}{{5, 7, Backup}, {5, 5, Primary}, {0, 7, Primary}} {
		l := newStream(conn, Options{ElectionID: 1})
		if c.term > 0 {
			l = newStream(conn, Options{ElectionID: 1, Terms: &terms{now: c.term, over: true}})
		}
		if got := told(l, codes.OK, c.term); got != Primary {
			t.Errorf("%+v: at first %v", c, got)
		}
		if got := told(l, codes.AlreadyExists, c.other); got != Backup {
			t.Errorf("%+v: with another primary %v", c, got)
		}
		if got := told(l, codes.OK, c.term); got != c.want {
			t.Errorf("%+v: when that one left %v", c, got)
		}
	}
	// It takes the switch from a leader of a lost cluster by a higher term.
	l := newStream(conn, Options{ElectionID: 1, Log: slog.Default(), Terms: &terms{now: 5}})
	told(l, codes.AlreadyExists, 7)
	if got := told(l, codes.OK, 5); got != Backup || len(l.out) != 2 || l.bid.GetHigh() != 8 {
		t.Errorf("it is %v and bids %v", got, l.bid)
	}
	if got := told(l, codes.OK, 8); got != Primary {
		t.Errorf("with a higher term it is %v", got)
	}
}
