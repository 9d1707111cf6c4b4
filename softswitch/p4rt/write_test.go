package p4rt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
)

func TestBatches(t *testing.T) {
	r, _ := running(t)
	batch := []*p4v1.Update{
		p4rtmsg.Insert(l2(1, 1)), p4rtmsg.Insert(l2(1, 1)), p4rtmsg.Insert(l2(2, 999)), p4rtmsg.Insert(l2(3, 1)), nil, p4rtmsg.Delete(l2(9, 1)),
	}
	write := func(a p4v1.WriteRequest_Atomicity, us []*p4v1.Update) error {
		_, err := r.client.Write(r.ctx, &p4v1.WriteRequest{DeviceId: deviceID, ElectionId: id(1), Atomicity: a, Updates: us})
		return err
	}
	all := &p4v1.TableEntry{TableId: p4test.ID("l2")}

	// Taken back as a whole. gRPC turns the nil update into an empty one.
	err := write(p4v1.WriteRequest_ROLLBACK_ON_ERROR, batch)
	want := []codes.Code{codes.Aborted, codes.AlreadyExists, codes.Aborted, codes.Aborted, codes.Aborted, codes.Aborted}
	if got := details(t, err); status.Code(err) != codes.Unknown || !slices.Equal(got, want) {
		t.Errorf("rollback: %v %v, want %v", err, got, want)
	}
	r.wantRead(all)

	err = write(p4v1.WriteRequest_CONTINUE_ON_ERROR, batch)
	want = []codes.Code{codes.OK, codes.AlreadyExists, codes.InvalidArgument, codes.OK, codes.InvalidArgument, codes.NotFound}
	if got := details(t, err); status.Code(err) != codes.Unknown || !slices.Equal(got, want) {
		t.Errorf("continue: %v %v, want %v", err, got, want)
	}
	r.wantRead(all, l2(1, 1), l2(3, 1))

	if err := write(p4v1.WriteRequest_ROLLBACK_ON_ERROR, []*p4v1.Update{p4rtmsg.Modify(l2(1, 2)), p4rtmsg.Delete(l2(3, 1)), p4rtmsg.Insert(l2(4, 4))}); err != nil {
		t.Error(err)
	}
	r.wantRead(all, l2(1, 2), l2(4, 4))
	err = write(p4v1.WriteRequest_ROLLBACK_ON_ERROR, []*p4v1.Update{p4rtmsg.Modify(l2(1, 7)), p4rtmsg.Delete(l2(4, 1)), p4rtmsg.Insert(l2(1, 1))})
	if got := details(t, err); len(got) != 3 || got[2] != codes.AlreadyExists {
		t.Errorf("%v %v", err, got)
	}
	r.wantRead(all, l2(1, 2), l2(4, 4))

	if err := write(p4v1.WriteRequest_DATAPLANE_ATOMIC, []*p4v1.Update{p4rtmsg.Insert(l2(5, 5))}); err != nil {
		t.Error(err)
	}
	for a, want := range map[p4v1.WriteRequest_Atomicity]codes.Code{p4v1.WriteRequest_DATAPLANE_ATOMIC: codes.Unimplemented, 9: codes.InvalidArgument} {
		if err := write(a, batch); status.Code(err) != want || len(details(t, err)) != 0 {
			t.Errorf("atomicity %v: %v", a, err)
		}
	}
	if err := write(0, nil); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
}

func TestReadBatches(t *testing.T) {
	r, _ := running(t)
	r.mustWrite(p4rtmsg.Insert(l2(1, 1)))
	got, _, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID, Entities: []*p4v1.Entity{
		p4rtmsg.Entity(&p4v1.TableEntry{TableId: p4test.ID("l2")}), {}, p4rtmsg.Entity(&p4v1.TableEntry{TableId: 5}), p4rtmsg.Entity(l2(1, 0)),
	}})
	if len(got) != 2 {
		t.Errorf("read %v", got)
	}
	want := []codes.Code{codes.OK, codes.InvalidArgument, codes.InvalidArgument, codes.OK}
	// The last one filters by action, which l2(1, 0) names.
	if codes := details(t, err); !slices.Equal(codes, want) {
		t.Errorf("%v, want %v (%v)", codes, want, err)
	}
	if got, chunks, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID}); len(got) != 0 || chunks != 0 || err != nil {
		t.Errorf("an empty read: %v, %v", got, err)
	}
}

