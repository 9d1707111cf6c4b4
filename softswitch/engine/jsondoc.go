package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The types in this file are BMv2's JSON format, docs/JSON_format.md of
// p4lang/behavioral-model, version 2.24. Attributes that do not change how packets are
// processed (source_info, pragma, compiler) are not read.

type jsonProgram struct {
	Meta              jsonMeta               `json:"__meta__"`
	HeaderTypes       []jsonHeaderType       `json:"header_types"`
	Headers           []jsonHeader           `json:"headers"`
	HeaderStacks      []jsonHeaderStack      `json:"header_stacks"`
	HeaderUnionTypes  []jsonHeaderUnionType  `json:"header_union_types"`
	HeaderUnions      []jsonHeaderUnion      `json:"header_unions"`
	HeaderUnionStacks []jsonHeaderUnionStack `json:"header_union_stacks"`
	FieldLists        []jsonFieldList        `json:"field_lists"`
	LearnLists        []jsonFieldList        `json:"learn_lists"`
	Errors            []jsonPair             `json:"errors"`
	Parsers           []jsonParser           `json:"parsers"`
	ParseVSets        []jsonParseVSet        `json:"parse_vsets"`
	Deparsers         []jsonDeparser         `json:"deparsers"`
	MeterArrays       []jsonMeterArray       `json:"meter_arrays"`
	CounterArrays     []jsonCounterArray     `json:"counter_arrays"`
	RegisterArrays    []jsonRegisterArray    `json:"register_arrays"`
	Calculations      []jsonCalculation      `json:"calculations"`
	Actions           []jsonAction           `json:"actions"`
	Pipelines         []jsonPipeline         `json:"pipelines"`
	Checksums         []jsonChecksum         `json:"checksums"`
	FieldAliases      []jsonAlias            `json:"field_aliases"`
	ExternInstances   []jsonNamed            `json:"extern_instances"`
}

type jsonMeta struct {
	Version []int `json:"version"`
}

type jsonNamed struct {
	Name string `json:"name"`
	ID   int    `json:"id"`
	Type string `json:"type"`
}

type jsonHeaderType struct {
	Name      string      `json:"name"`
	ID        int         `json:"id"`
	Fields    []jsonField `json:"fields"`
	LengthExp *jsonValue  `json:"length_exp"`
	MaxLength int         `json:"max_length"`
}

// jsonField is [name, bits or "*", signed?, saturating?].
type jsonField struct {
	Name       string
	Bits       int
	Variable   bool
	Signed     bool
	Saturating bool
}

func (f *jsonField) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) < 2 || len(parts) > 4 {
		return fmt.Errorf("a header field is [name, bits, signed, saturating], not %s", clip(b))
	}
	if err := json.Unmarshal(parts[0], &f.Name); err != nil {
		return err
	}
	if bytes.Equal(bytes.TrimSpace(parts[1]), []byte(`"*"`)) {
		f.Variable = true
	} else if err := json.Unmarshal(parts[1], &f.Bits); err != nil {
		return err
	}
	if len(parts) > 2 {
		if err := flag(parts[2], &f.Signed); err != nil {
			return err
		}
	}
	if len(parts) > 3 {
		return flag(parts[3], &f.Saturating)
	}
	return nil
}

// flag reads a truth value, which p4c writes as 0 or 1 for fields of type bool.
func flag(raw json.RawMessage, b *bool) error {
	var n int
	if json.Unmarshal(raw, &n) == nil && (n == 0 || n == 1) {
		*b = n == 1
		return nil
	}
	return json.Unmarshal(raw, b)
}

type jsonHeader struct {
	Name     string `json:"name"`
	ID       int    `json:"id"`
	Type     string `json:"header_type"`
	Metadata bool   `json:"metadata"`
}

type jsonHeaderStack struct {
	Name    string `json:"name"`
	ID      int    `json:"id"`
	Type    string `json:"header_type"`
	Headers []int  `json:"header_ids"`
}

type jsonHeaderUnionType struct {
	Name    string      `json:"name"`
	ID      int         `json:"id"`
	Headers [][2]string `json:"headers"`
}

