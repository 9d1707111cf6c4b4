// Package bmv2json reads BMv2's JSON format, docs/JSON_format.md of p4lang/behavioral-model,
// versions 2.0 to 2.24. It does not read attributes that do not change how packets are processed
// (pragma, compiler, most of source_info). Start reading at Parse and Program.
package bmv2json

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Program is a program as p4c writes it.
type Program struct {
	Meta              Meta               `json:"__meta__"`
	HeaderTypes       []HeaderType       `json:"header_types"`
	Headers           []Header           `json:"headers"`
	HeaderStacks      []HeaderStack      `json:"header_stacks"`
	HeaderUnionTypes  []HeaderUnionType  `json:"header_union_types"`
	HeaderUnions      []HeaderUnion      `json:"header_unions"`
	HeaderUnionStacks []HeaderUnionStack `json:"header_union_stacks"`
	FieldLists        []FieldList        `json:"field_lists"`
	LearnLists        []FieldList        `json:"learn_lists"`
	Errors            []Pair             `json:"errors"`
	Parsers           []Parser           `json:"parsers"`
	ValueSets         []ValueSet         `json:"parse_vsets"`
	Deparsers         []Deparser         `json:"deparsers"`
	MeterArrays       []MeterArray       `json:"meter_arrays"`
	CounterArrays     []Array            `json:"counter_arrays"`
	RegisterArrays    []Array            `json:"register_arrays"`
	Calculations      []Calculation      `json:"calculations"`
	Actions           []Action           `json:"actions"`
	Pipelines         []Pipeline         `json:"pipelines"`
	Checksums         []Checksum         `json:"checksums"`
	FieldAliases      []Alias            `json:"field_aliases"`
	ExternInstances   []Extern           `json:"extern_instances"`
}

// Meta is the document's description of itself.
type Meta struct {
	Version []int `json:"version"`
}

// Named has the fields that most objects have.
type Named struct {
	Name string `json:"name"`
	ID   int    `json:"id"`
}

// ObjectName returns the name.
func (n Named) ObjectName() string { return n.Name }

// Extern is an instance of an extern. In PSA's programs these are counters, which are also in
// CounterArrays, meters, hashes and checksums.
type Extern struct {
	Named
	Type       string      `json:"type"`
	Attributes []Attribute `json:"attribute_values"`
}

// Attribute is an argument of an extern's constructor: a string, or a number that may be in
// hexadecimal.
type Attribute struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// Attribute returns the text of an attribute, "" if there is none of that name.
func (x *Extern) Attribute(name string) string {
	for _, a := range x.Attributes {
		if a.Name == name {
			return fmt.Sprint(a.Value)
		}
	}
	return ""
}

// Meters returns the meters: MeterArrays, and externs of type Meter. A number that is not one
// counts as 0.
func (p *Program) Meters() []MeterArray {
	list := slices.Clone(p.MeterArrays)
	for _, x := range p.ExternInstances {
		if x.Type == "Meter" {
			size, _ := strconv.ParseInt(x.Attribute("n_meters"), 0, 32)
			rates, _ := strconv.ParseInt(x.Attribute("rate_count"), 0, 32)
			list = append(list, MeterArray{Array: Array{Named: x.Named, Size: int(size)}, Type: x.Attribute("type"), RateCount: int(rates)})
		}
	}
	return list
}

// HeaderType is a type of headers or of metadata structs.
type HeaderType struct {
	Named
	Fields    []Field `json:"fields"`
	LengthExp *Value  `json:"length_exp"`
	MaxLength int     `json:"max_length"`
}

// Field is [name, bits or "*", signed?, saturating?].
type Field struct {
	Name       string
	Bits       int
	Variable   bool
	Signed     bool
	Saturating bool
}

// UnmarshalJSON reads the array form.
func (f *Field) UnmarshalJSON(b []byte) error {
	var bits json.RawMessage
	if err := tuple(b, "[name, bits, signed, saturating]", 2, &f.Name, &bits, (*flag)(&f.Signed), (*flag)(&f.Saturating)); err != nil {
		return err
	}
	if f.Variable = string(bits) == `"*"`; f.Variable {
		return nil
	}
	return json.Unmarshal(bits, &f.Bits)
}

// tuple reads an array that has a minimum number of elements.
func tuple(b []byte, form string, least int, to ...any) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) < least || len(parts) > len(to) {
		return fmt.Errorf("want %s, not %s", form, clip(b))
	}
	for i := range parts {
		if err := json.Unmarshal(parts[i], to[i]); err != nil {
			return err
		}
	}
	return nil
}

