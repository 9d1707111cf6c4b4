package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Program is a compiled BMv2 JSON program. It is immutable.
type Program struct {
	layout    layout
	std       standardFields
	parser    *parser
	deparser  *deparser
	ingress   *node
	egress    *node
	code      code
	tables    []*tableSpec
	tableBy   map[string]*tableSpec
	profiles  []*profileSpec
	profileBy map[string]*profileSpec
	actions   map[int]*action
	actionBy  []*action // one per name, in order of declaration
	calcs     map[string]*calculation
	nCalcs    int // calculations with state of their own
	counters  []*counterSpec
	counterBy map[string]*counterSpec
	meters    []*meterSpec
	meterBy   map[string]*meterSpec
	registers []*registerSpec
	regBy     map[string]*registerSpec
	vsets     []*vsetSpec
	vsetBy    map[string]*vsetSpec
	lists     map[int][]fieldRef
	learns    map[int]*learnList
	errorBy   map[string]uint32
}

// Load parses, checks and compiles BMv2 JSON, versions 2.0 to 2.24. The error names the
// place in the JSON, the value and what is allowed.
func Load(doc []byte) (prog *Program, err error) {
	// White space is most of what p4c writes, and expressions are gone through once a level.
	var compact bytes.Buffer
	if err := json.Compact(&compact, doc); err != nil {
		return nil, fmt.Errorf("BMv2 JSON: %w", err)
	}
	var j jsonProgram
	if err := json.Unmarshal(compact.Bytes(), &j); err != nil {
		var te *json.UnmarshalTypeError
		if errors.As(err, &te) {
			return nil, fmt.Errorf("BMv2 JSON: %s: %s where %v is wanted", te.Field, te.Value, te.Type)
		}
		return nil, fmt.Errorf("BMv2 JSON: %w", err)
	}
	c := &compiler{Program: &Program{}}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(loadError)
			if !ok {
				panic(r)
			}
			prog, err = nil, e
		}
	}()
	c.compile(&j)
	return c.Program, nil
}

// loadError is what compiler.fail throws and Load returns.
type loadError struct{ path, msg string }

func (e loadError) Error() string {
	if e.path == "" {
		return "BMv2 JSON: " + e.msg
	}
	return "BMv2 JSON: " + e.path + ": " + e.msg
}

func (e loadError) Unwrap() error { return ErrInvalid }

// compiler holds what is known while a program is compiled.
type compiler struct {
	*Program
	path       []string
	depth      int
	action     *action // being compiled, nil outside of actions
	regs       map[int]bool
	nodes      map[string]*node
	used       map[int]bool     // words of fields that the program reads
	writing    bool             // what is being compiled reads no field
	chosen     map[*header]bool // those that may be another for each packet: of stacks and unions
	written    map[int]bool     // words of fields that the program writes
	parsed     map[int]bool     // those that it writes in the parser or in clones
	extracts   []*parseStep     // those that extract a header in line
	stateBytes int64
}

func (c *compiler) compile(j *jsonProgram) {
	c.used, c.written = map[int]bool{}, map[int]bool{}
	c.in("__meta__", -1, func() { c.checkVersion(j.Meta.Version) })
	c.buildLayout(j)
	for _, t := range c.layout.types {
		if t.bits%8 == 0 {
			t.codec = newCodec(t)
		}
	}
	c.buildErrors(j)
	c.buildState(j)
	c.buildLists(j)
	c.buildCalculations(j)
	for i := range j.ExternInstances {
		c.in("extern_instances", i, func() {
			c.fail("extern type %q is not part of v1model", j.ExternInstances[i].Type)
		})
	}
	c.findStandardFields()
	c.buildParser(j)
	c.parsed = maps.Clone(c.written)
	c.buildActions(j)
	c.buildPipelines(j)
	c.buildDeparser(j)
	c.buildChecksums(j)
	c.lower()
	c.finishChecksums()
	c.finishDeparser()
	c.finishStandardFields()
	c.finishHeaders()
}

func (c *compiler) checkVersion(v []int) {
	if len(v) == 0 {
		return // old programs carry none, and BMv2 takes them
	}
	if len(v) != 2 || v[0] != 2 || v[1] < 0 || v[1] > 24 {
		c.fail("version %v is not supported, allowed are 2.0 to 2.24", v)
	}
}

// in runs f with name (and index, unless negative) added to the path of errors.
func (c *compiler) in(name string, index int, f func()) {
	if index >= 0 {
		name += "[" + strconv.Itoa(index) + "]"
	}
	c.path = append(c.path, name)
	f()
	c.path = c.path[:len(c.path)-1]
}

func (c *compiler) fail(format string, args ...any) {
	panic(loadError{strings.Join(c.path, "."), fmt.Sprintf(format, args...)})
}

func (c *compiler) decode(raw json.RawMessage, v any) {
	if isNull(raw) {
		c.fail("a value is missing")
	}
	if err := json.Unmarshal(raw, v); err != nil {
		c.fail("%s: %v", clip(raw), err)
	}
}

func (c *compiler) str(raw json.RawMessage) (s string) {
	c.decode(raw, &s)
	return s
}

func (c *compiler) integer(raw json.RawMessage) (i int) {
	c.decode(raw, &i)
	return i
}