// Large reads are split into messages that a client with gRPC's default limit of 4 MB accepts.
func TestReadInChunks(t *testing.T) {
	r, _ := running(t)
	const entries = 2000
	var us []*p4v1.Update
	for i := range uint64(entries) {
		e := l2(i, 1)
		e.Metadata = make([]byte, 3000)
		us = append(us, p4rtmsg.Insert(e))
	}
	r.mustWrite(us...)
	one := l2(entries, 1)
	one.Metadata = make([]byte, 3<<20) // larger than a chunk, smaller than the limit
	r.mustWrite(p4rtmsg.Insert(one))
	got, chunks, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID, Entities: []*p4v1.Entity{p4rtmsg.Entity(&p4v1.TableEntry{TableId: p4test.ID("l2")})}})
	if err != nil || len(got) != entries+1 || chunks < 10 {
		t.Errorf("%d entries in %d chunks, %v", len(got), chunks, err)
	}
}

func TestWatchPortOnSwitch(t *testing.T) {
	r, _ := running(t)
	act := func(port uint64) *p4v1.ActionProfileAction {
		return &p4v1.ActionProfileAction{Action: p4test.Action("next_hop", port, 7), Weight: 1, WatchKind: &p4v1.ActionProfileAction_WatchPort{WatchPort: []byte{byte(port)}}}
	}
	e := p4test.Entry("routes", 0, &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{
		ActionProfileActionSet: &p4v1.ActionProfileActionSet{ActionProfileActions: []*p4v1.ActionProfileAction{act(1), act(2)}},
	}}, p4rtmsg.Exact(1, 0))
	r.mustWrite(p4rtmsg.Insert(e))
	send := func() (one, two int) {
		for i := range 64 {
			f := frame(9, 1)
			f[12], f[13], f[14], f[22] = 8, 0, 0x45, 64
			f[29] = byte(i) // of the source address, which the selector hashes
			r.dev.inject(5, f)
		}
		r.dev.mu.Lock()
		defer r.dev.mu.Unlock()
		one, two = r.dev.sent[1], r.dev.sent[2]
		clear(r.dev.sent)
		return one, two
	}
	if one, two := send(); one == 0 || two == 0 || one+two != 64 {
		t.Errorf("with both ports up: %d and %d", one, two)
	}
	if err := r.SetPortState(1, false); err != nil {
		t.Fatal(err)
	}
	if one, two := send(); one != 0 || two != 64 {
		t.Errorf("with port 1 down: %d and %d", one, two)
	}
	// A pipeline that is committed now knows about the port too.
	r.push(reconcile, p4test.Config(), codes.OK)
	if one, two := send(); one != 0 || two != 64 {
		t.Errorf("with port 1 down, after a push: %d and %d", one, two)
	}
	if err := r.SetPortState(1, true); err != nil {
		t.Fatal(err)
	}
	if one, two := send(); one == 0 || two == 0 {
		t.Errorf("with both ports up again: %d and %d", one, two)
	}
}