// flag is a truth value, which p4c writes as 0 or 1 for fields of type bool.
type flag bool

func (f *flag) UnmarshalJSON(b []byte) error {
	if s := string(b); s == "0" || s == "1" {
		*f = s == "1"
		return nil
	}
	return json.Unmarshal(b, (*bool)(f))
}

// Header is a header instance, or a metadata instance.
type Header struct {
	Named
	Type     string `json:"header_type"`
	Metadata bool   `json:"metadata"`
}

// HeaderStack is a stack of headers, given by their ids from the bottom up.
type HeaderStack struct {
	Named
	Type    string `json:"header_type"`
	Headers []int  `json:"header_ids"`
}

// HeaderUnionType lists the members of a union as [name, header type].
type HeaderUnionType struct {
	Named
	Headers [][2]string `json:"headers"`
}

// HeaderUnion is a union instance with the ids of its headers.
type HeaderUnion struct {
	Named
	Type    string `json:"union_type"`
	Headers []int  `json:"header_ids"`
}

// HeaderUnionStack is a stack of unions, given by their ids.
type HeaderUnionStack struct {
	Named
	Type   string `json:"union_type"`
	Unions []int  `json:"header_union_ids"`
}

// FieldList is the fields that a clone keeps, or those of a digest.
type FieldList struct {
	Named
	Elements []Value `json:"elements"`
}

// Pair is [name, value].
type Pair struct {
	Name  string
	Value int
}

// UnmarshalJSON reads the array form.
func (p *Pair) UnmarshalJSON(b []byte) error {
	return tuple(b, "[name, value]", 2, &p.Name, &p.Value)
}

// Value is the "type value object" of the format. The reader decodes the field Value by the type.
type Value struct {
	Type     string          `json:"type"`
	Value    json.RawMessage `json:"value"`
	Bitwidth int             `json:"bitwidth"`
}

// Expr is the value of an expression: an operator and its operands.
type Expr struct {
	Op    string          `json:"op"`
	Left  json.RawMessage `json:"left"`
	Right json.RawMessage `json:"right"`
	Cond  json.RawMessage `json:"cond"`
}

// Node is an operator or a typed value; an operator has no type.
type Node struct {
	Value
	Expr
}

// Parser is a graph of parse states; only the one named "parser" is used.
type Parser struct {
	Named
	InitState *string      `json:"init_state"`
	States    []ParseState `json:"parse_states"`
}

// ParseState is a state: operations, then a transition by key.
type ParseState struct {
	Named
	Ops         []ParserOp   `json:"parser_ops"`
	Key         []Value      `json:"transition_key"`
	Transitions []Transition `json:"transitions"`
}

// ParserOp is one operation of a parse state.
type ParserOp struct {
	Op         string            `json:"op"`
	Parameters []json.RawMessage `json:"parameters"`
}

// Transition leads to another state when the key has a value under a mask, or is in a value set.
type Transition struct {
	Type  *string         `json:"type"`
	Value json.RawMessage `json:"value"`
	Mask  *string         `json:"mask"`
	Next  *string         `json:"next_state"`
}

// ValueSet is a parser value set.
type ValueSet struct {
	Named
	Bits int `json:"compressed_bitwidth"`
}

// Deparser lists the headers in the order in which they are sent.
type Deparser struct {
	Named
	Order      []string    `json:"order"`
	Primitives []Primitive `json:"primitives"`
}

// Array is an array of registers or counters. The counters are indirect or belong to a table's
// entries.
type Array struct {
	Named
	Size   int  `json:"size"`
	Bits   int  `json:"bitwidth"` // width of a register's cells
	Direct bool `json:"is_direct"`
}

// MeterArray is an array of meters.
type MeterArray struct {
	Array
	Type      string   `json:"type"`
	RateCount int      `json:"rate_count"`
	Target    []string `json:"result_target"`
}

// Calculation is a named hash or checksum.
type Calculation struct {
	Named
	Selector
}

// Action is a list of primitives with parameters.
type Action struct {
	Named
	Params     []Param     `json:"runtime_data"`
	Primitives []Primitive `json:"primitives"`
}

// Param is a parameter of an action; the width is in bits.
type Param struct {
	Name string `json:"name"`
	Bits int    `json:"bitwidth"`
}

