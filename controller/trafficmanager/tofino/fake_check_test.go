package tofino

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
	pb "github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt/bfrtpb"
)

// update decodes an update, or returns why it is not allowed.
func update(s *bfrt.Schema, u *pb.Update) (bfrt.Change, string) {
	ch := bfrt.Change{Operation: bfrt.Operation(strings.ToLower(u.GetType().String()))}
	if !slices.Contains([]bfrt.Operation{bfrt.Insert, bfrt.Modify, bfrt.Delete}, ch.Operation) {
		return ch, fmt.Sprintf("update of type %v", u.GetType())
	}
	e := u.GetEntity().GetTableEntry()
	var err error
	if ch.Row, err = s.Decode(e); err != nil {
		return ch, err.Error()
	}
	return ch, encodes(s, ch.Operation, ch.Row, e)
}

// query decodes the request of a Read, or returns why it is not allowed.
func query(s *bfrt.Schema, entity *pb.Entity) (bfrt.Row, string) {
	e := entity.GetTableEntry()
	r, err := s.Decode(e)
	if err != nil {
		return r, err.Error()
	}
	r.Fresh = e.GetTableFlags().GetFromHw()
	t := s.Table(r.Table)
	known := t.Fields(t.Action(r.Action))
	r.Data = nil
	for _, f := range e.GetData().GetFields() { // the request names fields without values
		at := slices.IndexFunc(known, func(k bfrt.Field) bool { return k.ID == f.GetFieldId() })
		if at < 0 {
			return r, fmt.Sprintf("%s: field %d is not one of the table and action", r.Table, f.GetFieldId())
		}
		r.Data = append(r.Data, bfrt.Named{Name: known[at].Name})
	}
	return r, encodes(s, bfrt.Read, r, e)
}

// encodes returns the error of an entry that is not encoded as the schema requires; each row has
// exactly one encoding.
func encodes(s *bfrt.Schema, op bfrt.Operation, r bfrt.Row, e *pb.TableEntry) string {
	if r.Pipe >= pipes && r.Pipe != bfrt.AllPipes {
		return fmt.Sprintf("%s: pipe of the target is %#x: allowed is 0 to %d", r.Table, r.Pipe, pipes-1)
	}
	want, err := s.Encode(0, op, r)
	switch {
	case err != nil:
		return err.Error()
	case !proto.Equal(want, e):
		return fmt.Sprintf("%s is encoded as %v: want %v", r.Name(), e, want)
	}
	return ""
}

// entry encodes a row as an entry of an answer, with its values.
func entry(s *bfrt.Schema, r bfrt.Row) (*pb.TableEntry, error) {
	r.Data = slices.DeleteFunc(slices.Clone(r.Data), func(n bfrt.Named) bool { return n.Value == nil }) // not requested
	e, err := s.Encode(0, bfrt.Read, r)
	if err != nil {
		return nil, err
	}
	t := s.Table(r.Table)
	known := t.Fields(t.Action(r.Action))
	for i, d := range e.GetData().GetFields() {
		known[slices.IndexFunc(known, func(k bfrt.Field) bool { return k.ID == d.GetFieldId() })].Put(d, r.Data[i].Value)
	}
	return e, nil
}
