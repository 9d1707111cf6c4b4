package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/headgate/headgate/internal/p4rtmsg"
)

func group1() *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: 7}}
}

// fast are updates that the decoder decodes itself.
var fast = []*p4v1.Update{
	{},
	{Type: p4v1.Update_MODIFY, Entity: &p4v1.Entity{}},
	p4rtmsg.Insert(&p4v1.TableEntry{}),
	p4rtmsg.Insert(p4rtmsg.Entry(1<<31, 0, p4rtmsg.Do(3, 4, 1<<40), p4rtmsg.Exact(5, 6))),
	p4rtmsg.Modify(p4rtmsg.Entry(2, 0, p4rtmsg.Do(3), p4rtmsg.LPM(5, []byte{10, 0, 0, 0}, 8), p4rtmsg.Exact(6, 0))),
	p4rtmsg.Delete(p4rtmsg.Entry(2, -7, nil, p4rtmsg.Ternary(1, []byte{1, 2}, []byte{3, 255}))),
	p4rtmsg.Insert(p4rtmsg.Entry(2, 7, group1(), p4rtmsg.Exact(1, []byte{}))),
}

// slow are updates that it leaves to protobuf.
var slow = []*p4v1.Update{
	p4rtmsg.Insert(&p4v1.TableEntry{TableId: 2, Metadata: []byte("x"), IdleTimeoutNs: 3, Action: p4rtmsg.Do(1, 2)}),
	p4rtmsg.Insert(p4rtmsg.Entry(2, 7, nil, p4rtmsg.Range(1, 2, 3), p4rtmsg.Optional(2, 4))),
	p4rtmsg.Insert(&p4v1.ActionProfileMember{MemberId: 3, Action: p4rtmsg.Action(1, 2)}),
	p4rtmsg.Modify(&p4v1.TableEntry{TableId: 2, IsDefaultAction: true}),
	p4rtmsg.Insert(p4rtmsg.Entry(2, 7, &p4v1.TableAction{})),
}

func encode(t testing.TB, req *p4v1.WriteRequest) []byte {
	b, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func check(t *testing.T, b []byte) {
	t.Helper()
	got, want := NewRequest(), new(p4v1.WriteRequest)
	defer got.Release()
	half := len(b) / 2 // as gRPC gives it, in pieces
	failed := NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b[:half]), mem.SliceBuffer(b[half:])}, got)
	refused := proto.Unmarshal(b, want)
	if (failed == nil) != (refused == nil) {
		t.Fatalf("%x: error %v, that of protobuf is %v", b, failed, refused)
	}
	if refused == nil {
		if diff := cmp.Diff(want, &got.WriteRequest, protocmp.Transform()); diff != "" {
			t.Errorf("%x: (-protobuf's +got)\n%s", b, diff)
		}
	}
}

// twice is an update that has a part in two pieces, which protobuf joins.
func twice(t *testing.T) []byte {
	a, b := encode(t, &p4v1.WriteRequest{Updates: fast[3:4]}), encode(t, &p4v1.WriteRequest{Updates: fast[5:6]})
	both := append(a[2:len(a):len(a)], b[2:]...) // without tag and length, of a byte each
	return protowire.AppendBytes(protowire.AppendTag(nil, updatesField, protowire.BytesType), both)
}

func TestUnmarshal(t *testing.T) {
	all := &p4v1.WriteRequest{DeviceId: 3, Role: "r", ElectionId: &p4v1.Uint128{Low: 4}, Atomicity: p4v1.WriteRequest_ROLLBACK_ON_ERROR}
	for range 10 { // more than a block
		all.Updates = append(append(all.Updates, fast...), slow...)
	}
	b := encode(t, all)
	check(t, b)
	for n := range len(b) / 10 {
		check(t, b[:n])
	}
	check(t, twice(t))
	var d decoder
	for i, u := range fast {
		if d.update(encode(t, &p4v1.WriteRequest{Updates: []*p4v1.Update{u}})[2:]) == nil {
			t.Errorf("fast[%d], %v, was left to protobuf", i, u)
		}
	}
	for i, u := range slow {
		if d.update(encode(t, &p4v1.WriteRequest{Updates: []*p4v1.Update{u}})[2:]) != nil {
			t.Errorf("slow[%d], %v, was not left to protobuf", i, u)
		}
	}
}

// Decoding updates allocates nothing, because it reuses the memory of earlier ones.
func TestAllocations(t *testing.T) {
	req := &p4v1.WriteRequest{}
	for range 320 {
		req.Updates = append(req.Updates, fast[3], fast[4], fast[5])
	}
	b := encode(t, req)
	n := testing.AllocsPerRun(10, func() {
		r := NewRequest()
		if err := r.Unmarshal(b); err != nil {
			t.Fatal(err)
		}
		r.Release()
	})
	if most := float64(len(req.Updates)) / 10; n > most {
		t.Errorf("%v allocations for %d updates, want at most %v", n, len(req.Updates), most)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, u := range append(fast[:len(fast):len(fast)], slow...) {
		f.Add(encode(f, &p4v1.WriteRequest{Updates: []*p4v1.Update{u, u}, DeviceId: 1}))
	}
	f.Fuzz(check)
}