type jsonHeaderUnion struct {
	Name    string `json:"name"`
	ID      int    `json:"id"`
	Type    string `json:"union_type"`
	Headers []int  `json:"header_ids"`
}

type jsonHeaderUnionStack struct {
	Name   string `json:"name"`
	ID     int    `json:"id"`
	Type   string `json:"union_type"`
	Unions []int  `json:"header_union_ids"`
}

type jsonFieldList struct {
	Name     string      `json:"name"`
	ID       int         `json:"id"`
	Elements []jsonValue `json:"elements"`
}

// jsonPair is [name, value].
type jsonPair struct {
	Name  string
	Value int
}

func (p *jsonPair) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("want [name, value], not %s", clip(b))
	}
	if err := json.Unmarshal(parts[0], &p.Name); err != nil {
		return err
	}
	return json.Unmarshal(parts[1], &p.Value)
}

// jsonValue is the "type value object" of the format; Value is read once its type is known.
type jsonValue struct {
	Type     string          `json:"type"`
	Value    json.RawMessage `json:"value"`
	Bitwidth int             `json:"bitwidth"`
}

// jsonExpr is the value of an expression: an operator and its operands.
type jsonExpr struct {
	Op    string          `json:"op"`
	Left  json.RawMessage `json:"left"`
	Right json.RawMessage `json:"right"`
	Cond  json.RawMessage `json:"cond"`
}

// jsonNode is either of the two; an operator has no type.
type jsonNode struct {
	jsonValue
	jsonExpr
}

type jsonParser struct {
	Name      string           `json:"name"`
	ID        int              `json:"id"`
	InitState *string          `json:"init_state"`
	States    []jsonParseState `json:"parse_states"`
}

type jsonParseState struct {
	Name        string           `json:"name"`
	ID          int              `json:"id"`
	Ops         []jsonParserOp   `json:"parser_ops"`
	Key         []jsonValue      `json:"transition_key"`
	Transitions []jsonTransition `json:"transitions"`
}

type jsonParserOp struct {
	Op         string            `json:"op"`
	Parameters []json.RawMessage `json:"parameters"`
}

type jsonTransition struct {
	Type  *string         `json:"type"`
	Value json.RawMessage `json:"value"`
	Mask  *string         `json:"mask"`
	Next  *string         `json:"next_state"`
}

type jsonParseVSet struct {
	Name string `json:"name"`
	ID   int    `json:"id"`
	Bits int    `json:"compressed_bitwidth"`
}

type jsonDeparser struct {
	Name       string          `json:"name"`
	ID         int             `json:"id"`
	Order      []string        `json:"order"`
	Primitives []jsonPrimitive `json:"primitives"`
}

type jsonMeterArray struct {
	Name      string   `json:"name"`
	ID        int      `json:"id"`
	Type      string   `json:"type"`
	RateCount int      `json:"rate_count"`
	Size      int      `json:"size"`
	Direct    bool     `json:"is_direct"`
	Binding   *string  `json:"binding"`
	Target    []string `json:"result_target"`
}

type jsonCounterArray struct {
	Name    string  `json:"name"`
	ID      int     `json:"id"`
	Size    int     `json:"size"`
	Direct  bool    `json:"is_direct"`
	Binding *string `json:"binding"`
}

type jsonRegisterArray struct {
	Name string `json:"name"`
	ID   int    `json:"id"`
	Size int    `json:"size"`
	Bits int    `json:"bitwidth"`
}

type jsonCalculation struct {
	Name  string      `json:"name"`
	ID    int         `json:"id"`
	Algo  string      `json:"algo"`
	Input []jsonValue `json:"input"`
}

type jsonAction struct {
	Name       string          `json:"name"`
	ID         int             `json:"id"`
	Params     []jsonParam     `json:"runtime_data"`
	Primitives []jsonPrimitive `json:"primitives"`
}

type jsonParam struct {
	Name string `json:"name"`
	Bits int    `json:"bitwidth"`
}

type jsonPrimitive struct {
	Op         string      `json:"op"`
	Parameters []jsonValue `json:"parameters"`
}