// hex reads a hexadecimal number such as 0x0a, 0a or -0x0a.
func (c *compiler) hex(s string) *big.Int {
	t, neg := strings.CutPrefix(s, "-")
	t = strings.TrimPrefix(t, "0x")
	z := new(big.Int)
	if t == "" || len(t) > maxFieldBits/2 || strings.Trim(t, "0123456789abcdefABCDEF") != "" {
		c.fail("%q is not a hexadecimal number of at most %d bits", clip([]byte(s)), maxFieldBits)
	}
	z.SetString(t, 16)
	if neg {
		z.Neg(z)
	}
	return z
}

// hexBytes reads a hexadecimal string as bytes, its leading zeros included.
func (c *compiler) hexBytes(s string) []byte {
	z := c.hex(s)
	if z.Sign() < 0 {
		c.fail("%q is negative", s)
	}
	n := (len(strings.TrimPrefix(s, "0x")) + 1) / 2
	return z.FillBytes(make([]byte, n))
}

// fixed fits a hexadecimal number into n bytes.
func (c *compiler) fixed(s string, n int) []byte {
	z := c.hex(s)
	if z.Sign() < 0 || z.BitLen() > 8*n {
		c.fail("%q does not fit %d bytes", s, n)
	}
	return z.FillBytes(make([]byte, n))
}

func (c *compiler) headerNamed(name string) *header {
	h := c.layout.byName[name]
	if h == nil {
		c.fail("unknown header %q", name)
	}
	return h
}

func (c *compiler) stackNamed(name string) *stack {
	s := c.layout.stacks[name]
	if s == nil {
		c.fail("unknown header stack %q", name)
	}
	return s
}

// fieldValue reads the value of a "field": [header, field].
func (c *compiler) fieldValue(raw json.RawMessage) fieldRef {
	var v [2]string
	c.decode(raw, &v)
	var n []json.RawMessage
	c.decode(raw, &n)
	if len(n) != 2 {
		c.fail("a field is [header, field], not %s", clip(raw))
	}
	return c.fieldNamed(v[0], v[1])
}

func (c *compiler) buildErrors(j *jsonProgram) {
	c.errorBy = map[string]uint32{}
	next := uint32(0)
	for i, e := range j.Errors {
		c.in("errors", i, func() {
			if e.Value < 0 || int64(e.Value) >= 1<<31-1 {
				c.fail("error %q has value %d, allowed are 0 to 2^31−2", e.Name, e.Value)
			}
			c.errorBy[e.Name] = uint32(e.Value)
			next = max(next, uint32(e.Value)+1)
		})
	}
	for _, name := range []string{"NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout", "ParserInvalidArgument"} {
		if _, ok := c.errorBy[name]; !ok {
			c.errorBy[name] = next
			next++
		}
	}
}

// learnList is a digest: the fields of a learning message.
type learnList struct {
	name   string
	fields []fieldRef
}

func (c *compiler) buildLists(j *jsonProgram) {
	c.lists, c.learns = map[int][]fieldRef{}, map[int]*learnList{}
	for i := range j.FieldLists {
		l := &j.FieldLists[i]
		c.in("field_lists", i, func() {
			c.lists[l.ID] = c.fieldsOf(l)
			for _, r := range c.lists[l.ID] {
				c.writes(r) // in a clone
			}
		})
	}
	for i := range j.LearnLists {
		l := &j.LearnLists[i]
		c.in("learn_lists", i, func() {
			c.learns[l.ID] = &learnList{l.Name, c.fieldsOf(l)}
		})
	}
}

func (c *compiler) fieldsOf(l *jsonFieldList) []fieldRef {
	var refs []fieldRef
	for k := range l.Elements {
		e := &l.Elements[k]
		c.in("elements", k, func() {
			switch e.Type {
			case "field":
				refs = append(refs, c.fieldValue(e.Value))
			case "hexstr": // constants need no copying
			default:
				c.fail("unknown type %q, allowed are field and hexstr", e.Type)
			}
		})
	}
	return refs
}

// Tables describes the tables, in order of declaration.
func (p *Program) Tables() []TableInfo {
	infos := make([]TableInfo, len(p.tables))
	for i, t := range p.tables {
		infos[i] = t.info()
	}
	return infos
}

// Actions describes the actions, one per name.
func (p *Program) Actions() []ActionInfo {
	infos := make([]ActionInfo, len(p.actionBy))
	for i, a := range p.actionBy {
		infos[i] = ActionInfo{Name: a.name}
		for _, q := range a.params {
			infos[i].Params = append(infos[i].Params, ParamInfo{q.name, q.bits})
		}
	}
	return infos
}

// sortedActions returns actions by id.
func sortedActions(m map[int]*action) []*action {
	return slices.SortedFunc(maps.Values(m), func(a, b *action) int { return a.id - b.id })
}

// sortedKeys returns the keys of a set of numbers in order.
func sortedKeys(set map[int]bool) []int {
	keys := make([]int, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Counters lists the indirect counter arrays.
func (p *Program) Counters() []string {
	return names(p.counters, func(s *counterSpec) string { return s.name })
}

// Meters lists the indirect meter arrays.
func (p *Program) Meters() []string {
	return names(p.meters, func(s *meterSpec) string { return s.name })
}

// Registers lists the register arrays.
func (p *Program) Registers() []string {
	return names(p.registers, func(s *registerSpec) string { return s.name })
}

// ValueSets lists the parser value sets.
func (p *Program) ValueSets() []string {
	return names(p.vsets, func(s *vsetSpec) string { return s.name })
}

// Profiles lists the action profiles.
func (p *Program) Profiles() []string {
	return names(p.profiles, func(s *profileSpec) string { return s.name })
}

func names[S any](list []S, name func(S) string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = name(s)
	}
	return out
}
