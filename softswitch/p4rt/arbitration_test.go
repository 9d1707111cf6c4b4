package p4rt

import (
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/softswitch/p4rt/internal/p4test"
)

// Package arbitration tests the rules. This test covers what streams do with them.
func TestArbitrationOnStreams(t *testing.T) {
	r := newRig(t)
	a, b := r.open(), r.open()
	a.become(2)
	b.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: deviceID, ElectionId: id(1)})
	if got := b.told(codes.AlreadyExists).ElectionId.Low; got != 2 {
		t.Errorf("the backup is told election id %d, want 2", got)
	}
	b.become(3)
	a.told(codes.AlreadyExists)
	if err := b.CloseSend(); err != nil {
		t.Fatal(err)
	}
	b.ends(codes.OK)
	a.told(codes.NotFound)
	a.become(3)
}

func TestStreamsAreEnded(t *testing.T) {
	r := newRig(t)
	first := r.open()
	first.become(1)
	for _, c := range []struct {
		name string
		m    *p4v1.MasterArbitrationUpdate
		want codes.Code
	}{
		{"another device", &p4v1.MasterArbitrationUpdate{DeviceId: 9}, codes.NotFound},
		{"an election id in use", &p4v1.MasterArbitrationUpdate{DeviceId: deviceID, ElectionId: id(1)}, codes.InvalidArgument},
		{"a role configuration of another kind", &p4v1.MasterArbitrationUpdate{DeviceId: deviceID, Role: &p4v1.Role{Name: "a", Config: &anypb.Any{TypeUrl: "x"}}}, codes.InvalidArgument},
		{"a nil update", nil, codes.NotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := r.open()
			s.arbitrate(c.m)
			s.ends(c.want)
		})
	}
	t.Run("another device later", func(t *testing.T) {
		s := r.open()
		s.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: deviceID})
		s.told(codes.AlreadyExists)
		s.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: 9})
		s.ends(codes.FailedPrecondition)
	})
	t.Run("the primary, which is then gone", func(t *testing.T) {
		s := r.open()
		s.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: deviceID})
		s.told(codes.AlreadyExists)
		first.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: 9})
		first.ends(codes.FailedPrecondition)
		s.told(codes.NotFound)
	})
	t.Run("by shutting down", func(t *testing.T) {
		s := r.open()
		s.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: deviceID})
		s.told(codes.NotFound)
		r.Close()
		s.ends(codes.Unavailable)
		r.open().ends(codes.Unavailable)
	})
}

func TestWhoMayWrite(t *testing.T) {
	r := newRig(t)
	write := func(req *p4v1.WriteRequest, want codes.Code) {
		t.Helper()
		if _, err := r.client.Write(r.ctx, req); status.Code(err) != want {
			t.Errorf("%v: %v, want %v", req, err, want)
		}
	}
	write(&p4v1.WriteRequest{DeviceId: deviceID}, codes.PermissionDenied) // nobody is connected
	s := r.open()
	s.become(2)
	write(&p4v1.WriteRequest{DeviceId: deviceID, ElectionId: id(2)}, codes.FailedPrecondition) // no pipeline
	write(&p4v1.WriteRequest{DeviceId: deviceID, ElectionId: id(1)}, codes.PermissionDenied)
	write(&p4v1.WriteRequest{DeviceId: deviceID}, codes.PermissionDenied)
	write(&p4v1.WriteRequest{DeviceId: 9, ElectionId: id(2)}, codes.NotFound)
	write(&p4v1.WriteRequest{DeviceId: deviceID, Role: "a", ElectionId: id(2)}, codes.NotFound)
	r.push(p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, p4test.Config(), codes.PermissionDenied)
	if _, _, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("read without a pipeline: %v", err)
	}
	if _, _, err := r.read(&p4v1.ReadRequest{DeviceId: 9}); status.Code(err) != codes.NotFound {
		t.Errorf("read of another device: %v", err)
	}
	if _, _, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID, Role: "a"}); status.Code(err) != codes.NotFound {
		t.Errorf("read of an unknown role: %v", err)
	}
}

// roleConfig is a role's configuration in this server's scheme.
func roleConfig(t *testing.T, fields map[string]any) *anypb.Any {
	t.Helper()
	st, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	a, err := anypb.New(st)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRoles(t *testing.T) {
	r, all := running(t)
	s := r.open()
	s.arbitrate(&p4v1.MasterArbitrationUpdate{DeviceId: deviceID, ElectionId: id(5), Role: &p4v1.Role{
		Name: "learner", Config: roleConfig(t, map[string]any{"objects": []any{"ingress.l2", "ingress.t*", "pre"}, "packet_in": false, "packet_out": false}),
	}})
	s.told(codes.OK)
	write := func(us ...*p4v1.Update) error {
		_, err := r.client.Write(r.ctx, &p4v1.WriteRequest{DeviceId: deviceID, Role: "learner", ElectionId: id(5), Updates: us})
		return err
	}
	tunnel := &p4v1.ActionProfileMember{ActionProfileId: p4test.ID("tunnels"), MemberId: 1, Action: p4test.Action("drop")}
	if err := write(p4rtmsg.Insert(l2(1, 1)), p4rtmsg.Insert(tunnel), p4rtmsg.Insert(&p4v1.MulticastGroupEntry{MulticastGroupId: 1})); err != nil {
		t.Error(err)
	}
	smac := p4test.Entry("smac", 0, p4test.Do("mark", 1), p4rtmsg.Exact(1, 1))
	err := write(p4rtmsg.Insert(smac))
	if got := details(t, err); len(got) != 1 || got[0] != codes.PermissionDenied {
		t.Errorf("write out of scope: %v %v", err, got)
	}
	r.mustWrite(p4rtmsg.Insert(smac))
	got, _, err := r.read(&p4v1.ReadRequest{DeviceId: deviceID, Role: "learner", Entities: []*p4v1.Entity{p4rtmsg.Entity(&p4v1.TableEntry{})}})
	if err != nil || len(got) != 1 {
		t.Errorf("a read by role sees %v, %v", got, err)
	}
	_, err = r.client.SetForwardingPipelineConfig(r.ctx, &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: deviceID, Role: "learner", ElectionId: id(5), Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY, Config: p4test.Config(),
	})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a limited role verifies a pipeline: %v", err)
	}
	s.send(packetOut(5, 0, "payload"))
	s.failed(codes.PermissionDenied)
	// Packet-ins go to the role that wants them.
	r.PacketIn([]byte{0, 0, 'x'})
	if m := all.next(); string(m.GetPacket().GetPayload()) != "x" {
		t.Errorf("got %v, want a packet-in", m)
	}
	select {
	case m := <-s.messages:
		t.Errorf("the other role got %v", m)
	default:
	}
}

func TestRoleConfigurations(t *testing.T) {
	for _, c := range []struct {
		fields map[string]any
		ok     bool
	}{
		{map[string]any{}, true},
		{map[string]any{"objects": []any{"a", "b*"}, "packet_in": true, "packet_out": false}, true},
		{map[string]any{"objects": "a"}, false},
		{map[string]any{"objects": []any{1.0}}, false},
		{map[string]any{"objects": []any{""}}, false},
		{map[string]any{"packet_in": "yes"}, false},
		{map[string]any{"other": true}, false},
	} {
		if _, err := parseScope(roleConfig(t, c.fields)); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.fields, err)
		}
	}
	if sc, err := parseScope(nil); sc != nil || err != nil {
		t.Errorf("no configuration is %v, %v", sc, err)
	}
}
