package tofino

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt/bfrtpb"
)

// raw is a client that sends any message.
type raw struct {
	t   *testing.T
	rpc pb.BfRuntimeClient
}

func dial(t *testing.T, s *Server, subscribe uint32) raw {
	t.Helper()
	conn, err := grpc.NewClient(s.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r := raw{t, pb.NewBfRuntimeClient(conn)}
	if subscribe != 0 {
		if err := r.subscribe(subscribe, 0); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r raw) subscribe(id, device uint32) error {
	ch, err := r.rpc.StreamChannel(r.t.Context())
	if err != nil {
		return err
	}
	m := &pb.StreamMessageRequest{ClientId: id, Update: &pb.StreamMessageRequest_Subscribe{Subscribe: &pb.Subscribe{DeviceId: device}}}
	if err := ch.Send(m); err != nil {
		return err
	}
	_, err = ch.Recv()
	return err
}

func target(pipe uint32) *pb.TargetDevice { return &pb.TargetDevice{PipeId: pipe} }

func key(fields ...*pb.KeyField) *pb.TableEntry_Key {
	return &pb.TableEntry_Key{Key: &pb.TableKey{Fields: fields}}
}

func exact(id uint32, b ...byte) *pb.KeyField {
	return &pb.KeyField{FieldId: id, MatchType: &pb.KeyField_Exact_{Exact: &pb.KeyField_Exact{Value: b}}}
}

func stream(id uint32, b ...byte) *pb.DataField {
	return &pb.DataField{FieldId: id, Value: &pb.DataField_Stream{Stream: b}}
}

func word(id uint32, s string) *pb.DataField {
	return &pb.DataField{FieldId: id, Value: &pb.DataField_StrVal{StrVal: s}}
}

func yes(id uint32) *pb.DataField {
	return &pb.DataField{FieldId: id, Value: &pb.DataField_BoolVal{BoolVal: true}}
}

// Identifiers of the public schema.
const (
	chipID = 0xff050081
	poolID = 0xff050002
	portID = 0xff050013
	flowID = 0xff050014
	ppgID  = 0xff050030
	egID   = 0xff050024
	cfgID  = 0xff050010
)

func (r raw) write(client uint32, program string, kind pb.Update_Type, e *pb.TableEntry) error {
	_, err := r.rpc.Write(context.Background(), &pb.WriteRequest{
		ClientId: client, P4Name: program, Target: target(0xffff),
		Updates: []*pb.Update{{Type: kind, Entity: &pb.Entity{Entity: &pb.Entity_TableEntry{TableEntry: e}}}},
	})
	return err
}

func (r raw) read(client uint32, e *pb.TableEntry) ([]*pb.Entity, error) {
	answers, err := r.rpc.Read(context.Background(), &pb.ReadRequest{
		ClientId: client, P4Name: Program, Target: target(0xffff), Entities: []*pb.Entity{{Entity: &pb.Entity_TableEntry{TableEntry: e}}},
	})
	var all []*pb.Entity
	for err == nil {
		var m *pb.ReadResponse
		if m, err = answers.Recv(); err == nil {
			all = append(all, m.GetEntities()...)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return all, err
}

func data(action uint32, fields ...*pb.DataField) *pb.TableData {
	if action == 0 && len(fields) == 0 {
		return nil
	}
	return &pb.TableData{ActionId: action, Fields: fields}
}

// TestRefuses sends requests with one violation of the schemas each. Each is refused, and each
// would fail the test.
func TestRefuses(t *testing.T) {
	s := NewServer(t, "tofino1")
	r := dial(t, s, 7)
	skid := []byte("IG_SKID_POOL")
	pool := func(d ...*pb.DataField) *pb.TableEntry {
		return &pb.TableEntry{TableId: poolID, EntryTgt: target(0xffff), Value: key(exact(1, skid...)), Data: data(0, d...)}
	}
	group := func(pipe uint32, d ...*pb.DataField) *pb.TableEntry {
		return &pb.TableEntry{TableId: ppgID, EntryTgt: target(pipe), Value: key(exact(1, 1)), Data: data(1, d...)}
	}
	flow := func(d ...*pb.DataField) *pb.TableEntry {
		return &pb.TableEntry{TableId: flowID, EntryTgt: target(0xffff), Value: key(exact(1, 0, 0, 0, 4)), Data: data(0, d...)}
	}
	with := func(e *pb.TableEntry, change func(*pb.TableEntry)) *pb.TableEntry {
		change(e)
		return e
	}
	good := pool(stream(1, 0, 0, 4, 0))
	modify, insert := pb.Update_MODIFY, pb.Update_INSERT
	all := &pb.DataField{FieldId: 3, Value: &pb.DataField_IntArrVal{IntArrVal: &pb.DataField_IntArray{Val: []uint32{0, 1, 2, 3, 4, 5, 6, 7}}}}
	for _, e := range []*pb.TableEntry{good, flow(word(1, "PFC"), all), {TableId: egID, EntryTgt: target(1), Value: key(exact(1, 2), exact(2, 3)), Data: data(1, &pb.DataField{FieldId: 3, Value: &pb.DataField_BoolVal{}})}} {
		if err := r.write(7, Program, modify, e); err != nil || len(s.Refused()) != 0 {
			t.Errorf("a good write of %v: %v", e, err)
		}
	}
	for _, c := range []struct {
		name string
		kind pb.Update_Type
		e    *pb.TableEntry
		text string
	}{
		{"unknown table", modify, with(pool(), func(e *pb.TableEntry) { e.TableId = 0xff0500ff }), "which the schema does not have"},
		{"unknown field", modify, pool(stream(2, 0, 0, 0, 1)), "is encoded as"},
		{"field twice", modify, pool(stream(1, 0, 0, 0, 1), stream(1, 0, 0, 0, 1)), "a field once, not twice"},
		{"over-wide", modify, pool(stream(1, 1, 0, 0, 0, 0)), "allowed is 0 to 286720"},
		{"too narrow", modify, pool(stream(1, 1)), "is encoded as"},
		{"more cells than there are", modify, pool(stream(1, 0, 4, 0x60, 1)), "286721: allowed is 0 to 286720"},
		{"another type", modify, pool(word(1, "7")), "7 where 0 to 286720 belongs"},
		{"no value", modify, pool(&pb.DataField{FieldId: 1}), "is encoded as"},
		{"wrong choice", modify, flow(word(1, "XON")), "allowed is one of"},
		{"class out of range", modify, flow(&pb.DataField{FieldId: 3, Value: &pb.DataField_IntArrVal{IntArrVal: &pb.DataField_IntArray{Val: []uint32{8}}}}), "allowed is a list, each 0 to 7"},
		{"only to be read", modify, flow(word(2, "PFC")), "mode_rx is PFC: allowed is reading it"},
		{"key of another choice", modify, with(pool(), func(e *pb.TableEntry) { e.Value = key(exact(1, []byte("IG_SKID")...)) }), "pool is IG_SKID: allowed is one of"},
		{"no key", modify, with(pool(), func(e *pb.TableEntry) { e.Value = nil }), "key is empty"},
		{"key of another width", modify, with(flow(), func(e *pb.TableEntry) { e.Value = key(exact(1, 4)) }), "is encoded as"},
		{"key out of range", modify, with(flow(), func(e *pb.TableEntry) { e.Value = key(exact(1, 0, 0, 2, 0)) }), "512: allowed is 0 to 511"},
		{"another key", modify, with(flow(), func(e *pb.TableEntry) { e.Value = key(exact(1, 0, 0, 0, 4), exact(2, 0)) }), "unknown key field 2"},
		{"table of one pipe", modify, with(flow(), func(e *pb.TableEntry) { e.EntryTgt = target(0) }), "is encoded as"},
		{"all pipes", insert, group(0xffff), "pipe is all: allowed is one pipe"},
		{"no such pipe", insert, group(4, stream(1, 0, 0, 0, 4)), "allowed is 0 to 3"},
		{"another device", modify, with(flow(), func(e *pb.TableEntry) { e.EntryTgt.DeviceId = 1 }), "is encoded as"},
		{"no target", modify, with(flow(), func(e *pb.TableEntry) { e.EntryTgt = nil }), "is encoded as"},
		{"insert where all is fixed", insert, flow(word(1, "PFC")), "operation is insert"},
		{"delete where all is fixed", pb.Update_DELETE, flow(), "operation is delete"},
		{"unknown kind", pb.Update_MODIFY_INC, flow(), "MODIFY_INC"},
		{"default entry of keys", modify, with(flow(), func(e *pb.TableEntry) { e.IsDefaultEntry = true }), "is encoded as"},
		{"flags", modify, with(flow(), func(e *pb.TableEntry) { e.TableFlags = &pb.TableFlags{FromHw: true} }), "is encoded as"},
		{"action", insert, with(group(0), func(e *pb.TableEntry) { e.Data.ActionId = 3 }), "unknown action 3"},
		{"field of another action", modify, &pb.TableEntry{TableId: egID, EntryTgt: target(0), Value: key(exact(1, 0), exact(2, 0)), Data: data(2, stream(5, 0, 0, 0, 1))}, "is encoded as"},
		{"mandatory", insert, group(0, yes(2)), "dev_port is left out"},
		{"port of another pipe", insert, group(1, stream(1, 0, 0, 0, 4)), "a port of pipe 1"},
		{"more headroom than the pool", insert, group(0, stream(1, 0, 0, 0, 4), stream(3, 0, 1, 0, 0)), "up to the pool's 1024"},
		{"no such group", modify, group(0, yes(2)), "no such group"},
		{"table that is only read", modify, &pb.TableEntry{TableId: cfgID, EntryTgt: target(0xffff), Value: key(exact(1, 0, 0, 0, 4)), Data: data(0)}, "operation is modify"},
		{"headroom of a port", modify, &pb.TableEntry{TableId: portID, EntryTgt: target(0xffff), Value: key(exact(1, 0, 0, 0, 4)), Data: data(0, stream(7, 0, 1, 0, 0))}, "up to the pool's 1024"},
	} {
		err := r.write(7, Program, c.kind, c.e)
		details := status.Convert(err).Details()
		if len(details) != 1 {
			t.Errorf("%s: not refused: %v", c.name, err)
			continue
		}
		refused := s.Refused()
		if e, ok := details[0].(*pb.Error); !ok || e.GetCanonicalCode() == 0 || len(refused) != 1 || !strings.Contains(refused[0], c.text) {
			t.Errorf("%s: refused %q, want %q", c.name, refused, c.text)
		}
	}
	for name, try := range map[string]func() error{
		"not subscribed":      func() error { return r.write(8, Program, modify, good) },
		"another program":     func() error { return r.write(7, "tna_counter", modify, good) },
		"subscribed already":  func() error { return r.subscribe(7, 0) },
		"no client":           func() error { return r.subscribe(0, 0) },
		"device of no driver": func() error { return r.subscribe(9, 3) },
		"unknown part of a message": func() error {
			e := pool(stream(1, 0, 0, 4, 0))
			e.ProtoReflect().SetUnknown([]byte{0x1d << 3 & 0x7f, 1})
			return r.write(7, Program, modify, e)
		},
		"read of no table": func() error {
			_, err := r.read(7, &pb.TableEntry{TableId: 5, EntryTgt: target(0xffff)})
			return err
		},
		"default entry that is not to be read": func() error {
			_, err := r.read(7, &pb.TableEntry{TableId: flowID, EntryTgt: target(0xffff), IsDefaultEntry: true})
			return err
		},
	} {
		if err, refused := try(), s.Refused(); status.Code(err) == codes.OK || len(refused) != 1 {
			t.Errorf("%s: %v, refused %q", name, err, refused)
		}
	}
	got, err := r.read(7, good)
	if err == nil {
		t.Errorf("a read with values: %v", got)
	}
	s.Refused()
	got, err = r.read(7, &pb.TableEntry{TableId: poolID, EntryTgt: target(0xffff), Value: key(exact(1, skid...))})
	if err != nil || len(got) != 1 || fmt.Sprint(got[0].GetTableEntry().GetData().GetFields()[0].GetStream()) != "[0 0 4 0]" {
		t.Errorf("%v %v: none of that was to change anything", got, err)
	}
}

// TestFails checks that an unexpected refusal fails a test.
func TestFails(t *testing.T) {
	fake := &counted{TB: t}
	s := NewServer(fake, "tofino2")
	r := dial(t, s, 1)
	if err := r.write(1, Program, pb.Update_MODIFY, &pb.TableEntry{TableId: 1}); err == nil {
		t.Error("not refused")
	}
	if err := r.write(1, Program, pb.Update_MODIFY, &pb.TableEntry{TableId: chipID, EntryTgt: target(0xffff), IsDefaultEntry: true, Data: data(0, stream(1, 3))}); err != nil {
		t.Error(err)
	}
	for i := len(fake.cleanups) - 1; i >= 0; i-- {
		fake.cleanups[i]()
	}
	if fake.errors != 1 {
		t.Errorf("%d errors", fake.errors)
	}
}

// counted is a test that counts its errors.
type counted struct {
	testing.TB
	errors   int
	cleanups []func()
}

func (c *counted) Errorf(string, ...any) { c.errors++ }
func (c *counted) Cleanup(f func())      { c.cleanups = append(c.cleanups, f) }
