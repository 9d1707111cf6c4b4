package externs

import (
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestLossless(t *testing.T) {
	for _, l := range []Lossless{{}, {0: 1, 3: 1 << 3}, {3: 1<<4 | 1<<6, 7: 1 << 7}} {
		if got, err := ReadLossless(l.Entity().GetExternEntry(), 8); err != nil || got != l {
			t.Errorf("%v is read as %v, %v", l, got, err)
		}
	}
	if l := (Lossless{3: 1<<4 | 1<<6}); l.Class(6) != 3 || l.Class(3) != -1 {
		t.Errorf("queue 6 has class %d, queue 3 class %d, want 3 and none", l.Class(6), l.Class(3))
	}
}

func TestLosslessErrors(t *testing.T) {
	list := func(v ...any) map[string]any { return map[string]any{"class_3": v} }
	for want, fields := range map[string]map[string]any{
		`field "class_8" of the lossless classes is unknown, want class_0 to class_7`: {"class_8": []any{1.0}},
		`field "class_03" of the lossless classes is unknown`:                         {"class_03": []any{1.0}},
		`field "3" of the lossless classes is unknown`:                                {"3": []any{3.0}},
		"class_3 has the queue 8, want 0 to 7":                                        list(8.0),
		"class_3 has the queue -1, want 0 to 7":                                       list(-1.0),
		"class_3 has the queue 1.5, want 0 to 7":                                      list(1.5),
		"class_3 has the queue 1e+300, want 0 to 7":                                   list(1e300),
		"class_3 has the queue x, want 0 to 7":                                        list("x"),
		"class_3 is [], want a list of its queues":                                    list(),
		"class_3 is 3, want a list of its queues":                                     {"class_3": 3.0},
		"has the queue 3, which class":                                                {"class_3": []any{3.0}, "class_4": []any{3.0}},
	} {
		s, err := structpb.NewStruct(fields)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ReadLossless(pack(LosslessID, s.AsMap()).GetExternEntry(), 8); err == nil || !strings.Contains(err.Error(), want) || got != (Lossless{}) {
			t.Errorf("%v: %v, error %v, want %s", fields, got, err, want)
		}
	}
}

func FuzzLossless(f *testing.F) {
	f.Add(Lossless{3: 1 << 3}.Entity().GetExternEntry().GetEntry().GetValue(), 8)
	f.Fuzz(func(t *testing.T, b []byte, queues int) {
		queues = 1 + queues&31
		e := &p4v1.ExternEntry{Entry: &anypb.Any{TypeUrl: "type.googleapis.com/google.protobuf.Struct", Value: b}}
		l, err := ReadLossless(e, queues)
		if err != nil {
			return
		}
		if again, err := ReadLossless(l.Entity().GetExternEntry(), queues); err != nil || again != l {
			t.Errorf("%v is read as %v, %v", l, again, err)
		}
	})
}
