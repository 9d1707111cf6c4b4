package bfrt

import (
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt/bfrtpb"
)

// FuzzReply: an entry from BF Runtime's server is either refused, or is a valid row of a table in
// the schema.
func FuzzReply(f *testing.F) {
	s, err := Load("tofino2", nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, t := range s.Tables() {
		e := &pb.TableEntry{TableId: t.ID, Value: &pb.TableEntry_Key{Key: &pb.TableKey{}}, Data: &pb.TableData{}}
		for i := range t.Keys {
			e.GetKey().Fields = append(e.GetKey().Fields, &pb.KeyField{FieldId: t.Keys[i].ID, MatchType: &pb.KeyField_Exact_{Exact: &pb.KeyField_Exact{Value: []byte{1}}}})
		}
		for i := range t.Data {
			e.Data.Fields = append(e.Data.Fields, &pb.DataField{FieldId: t.Data[i].ID, Value: &pb.DataField_Stream{Stream: []byte{1}}})
		}
		text, err := proto.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e := &pb.TableEntry{}
		if proto.Unmarshal(text, e) != nil {
			return
		}
		if row, err := s.Decode(e); err == nil && s.byID[e.GetTableId()] == nil {
			t.Errorf("%v is %v", e, row)
		}
	})
}

// FuzzLoad: a program's schema is either refused, or its tables can be found by name.
func FuzzLoad(f *testing.F) {
	program, err := os.ReadFile("testdata/program.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(program)
	f.Add([]byte(`{"tables":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Load("tofino1", text)
		if err != nil {
			return
		}
		for _, table := range s.Tables() {
			if s.Table(table.Name) == nil {
				t.Errorf("%q is not found", table.Name)
			}
		}
	})
}