type jsonPipeline struct {
	Name         string            `json:"name"`
	ID           int               `json:"id"`
	InitTable    *string           `json:"init_table"`
	Tables       []jsonTable       `json:"tables"`
	Profiles     []jsonProfile     `json:"action_profiles"`
	Conditionals []jsonConditional `json:"conditionals"`
	ActionCalls  []jsonActionCall  `json:"action_calls"`
}

type jsonTable struct {
	Name            string             `json:"name"`
	ID              int                `json:"id"`
	Key             []jsonKey          `json:"key"`
	MatchType       string             `json:"match_type"`
	Type            string             `json:"type"`
	Profile         string             `json:"action_profile"`
	OldProfile      string             `json:"act_prof_name"`
	Selector        *jsonSelector      `json:"selector"`
	MaxSize         *int               `json:"max_size"`
	WithCounters    bool               `json:"with_counters"`
	SupportTimeout  bool               `json:"support_timeout"`
	DirectMeters    *string            `json:"direct_meters"`
	ActionIDs       []int              `json:"action_ids"`
	Actions         []string           `json:"actions"`
	BaseDefaultNext *string            `json:"base_default_next"`
	NextTables      map[string]*string `json:"next_tables"`
	DefaultEntry    *jsonDefaultEntry  `json:"default_entry"`
	Entries         *[]jsonEntry       `json:"entries"`
}

type jsonKey struct {
	MatchType string          `json:"match_type"`
	Name      *string         `json:"name"`
	Target    json.RawMessage `json:"target"`
	Mask      *string         `json:"mask"`
}

type jsonDefaultEntry struct {
	ActionID    int      `json:"action_id"`
	ActionConst bool     `json:"action_const"`
	ActionData  []string `json:"action_data"`
	EntryConst  bool     `json:"action_entry_const"`
}

type jsonEntry struct {
	MatchKey    []jsonMatch     `json:"match_key"`
	ActionEntry jsonActionEntry `json:"action_entry"`
	Priority    int             `json:"priority"`
}

type jsonMatch struct {
	MatchType    string          `json:"match_type"`
	Key          json.RawMessage `json:"key"`
	Mask         string          `json:"mask"`
	PrefixLength int             `json:"prefix_length"`
	Start        string          `json:"start"`
	End          string          `json:"end"`
}

type jsonActionEntry struct {
	ActionID   int      `json:"action_id"`
	ActionData []string `json:"action_data"`
}

type jsonProfile struct {
	Name     string        `json:"name"`
	ID       int           `json:"id"`
	MaxSize  int           `json:"max_size"`
	Selector *jsonSelector `json:"selector"`
}

type jsonSelector struct {
	Algo  string      `json:"algo"`
	Input []jsonValue `json:"input"`
}

type jsonConditional struct {
	Name       string     `json:"name"`
	ID         int        `json:"id"`
	Expression *jsonValue `json:"expression"`
	TrueNext   *string    `json:"true_next"`
	FalseNext  *string    `json:"false_next"`
}

type jsonActionCall struct {
	Name     string  `json:"name"`
	ID       int     `json:"id"`
	ActionID int     `json:"action_id"`
	Next     *string `json:"next_node"`
}

type jsonChecksum struct {
	Name        string     `json:"name"`
	ID          int        `json:"id"`
	Target      []string   `json:"target"`
	Type        string     `json:"type"`
	Calculation string     `json:"calculation"`
	Update      *bool      `json:"update"`
	Verify      *bool      `json:"verify"`
	IfCond      *jsonValue `json:"if_cond"`
}

// jsonAlias is [alias, [header, field]].
type jsonAlias struct {
	From   string
	Header string
	Field  string
}

func (a *jsonAlias) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("want [alias, [header, field]], not %s", clip(b))
	}
	if err := json.Unmarshal(parts[0], &a.From); err != nil {
		return err
	}
	var to [2]string
	if err := json.Unmarshal(parts[1], &to); err != nil {
		return err
	}
	a.Header, a.Field = to[0], to[1]
	return nil
}

func isNull(b json.RawMessage) bool {
	b = bytes.TrimSpace(b)
	return len(b) == 0 || bytes.Equal(b, []byte("null"))
}

// clip shortens JSON text for an error message.
func clip(b []byte) string {
	if len(b) > 80 {
		return string(b[:80]) + "…"
	}
	return string(b)
}