func TestCapabilities(t *testing.T) {
	r := newRig(t)
	got, err := r.client.Capabilities(r.ctx, &p4v1.CapabilitiesRequest{})
	if err != nil || got.P4RuntimeApiVersion != "1.4.0" {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzWrite feeds arbitrary requests to a server that has a pipeline. The server answers all of
// them, and its state can be read, dumped and loaded again.
func FuzzWrite(f *testing.F) {
	for _, u := range []*p4v1.Update{
		p4rtmsg.Insert(l2(1, 1)), p4rtmsg.Modify(l2(1, 2)), p4rtmsg.Delete(l2(1, 1)),
		p4rtmsg.Insert(p4test.Entry("acl", 3, p4test.Do("acl_set", 1), p4rtmsg.Ternary(1, 1, 3), p4rtmsg.Range(2, 1, 2), p4rtmsg.Optional(3, 1), p4rtmsg.LPM(4, 1<<31, 1))),
		p4rtmsg.Insert(&p4v1.ActionProfileMember{ActionProfileId: p4test.ID("ecmp"), MemberId: 1, Action: p4test.Action("next_hop", 1, 2)}),
		p4rtmsg.Insert(&p4v1.ActionProfileGroup{ActionProfileId: p4test.ID("ecmp"), GroupId: 1, Members: []*p4v1.ActionProfileGroup_Member{{MemberId: 1, Weight: 2}}}),
		p4rtmsg.Insert(&p4v1.MulticastGroupEntry{MulticastGroupId: 1, Replicas: []*p4v1.Replica{{EgressPort: 1}}}),
		p4rtmsg.Insert(&p4v1.CloneSessionEntry{SessionId: 1}),
		p4rtmsg.Modify(&p4v1.RegisterEntry{RegisterId: p4test.ID("last"), Data: &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: []byte{1}}}}),
		p4rtmsg.Modify(&p4v1.CounterEntry{CounterId: p4test.ID("hits"), Data: &p4v1.CounterData{PacketCount: 1}}),
		p4rtmsg.Modify(&p4v1.MeterEntry{MeterId: p4test.ID("rates"), Config: &p4v1.MeterConfig{Pir: 1}}),
		p4rtmsg.Modify(&p4v1.ValueSetEntry{ValueSetId: p4test.ID("parse.ip_types"), Members: []*p4v1.ValueSetMember{{Match: []*p4v1.FieldMatch{p4rtmsg.Exact(1, 1)}}}}),
		p4rtmsg.Insert(&p4v1.DigestEntry{DigestId: p4test.ID("learn_t")}),
	} {
		for a := range p4v1.WriteRequest_Atomicity(3) {
			b, err := proto.Marshal(&p4v1.WriteRequest{Updates: []*p4v1.Update{u, u}, Atomicity: a})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		req := &p4v1.WriteRequest{}
		if proto.Unmarshal(b, req) != nil {
			return
		}
		s, _ := quiet(t)
		req.DeviceId, req.ElectionId, req.Role, req.RoleId = deviceID, id(1), "", 0 //lint:ignore SA1019 the default role
		_, _ = s.Write(context.Background(), req)
		reqs := []*p4v1.Entity{}
		for _, u := range req.Updates {
			reqs = append(reqs, u.GetEntity())
		}
		err := s.Read(&p4v1.ReadRequest{DeviceId: deviceID, Entities: reqs}, &receiver{t: t, next: func(int, int, []*p4v1.Entity) {}})
		if err != nil && len(details(t, err)) != len(reqs) {
			t.Error(err)
		}
		l, err := s.compile(p4test.Config())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.reconcile(l); err != nil {
			t.Errorf("what was written cannot be written again: %v", err)
		}
	})
}

// quiet is a server without gRPC around it, whose primary is client 1 with election id 1.
func quiet(t testing.TB) (*Server, *device) {
	t.Helper()
	dev := &device{sent: map[uint32]int{}}
	s := New(Options{DeviceID: deviceID, Options: entity.Options{CPUPort: cpuPort, Queues: 8}}, dev)
	dev.server = s
	if err := s.LoadPipeline(p4test.Text, p4test.JSON); err != nil {
		t.Fatal(err)
	}
	if _, err := s.arb.Update(1, &p4v1.MasterArbitrationUpdate{DeviceId: deviceID, ElectionId: id(1)}); err != nil {
		t.Fatal(err)
	}
	return s, dev
}

