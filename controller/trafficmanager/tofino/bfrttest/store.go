package bfrttest

import (
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt"
)

// Of all chips.
const (
	pipes        = 4
	portsPerPipe = 72
	groupsInPipe = 128
	groupTable   = "tm.ppg.cfg"
	groupCounter = "tm.counter.ppg"
	portCounters = "$PORT_STAT"
)

// store is what a chip holds. The server owns it.
type store struct {
	facts  facts
	schema *bfrt.Schema
	over   map[string]bfrt.Fields // of entries that differ from their defaults, by name
	groups []*group
}

func newStore(chip string, schema *bfrt.Schema) *store {
	return &store{facts: factsOf(chip), schema: schema, over: map[string]bfrt.Fields{}}
}

// put returns fields with a value changed or added.
func put(f bfrt.Fields, n bfrt.Named) bfrt.Fields {
	if i := slices.IndexFunc(f, func(x bfrt.Named) bool { return x.Name == n.Name }); i >= 0 {
		f[i] = n
		return f
	}
	return append(f, n)
}

// zero returns the value of a field that nobody has set.
func zero(f *bfrt.Field) any {
	switch {
	case f.Repeated:
		return []uint32{}
	case f.Kind == bfrt.Boolean:
		return false
	case f.Kind == bfrt.Float:
		return float32(0)
	case f.Kind == bfrt.Text && len(f.Choices) > 0:
		return f.Choices[0]
	case f.Kind == bfrt.Text:
		return ""
	}
	return uint64(0)
}

// row returns an entry of a table of fixed size.
func (s *store) row(t *bfrt.Table, pipe uint32, key bfrt.Fields) bfrt.Row {
	r := bfrt.Row{Table: t.Name, Pipe: pipe, Key: key, Action: actionOf(t.Name)}
	for _, f := range t.Fields(t.Action(r.Action)) {
		r.Data = append(r.Data, bfrt.Named{Name: f.Name, Value: zero(&f)})
	}
	for _, n := range s.facts.defaults(t.Name, pipe, key) {
		r.Data = put(r.Data, n)
	}
	for _, n := range s.over[r.Name()] {
		r.Data = put(r.Data, n)
	}
	for _, n := range s.computed(t.Name, r) {
		r.Data = put(r.Data, n)
	}
	return r
}

// all returns all entries of a table, or those of a pipe.
func (s *store) all(t *bfrt.Table, pipe uint32) []bfrt.Row {
	var rows []bfrt.Row
	if t.Name == groupTable {
		for _, g := range s.groups {
			if pipe == bfrt.AllPipes || g.row.Pipe == pipe {
				rows = append(rows, g.row)
			}
		}
		return rows
	}
	if t.Scope == bfrt.Device {
		for _, k := range s.facts.keys(t, 0) {
			rows = append(rows, s.row(t, bfrt.AllPipes, k))
		}
		return rows
	}
	for p := range uint32(pipes) {
		if pipe == bfrt.AllPipes || pipe == p {
			for _, k := range s.facts.keys(t, p) {
				rows = append(rows, s.row(t, p, k))
			}
		}
	}
	return rows
}

// read returns what a Read asks for, or why it cannot.
func (s *store) read(t *bfrt.Table, r bfrt.Row) ([]bfrt.Row, string) {
	switch {
	case r.Default:
		out := s.row(t, bfrt.AllPipes, nil)
		out.Default = true
		return []bfrt.Row{out}, ""
	case len(r.Key) == 0 && len(t.Keys) > 0:
		return s.all(t, r.Pipe), ""
	case t.Name == groupTable:
		if g := s.group(r); g != nil {
			return []bfrt.Row{g.row}, ""
		}
		return nil, "there is no such group"
	case !s.facts.has(t, r):
		return nil, "there is no such entry"
	}
	out := s.row(t, r.Pipe, r.Key)
	if t.Name == portCounters && !r.Fresh {
		for i := range out.Data {
			out.Data[i].Value = uint64(0) // the driver has not looked since the ports came up
		}
	}
	return []bfrt.Row{out}, ""
}

// write carries out a change, or returns why it cannot.
func (s *store) write(c bfrt.Change) (codes.Code, string) {
	t := s.schema.Table(c.Row.Table)
	if t.Name == groupTable {
		return s.writeGroup(c)
	}
	if !s.facts.has(t, c.Row) {
		return codes.NotFound, "there is no such entry"
	}
	if why := s.rules(t, c.Row); why != "" {
		return codes.InvalidArgument, why
	}
	s.set(t, c.Row)
	return codes.OK, ""
}

// set changes fields.
func (s *store) set(t *bfrt.Table, r bfrt.Row) {
	if t.Name == groupTable {
		if g := s.group(r); g != nil {
			for _, n := range r.Data {
				g.row.Data = put(g.row.Data, n)
			}
		}
		return
	}
	if t.Scope == bfrt.Device {
		r.Pipe = bfrt.AllPipes
	}
	for _, n := range r.Data {
		s.over[r.Name()] = put(s.over[r.Name()], n)
	}
}
