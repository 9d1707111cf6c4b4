// Package conformance holds black-box tests of a P4Runtime switch: P4Runtime messages and frames go in, P4Runtime
// messages and frames come out. The cases cover the same as the tests of BMv2's simple_switch_grpc and of SONiC
// PINS' arbitration, but are written anew. All run on the embedded switch, and with HEADGATE_BMV2=1 also on BMv2;
// quirks lists where BMv2 behaves differently.
package conformance

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/tests/dataplane/target"
)

// patience bounds the wait for an expected message; a test that passes rarely waits.
const patience = 60 * time.Second

// quirks are a target's deviations from the specification, and its choices where the specification leaves one.
// The zero value is the embedded switch's, except the times.
type quirks struct {
	idle           time.Duration // the shortest TTL that counts as one
	settle         time.Duration // wait for events without a message
	earlyRepeat    bool          // repeats an idle notification before another TTL has passed
	earlyDigests   bool          // sends digests that arrived before they were configured
	lax            bool          // sends invalid packet-outs, or drops them silently
	ownArbitration bool          // its own arbitration rules: the column bmv2 of scripts
	openWhenAlone  bool          // without an open stream, anyone may write
	noStreamError  bool          // drops stream messages silently
}

// rig is a target under test.
type rig struct {
	*testing.T
	target.Target
	quirks
	client  p4v1.P4RuntimeClient
	primary *session
	program *program
}

func newRig(t *testing.T, tg target.Target, q quirks) *rig {
	t.Helper()
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	conn, err := tg.Dial()
	if err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, Target: tg, quirks: q, client: p4v1.NewP4RuntimeClient(conn)}
}

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.Cleanup(cancel)
	return ctx
}

// load becomes primary and pushes a program.
func (r *rig) load(name string) *program {
	r.Helper()
	r.primary = r.open()
	r.primary.arbitrate(device(&p4v1.Uint128{Low: 1}))
	r.primary.told(codes.OK)
	r.program = loadProgram(r.T, name)
	_, err := r.client.SetForwardingPipelineConfig(r.context(), &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: target.DeviceID, ElectionId: &p4v1.Uint128{Low: 1},
		Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, Config: r.program.config(),
	})
	if err != nil {
		r.Fatal(err)
	}
	return r.program
}

func (r *rig) try(updates ...*p4v1.Update) error {
	_, err := r.client.Write(r.context(), &p4v1.WriteRequest{
		DeviceId: target.DeviceID, ElectionId: &p4v1.Uint128{Low: 1}, Updates: updates})
	return err
}

func (r *rig) write(updates ...*p4v1.Update) {
	r.Helper()
	if err := r.try(updates...); err != nil {
		r.Fatalf("write %v: %v", updates, details(err))
	}
}

// refused makes an update that must fail with the given code.
func (r *rig) refused(want codes.Code, u *p4v1.Update) {
	r.Helper()
	if got := details(r.try(u)); len(got) != 1 || codes.Code(got[0].GetCanonicalCode()) != want {
		r.Errorf("write %v: %v, want %v", u, got, want)
	}
}

// details returns the errors of the updates of a Write.
func details(err error) (all []*p4v1.Error) {
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*p4v1.Error); ok {
			all = append(all, e)
		}
	}
	if len(all) == 0 && err != nil {
		all = []*p4v1.Error{{CanonicalCode: int32(status.Code(err)), Message: err.Error()}}
	}
	return all
}

func (r *rig) read(e *p4v1.Entity) (all []*p4v1.Entity) {
	r.Helper()
	stream, err := r.client.Read(r.context(), &p4v1.ReadRequest{DeviceId: target.DeviceID, Entities: []*p4v1.Entity{e}})
	if err != nil {
		r.Fatal(err)
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			r.Fatalf("read %v: %v", e, err)
		}
		all = append(all, m.Entities...)
	}
}

// reads checks the result of reading an entity.
func (r *rig) reads(what *p4v1.TableEntry, want ...*p4v1.TableEntry) {
	r.Helper()
	var entities []*p4v1.Entity
	for _, w := range want {
		entities = append(entities, of(w))
	}
	if diff := cmp.Diff(entities, r.read(of(what)), protocmp.Transform()); diff != "" {
		r.Errorf("read %v (-want +got):\n%s", what, diff)
	}
}

// of wraps an entity.
func of(m proto.Message) *p4v1.Entity {
	switch m := m.(type) {
	case *p4v1.TableEntry:
		return p4rtmsg.Entity(m)
	case *p4v1.DirectCounterEntry:
		return p4rtmsg.Entity(m)
	case *p4v1.DirectMeterEntry:
		return p4rtmsg.Entity(m)
	case *p4v1.DigestEntry:
		return p4rtmsg.Entity(m)
	case *p4v1.ActionProfileMember:
		return p4rtmsg.Entity(m)
	case *p4v1.ActionProfileGroup:
		return p4rtmsg.Entity(m)
	case *p4v1.MulticastGroupEntry:
		return replication(&p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: m}})
	case *p4v1.CloneSessionEntry:
		return replication(&p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: m}})
	}
	panic("not an entity of these tests")
}

func replication(e *p4v1.PacketReplicationEngineEntry) *p4v1.Entity {
	return p4rtmsg.Entity(e)
}

func insert(m proto.Message) *p4v1.Update {
	return &p4v1.Update{Type: p4v1.Update_INSERT, Entity: of(m)}
}

func modify(m proto.Message) *p4v1.Update {
	return &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: of(m)}
}

func remove(m proto.Message) *p4v1.Update {
	return &p4v1.Update{Type: p4v1.Update_DELETE, Entity: of(m)}
}

func (r *rig) send(port uint32, frames ...[]byte) {
	r.Helper()
	if err := r.Send(port, frames...); err != nil {
		r.Fatal(err)
	}
}

// next returns the next frame that leaves any port.
func (r *rig) next() target.Frame {
	r.Helper()
	f, ok := r.Receive(target.Any, patience)
	if !ok {
		r.Fatal("no frame left the switch")
	}
	return f
}

// passes sends a frame and checks the next frame that leaves.
func (r *rig) passes(port uint32, frame []byte, outPort uint32, out []byte) {
	r.Helper()
	r.send(port, frame)
	if diff := cmp.Diff(target.Frame{Port: outPort, Data: out}, r.next()); diff != "" {
		r.Errorf("frame %x of port %d (-want +got):\n%s", frame, port, diff)
	}
}

// setUp pulls or plugs in a cable.
func (r *rig) setUp(port uint32, up bool) {
	r.Helper()
	if err := r.SetUp(port, up); err != nil {
		r.Fatal(err)
	}
}

// eventually waits for a condition that no message announces.
func (r *rig) eventually(what string, ok func() bool) {
	r.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.Fatalf("not within %v: %s", patience, what)
		}
	}
}