// Writes per second: a batch of new exact entries, written, and deleted outside of the
// clock. Over gRPC in memory, and by calling the server.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{1, 1000} {
		ins := &p4v1.WriteRequest{DeviceId: deviceID, ElectionId: id(1)}
		del := &p4v1.WriteRequest{DeviceId: deviceID, ElectionId: id(1)}
		for i := range uint64(size) {
			ins.Updates = append(ins.Updates, p4rtmsg.Insert(l2(i, 1)))
			del.Updates = append(del.Updates, p4rtmsg.Delete(l2(i, 1)))
		}
		run := func(b *testing.B, write func(context.Context, *p4v1.WriteRequest) error) {
			b.ReportAllocs()
			for b.Loop() {
				if err := write(context.Background(), ins); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := write(context.Background(), del); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N)*float64(size)/b.Elapsed().Seconds(), "updates/s")
		}
		b.Run(fmt.Sprintf("grpc/updates=%d", size), func(b *testing.B) {
			r, _ := running(b)
			run(b, func(ctx context.Context, req *p4v1.WriteRequest) error {
				_, err := r.client.Write(ctx, req)
				return err
			})
		})
		b.Run(fmt.Sprintf("direct/updates=%d", size), func(b *testing.B) {
			s, _ := quiet(b)
			run(b, func(ctx context.Context, req *p4v1.WriteRequest) error { _, err := s.Write(ctx, req); return err })
		})
	}
}

// Reading a table of 10 000 entries over gRPC in memory, with and without counters.
func BenchmarkRead(b *testing.B) {
	const entries = 10000
	r, _ := running(b)
	var us []*p4v1.Update
	for i := range uint64(entries) {
		us = append(us, p4rtmsg.Insert(l2(i, 1)))
	}
	r.mustWrite(us...)
	for name, req := range map[string]*p4v1.TableEntry{
		"table": {TableId: p4test.ID("l2")},
		"hits":  {TableId: p4test.ID("l2"), TimeSinceLastHit: &p4v1.TableEntry_IdleTimeout{}},
	} {
		b.Run(fmt.Sprintf("%s/entries=%d", name, entries), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				got, _, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID, Entities: []*p4v1.Entity{p4rtmsg.Entity(req)}})
				if err != nil || len(got) != entries {
					b.Fatal(len(got), err)
				}
			}
			b.ReportMetric(float64(b.N)*entries/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// TestStatusFits: a batch's status fits, in base64, the headers that a client accepts. It names
// failures however many updates there were.
func TestStatusFits(t *testing.T) {
	for _, tt := range []struct {
		updates, limit, details int
		messages                bool
	}{
		{20, smallStatus, 20, true},
		{100, smallStatus, 100, false},
		{1000, smallStatus, 0, false},
		{1000, largeStatus, 1000, true},
	} {
		errs := make([]error, tt.updates)
		for i := range errs {
			if i%2 == 1 {
				errs[i] = status.Errorf(codes.AlreadyExists, "table l2 holds an entry with these keys, number %d", i)
			}
		}
		st := status.Convert(batchError("some updates failed", errs, tt.limit))
		if size := (proto.Size(st.Proto()) + 2) / 3 * 4; tt.limit == smallStatus && size > 8<<10-512 { // other headers take the rest
			t.Errorf("%d updates: %d bytes in base64", tt.updates, size)
		}
		if st.Code() != codes.Unknown || len(st.Details()) != tt.details {
			t.Errorf("%d updates: %v with %d details, want UNKNOWN with %d", tt.updates, st.Code(), len(st.Details()), tt.details)
		}
		for i, d := range st.Details() {
			if e := d.(*p4v1.Error); codes.Code(e.GetCanonicalCode()) != status.Code(errs[i]) || errs[i] != nil && (e.GetMessage() != "") != tt.messages {
				t.Errorf("%d updates: update %d: %v", tt.updates, i, e)
			}
		}
		if !tt.messages && !strings.Contains(st.Message(), "update 1: AlreadyExists: table l2 holds") {
			t.Errorf("%d updates: %q, want the first failures", tt.updates, st.Message())
		}
	}
}
