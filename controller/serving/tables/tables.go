// Package tables shows what features know of a switch, pb.FeatureStatus, as tables: to people, to Prometheus, and in
// pb.SwitchStatus.status. The options of status.proto say how.
package tables

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// Table describes one table of pb.FeatureStatus, as status.proto declares it. It is never changed.
type Table struct {
	Feature string
	Name    string   // a word, unique within the feature
	Keys    []string // columns that identify a row, such as "port"; labels of the metrics
	Columns []Column

	feature, table protoreflect.FieldDescriptor
	keys           []protoreflect.FieldDescriptor
}

// Column is one value of each row.
type Column struct {
	*pb.Shown
	field protoreflect.FieldDescriptor
}

// All are the tables that features show, in the order of status.proto. They are never changed.
var All = all()

func all() (list []*Table) {
	for feature := range fields((&pb.FeatureStatus{}).ProtoReflect().Descriptor()) {
		for table := range fields(feature.Message()) {
			t := &Table{Feature: string(feature.Name()), Name: shown(table).GetTable(), feature: feature, table: table}
			if t.Name == "" {
				t.Name = string(table.Name())
			}
			for f := range fields(table.Message()) {
				if s := shown(f); s.GetKey() {
					t.Keys, t.keys = append(t.Keys, string(f.Name())), append(t.keys, f)
				} else if s.GetHead() != "" {
					t.Columns = append(t.Columns, Column{s, f})
				}
			}
			list = append(list, t)
		}
	}
	return list
}

func fields(m protoreflect.MessageDescriptor) iter.Seq[protoreflect.FieldDescriptor] {
	return func(yield func(protoreflect.FieldDescriptor) bool) {
		for i := range m.Fields().Len() {
			if !yield(m.Fields().Get(i)) {
				return
			}
		}
	}
}

func shown(f protoreflect.FieldDescriptor) *pb.Shown {
	return proto.GetExtension(f.Options(), pb.E_Shown).(*pb.Shown)
}

// Row has a value for each of the table's keys and for each of its columns.
type Row struct {
	Keys []string
	// Values are of the types string, bool, uint64, float64, units.Bytes, time.Duration
	// and time.Time; nil is unknown.
	Values []any
}

// Rows returns the rows that a status has of the table.
func (t *Table) Rows(s *pb.FeatureStatus) []Row {
	if s == nil || !s.ProtoReflect().Has(t.feature) {
		return nil
	}
	of := s.ProtoReflect().Get(t.feature).Message()
	if !of.Has(t.table) {
		return nil
	}
	if !t.table.IsList() {
		return []Row{t.row(of.Get(t.table).Message())}
	}
	list := of.Get(t.table).List()
	rows := make([]Row, list.Len())
	for i := range rows {
		rows[i] = t.row(list.Get(i).Message())
	}
	return rows
}

func (t *Table) row(m protoreflect.Message) Row {
	r := Row{Keys: make([]string, len(t.keys)), Values: make([]any, len(t.Columns))}
	for i, f := range t.keys {
		switch v := value(m, f).(type) {
		case nil:
		case string:
			r.Keys[i] = v
		case uint64:
			r.Keys[i] = strconv.FormatUint(v, 10)
		}
	}
	for i, c := range t.Columns {
		r.Values[i] = value(m, c.field)
	}
	return r
}

// value returns a field as a Row has it. Its name tells the unit of an integer.
func value(m protoreflect.Message, f protoreflect.FieldDescriptor) any {
	if f.HasPresence() && !m.Has(f) {
		return nil
	}
	v := m.Get(f)
	switch f.Kind() {
	case protoreflect.MessageKind:
		if d, ok := v.Message().Interface().(*durationpb.Duration); ok {
			return d.AsDuration()
		}
		return v.Message().Interface().(*timestamppb.Timestamp).AsTime()
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		if strings.HasSuffix(string(f.Name()), "_bytes") {
			return units.Bytes(v.Uint())
		}
		return v.Uint()
	}
	return v.Interface()
}

// Text returns a value for people, with its unit; "" for an unknown value.
func Text(v any, now time.Time) string {
	switch v := v.(type) {
	case nil:
		return ""
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case time.Duration:
		return units.FromDuration(v).String()
	case time.Time:
		return max(0, now.Sub(v)).Truncate(time.Second).String() + " ago"
	}
	return fmt.Sprint(v)
}

// Number returns a value as a metric has it, in base units; false for a text and for what
// is unknown.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case units.Bytes:
		return float64(v), true
	case time.Duration:
		return v.Seconds(), true
	case time.Time:
		return float64(v.UnixMilli()) / 1000, true
	}
	return 0, false
}

// FromStatus returns the tables with rows of a status.
func FromStatus(s *pb.FeatureStatus) (list []*pb.StatusTable) {
	now := time.Now()
	for _, t := range All {
		rows := t.Rows(s)
		if len(rows) == 0 {
			continue
		}
		out := &pb.StatusTable{Feature: t.Feature, Name: t.Name, Keys: t.Keys}
		for _, c := range t.Columns {
			out.Columns = append(out.Columns, &pb.StatusColumn{Head: c.GetHead(), Metric: c.GetMetric(), Help: c.GetHelp()})
		}
		for _, r := range rows {
			row := &pb.StatusRow{Keys: r.Keys}
			for _, v := range r.Values {
				row.Values = append(row.Values, shownValue(v, now))
			}
			out.Rows = append(out.Rows, row)
		}
		list = append(list, out)
	}
	return list
}

func shownValue(v any, now time.Time) *pb.StatusValue {
	out := &pb.StatusValue{Shown: Text(v, now)}
	switch v := v.(type) {
	case string:
		out.Value = &pb.StatusValue_Text{Text: v}
	case bool:
		out.Value = &pb.StatusValue_Truth{Truth: v}
	case uint64:
		out.Value = &pb.StatusValue_Count{Count: v}
	case float64:
		out.Value = &pb.StatusValue_Number{Number: v}
	case units.Bytes:
		out.Value = &pb.StatusValue_Bytes{Bytes: uint64(v)}
	case time.Duration:
		out.Value = &pb.StatusValue_Ns{Ns: uint64(v)}
	case time.Time:
		out.Value = &pb.StatusValue_Time{Time: timestamppb.New(v)}
	}
	return out
}