// Primitive is a call of one of BMv2's primitives.
type Primitive struct {
	Op         string  `json:"op"`
	Parameters []Value `json:"parameters"`
}

// Pipeline is ingress or egress.
type Pipeline struct {
	Named
	InitTable    *string       `json:"init_table"`
	Tables       []Table       `json:"tables"`
	Profiles     []Profile     `json:"action_profiles"`
	Conditionals []Conditional `json:"conditionals"`
	ActionCalls  []ActionCall  `json:"action_calls"`
}

// Table is a match-action table. Entries is nil for a table that the control plane fills.
type Table struct {
	Named
	Key             []Key              `json:"key"`
	MatchType       string             `json:"match_type"`
	Type            string             `json:"type"`
	Profile         string             `json:"action_profile"`
	OldProfile      string             `json:"act_prof_name"`
	Selector        *Selector          `json:"selector"`
	MaxSize         *int               `json:"max_size"`
	WithCounters    bool               `json:"with_counters"`
	SupportTimeout  bool               `json:"support_timeout"`
	DirectMeters    *string            `json:"direct_meters"`
	ActionIDs       []int              `json:"action_ids"`
	Actions         []string           `json:"actions"`
	BaseDefaultNext *string            `json:"base_default_next"`
	NextTables      map[string]*string `json:"next_tables"`
	DefaultEntry    *DefaultEntry      `json:"default_entry"`
	Entries         *[]Entry           `json:"entries"`
}

// Key is one field of a table's key.
type Key struct {
	MatchType string          `json:"match_type"`
	Name      *string         `json:"name"`
	Target    json.RawMessage `json:"target"`
	Mask      *string         `json:"mask"`
}

// DefaultEntry is a table's default action. The action, its arguments or both can be const.
type DefaultEntry struct {
	ActionID    int      `json:"action_id"`
	ActionConst bool     `json:"action_const"`
	ActionData  []string `json:"action_data"`
	EntryConst  bool     `json:"action_entry_const"`
}

// Entry is a const entry. The lowest priority number wins.
type Entry struct {
	MatchKey    []Match     `json:"match_key"`
	ActionEntry ActionEntry `json:"action_entry"`
	Priority    int         `json:"priority"`
}

// Match is one field of an entry's key.
type Match struct {
	MatchType    string          `json:"match_type"`
	Key          json.RawMessage `json:"key"`
	Mask         string          `json:"mask"`
	PrefixLength int             `json:"prefix_length"`
	Start        string          `json:"start"`
	End          string          `json:"end"`
}

// ActionEntry is the action of an entry, with hexadecimal arguments.
type ActionEntry struct {
	ActionID   int      `json:"action_id"`
	ActionData []string `json:"action_data"`
}

// Profile is an action profile. It has a selector if it has groups.
type Profile struct {
	Named
	MaxSize  int       `json:"max_size"`
	Selector *Selector `json:"selector"`
}

// Selector is a hash algorithm and its input.
type Selector struct {
	Algo  string  `json:"algo"`
	Input []Value `json:"input"`
}

// Conditional is an if of a pipeline; a missing next node ends the pipeline.
type Conditional struct {
	Named
	Source     Source  `json:"source_info"`
	Expression *Value  `json:"expression"`
	TrueNext   *string `json:"true_next"`
	FalseNext  *string `json:"false_next"`
}

// Source is the place in the P4 source that something comes from.
type Source struct {
	Fragment string `json:"source_fragment"`
}

// ActionCall is a node of a pipeline that runs an action without parameters.
type ActionCall struct {
	Named
	ActionID int     `json:"action_id"`
	Next     *string `json:"next_node"`
}

// Checksum is a field and the calculation that yields its value. Update and Verify are true when missing.
type Checksum struct {
	Named
	Target      []string `json:"target"`
	Type        string   `json:"type"`
	Calculation string   `json:"calculation"`
	Update      *bool    `json:"update"`
	Verify      *bool    `json:"verify"`
	IfCond      *Value   `json:"if_cond"`
}

// Alias is [alias, [header, field]].
type Alias struct {
	From   string
	Header string
	Field  string
}

// UnmarshalJSON reads the array form.
func (a *Alias) UnmarshalJSON(b []byte) error {
	var to [2]string
	err := tuple(b, "[alias, [header, field]]", 2, &a.From, &to)
	a.Header, a.Field = to[0], to[1]
	return err
}
