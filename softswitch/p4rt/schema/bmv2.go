package schema

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/headgate/headgate/softswitch/p4rt/canon"
)

// bmv2 is the part of a BMv2 JSON program that P4Runtime needs and the engine does not
// tell: names of externs, and the program's own entries and default actions. engine.Load
// has accepted the program before it is read here.
type bmv2 struct {
	Actions []struct {
		Name string `json:"name"`
		ID   int    `json:"id"`
	} `json:"actions"`
	Pipelines []struct {
		Tables   []bmv2Table `json:"tables"`
		Profiles []bmv2Named `json:"action_profiles"`
	} `json:"pipelines"`
	Counters  []bmv2Array `json:"counter_arrays"`
	Meters    []bmv2Array `json:"meter_arrays"`
	Registers []bmv2Array `json:"register_arrays"`
	Learns    []struct {
		Name     string            `json:"name"`
		Elements []json.RawMessage `json:"elements"`
	} `json:"learn_lists"`
	ValueSets []bmv2Named `json:"parse_vsets"`
}

type bmv2Named struct {
	Name string `json:"name"`
}

type bmv2Array struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Bits   int    `json:"bitwidth"`
	Direct bool   `json:"is_direct"`
}

type bmv2Table struct {
	Name    string `json:"name"`
	Default *struct {
		ActionID int      `json:"action_id"`
		Data     []string `json:"action_data"`
	} `json:"default_entry"`
	Entries []bmv2Entry `json:"entries"`
}

type bmv2Entry struct {
	Key []struct {
		Kind   string          `json:"match_type"`
		Key    json.RawMessage `json:"key"`
		Mask   string          `json:"mask"`
		Prefix int             `json:"prefix_length"`
		Start  string          `json:"start"`
		End    string          `json:"end"`
	} `json:"match_key"`
	Action struct {
		ID   int      `json:"action_id"`
		Data []string `json:"action_data"`
	} `json:"action_entry"`
	Priority int `json:"priority"`
}

func parseBMv2(doc []byte) (*bmv2, error) {
	var j bmv2
	if err := json.Unmarshal(doc, &j); err != nil {
		return nil, fmt.Errorf("BMv2 JSON: %w", err)
	}
	return &j, nil
}

func (j *bmv2) actionName(id int) string {
	for i := range j.Actions {
		if j.Actions[i].ID == id {
			return j.Actions[i].Name
		}
	}
	return ""
}

// number reads a hexadecimal number as a canonical byte string of at most bits bits; BMv2
// masks what is too wide.
func number16(s string, bits int) ([]byte, error) {
	t := strings.TrimPrefix(s, "0x")
	if len(t)%2 == 1 {
		t = "0" + t
	}
	b, err := hex.DecodeString(t)
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("%q is not a hexadecimal number", s)
	}
	return canon.Truncate(append([]byte{0}, b...), bits), nil
}
