package headgatev1

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestEveryDurationHasBothForms checks all messages of the API: a field of whole nanoseconds is deprecated and has
// a Duration beside it, and each of the two gets the other's value.
func TestEveryDurationHasBothForms(t *testing.T) {
	pairs := 0
	for _, file := range []protoreflect.FileDescriptor{File_api_headgate_v1_headgate_proto, File_api_headgate_v1_status_proto} {
		for i := range file.Messages().Len() {
			d := file.Messages().Get(i)
			for _, p := range planOf(d).pairs {
				pairs++
				if p.duration == nil || p.duration.Message().FullName() != "google.protobuf.Duration" {
					t.Errorf("%s has no Duration beside it", p.ns.FullName())
					continue
				}
				if !p.ns.Options().(interface{ GetDeprecated() bool }).GetDeprecated() {
					t.Errorf("%s is not deprecated", p.ns.FullName())
				}
				old, now := newOf(t, d), newOf(t, d)
				old.ProtoReflect().Set(p.ns, protoreflect.ValueOfUint64(3_000_000_001))
				now.ProtoReflect().Set(p.duration, protoreflect.ValueOfMessage((&durationpb.Duration{Seconds: 3, Nanos: 1}).ProtoReflect()))
				FillDurations(old)
				FillDurations(now)
				if !proto.Equal(old, now) || old.ProtoReflect().Get(p.ns).Uint() != 3_000_000_001 {
					t.Errorf("%s: %v from nanoseconds, %v from the Duration", p.ns.FullName(), old, now)
				}
			}
		}
	}
	if pairs == 0 {
		t.Error("no message has a duration")
	}
}

func newOf(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

func TestFillDurations(t *testing.T) {
	deep := &HostReport{
		Flows:       []*FlowReport{{RttNs: 5, MaxQd: &durationpb.Duration{Nanos: 7}}, {}},
		Completions: []*Completions{{FctNs: 1<<64 - 1}},
	}
	FillDurations(deep)
	if f := deep.Flows[0]; f.Rtt.AsDuration() != 5 || f.MaxQdNs != 7 || deep.Flows[1].Rtt != nil || Nanoseconds(deep.Completions[0].Fct) != 1<<64-1 {
		t.Errorf("a report became %v", deep)
	}
	for _, c := range []struct {
		name string
		in   *ApplyConfigRequest
		want uint64
	}{
		{"the Duration counts where both are set", &ApplyConfigRequest{ConfirmNs: 5, Confirm: &durationpb.Duration{Seconds: 1}}, 1e9},
		{"a Duration of 0 is set", &ApplyConfigRequest{ConfirmNs: 5, Confirm: &durationpb.Duration{}}, 0},
		{"less than 0 has no nanoseconds", &ApplyConfigRequest{Confirm: &durationpb.Duration{Seconds: -1}}, 0},
	} {
		if FillDurations(c.in); c.in.ConfirmNs != c.want {
			t.Errorf("%s: confirm_ns is %d, want %d", c.name, c.in.ConfirmNs, c.want)
		}
	}
	FillDurations((*HostReport)(nil))
}
