package headgatev1

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Values of Capability.by: the part of a target that has a capability.
const (
	ByNothing        = ""
	ByProgram        = "program"         // the P4 program that it runs
	ByTrafficManager = "traffic manager" // set through BF Runtime
	ByTarget         = "target"          // the target itself, with any program
)

// Word returns a value of an enumeration for people and metrics: STATE_READY is "ready".
func Word(v fmt.Stringer) string {
	_, name, _ := strings.Cut(v.String(), "_")
	return strings.ToLower(name)
}

// Stamp returns a time as the API has it; nil for the zero time, which means unknown.
func Stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// Duration returns a duration as the API has it, 0 for a negative one.
func Duration(d time.Duration) *durationpb.Duration { return durationpb.New(max(d, 0)) }

// Line returns the change as one line for people, which is Change.text.
func (c *Change) Line() string {
	text := c.GetTable()
	if c.GetKey() != "" {
		text += " " + c.GetKey()
	}
	switch {
	case c.GetKind() == Change_KIND_MODIFY:
		return text + ": " + cmp.Or(c.GetOld(), "unknown") + " → " + c.GetNew()
	case c.GetOld()+c.GetNew() != "":
		text += " → " + c.GetOld() + c.GetNew()
	}
	return text
}

// Addresses returns the host's IP addresses, IPv4 first.
func (h *Host) Addresses() (list []netip.Addr) {
	for _, text := range []string{h.GetIpv4(), h.GetIpv6()} {
		if a, err := netip.ParseAddr(text); err == nil {
			list = append(list, a)
		}
	}
	return list
}

// Diff returns the changes that turn one table's values from, by key, into the values to. The changes are in the
// order of the keys and lack their text.
func Diff(table string, from, to map[string]string) (list []*Change) {
	keys := maps.Clone(to)
	maps.Copy(keys, from)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		before, was := from[key]
		after, is := to[key]
		c := &Change{Kind: Change_KIND_MODIFY, Table: table, Key: key, Old: before, New: after}
		switch {
		case !was:
			c.Kind = Change_KIND_INSERT
		case !is:
			c.Kind = Change_KIND_DELETE
		case before == after:
			continue
		}
		list = append(list, c)
	}
	return list
}

// Clean makes all texts of a message, and of those in it, valid UTF-8; otherwise the message cannot be encoded.
// Texts that others wrote, such as the errors of a switch, may be invalid. It writes nothing into a message
// that is clean.
func Clean(m proto.Message) { clean(m.ProtoReflect()) }

func clean(m protoreflect.Message) {
	text := func(v protoreflect.Value, set func(protoreflect.Value)) {
		if s := v.String(); !utf8.ValidString(s) {
			set(protoreflect.ValueOfString(strings.ToValidUTF8(s, "\uFFFD")))
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		isText, isMessage := f.Kind() == protoreflect.StringKind, f.Message() != nil
		switch {
		case f.IsMap() || !isText && !isMessage:
		case f.IsList():
			for i := range v.List().Len() {
				if isText {
					text(v.List().Get(i), func(valid protoreflect.Value) { v.List().Set(i, valid) })
				} else {
					clean(v.List().Get(i).Message())
				}
			}
		case isText:
			text(v, func(valid protoreflect.Value) { m.Set(f, valid) })
		default:
			clean(v.Message())
		}
		return true
	})
}
