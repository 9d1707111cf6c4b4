package headgatev1

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// FillDurations fills in both forms of each time: the deprecated fields in whole nanoseconds, and the
// Durations. In m and all messages in it, a field whose name ends in _ns gets the value of its Duration; if the
// Duration is unset, it gets the value of the field. A message that has both is not written to, and messages of
// other packages are left alone.
func FillDurations(m proto.Message) {
	if m := m.ProtoReflect(); m.IsValid() && m.Descriptor().ParentFile().Package() == "headgate.v1" {
		planOf(m.Descriptor()).fill(m)
	}
}

// Nanoseconds returns a Duration in whole nanoseconds, modulo 2^64; 0 for nil and for less than 0.
func Nanoseconds(d *durationpb.Duration) uint64 {
	if d.GetSeconds() < 0 || d.GetNanos() < 0 {
		return 0
	}
	return uint64(d.GetSeconds())*1e9 + uint64(d.GetNanos())
}

// OfNanoseconds returns the Duration of n nanoseconds.
func OfNanoseconds(n uint64) *durationpb.Duration {
	return &durationpb.Duration{Seconds: int64(n / 1e9), Nanos: int32(n % 1e9)}
}

// durations lists the fields of a kind of message that are durations, and those that hold messages with
// durations.
type durations struct {
	pairs  []struct{ ns, duration protoreflect.FieldDescriptor }
	within []protoreflect.FieldDescriptor
}

var plans sync.Map // *durations by protoreflect.MessageDescriptor

func planOf(d protoreflect.MessageDescriptor) *durations {
	if p, ok := plans.Load(d); ok {
		return p.(*durations)
	}
	p := &durations{}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if of, ok := strings.CutSuffix(string(f.Name()), "_ns"); ok {
			beside := d.Fields().ByName(protoreflect.Name(of))
			if beside == nil || beside.Message() == nil {
				beside = d.Fields().ByName(protoreflect.Name(of + "_time"))
			}
			p.pairs = append(p.pairs, struct{ ns, duration protoreflect.FieldDescriptor }{f, beside})
		} else if m := f.Message(); m != nil && !f.IsMap() && m.ParentFile().Package() == d.ParentFile().Package() {
			if in := planOf(m); len(in.pairs)+len(in.within) > 0 {
				p.within = append(p.within, f)
			}
		}
	}
	plans.Store(d, p)
	return p
}

func (p *durations) fill(m protoreflect.Message) {
	for _, f := range p.pairs {
		if m.Has(f.duration) {
			if n := Nanoseconds(m.Get(f.duration).Message().Interface().(*durationpb.Duration)); n != m.Get(f.ns).Uint() || f.ns.HasPresence() && !m.Has(f.ns) {
				m.Set(f.ns, protoreflect.ValueOfUint64(n))
			}
		} else if m.Has(f.ns) {
			m.Set(f.duration, protoreflect.ValueOfMessage(OfNanoseconds(m.Get(f.ns).Uint()).ProtoReflect()))
		}
	}
	for _, f := range p.within {
		switch {
		case f.IsList():
			list, in := m.Get(f).List(), planOf(f.Message())
			for i := range list.Len() {
				in.fill(list.Get(i).Message())
			}
		case m.Has(f):
			planOf(f.Message()).fill(m.Get(f).Message())
		}
	}
}
