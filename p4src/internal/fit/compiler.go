package fit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// compilerReport is the part of the compiler's resources.json that is used here; its schema
// is p4c's backends/tofino/compiler_interfaces/schemas/resources_schema.py, version 2.
type compilerReport struct {
	SchemaVersion string `json:"schema_version"`
	Resources     struct {
		MAU struct {
			Stages int                          `json:"nStages"`
			Stage  []map[string]json.RawMessage `json:"mau_stages"`
		} `json:"mau"`
		PHV map[string][]struct {
			Units int `json:"units"`
			Width int `json:"width"`
		} `json:"phv_containers"`
		Parser struct {
			Parsers []struct {
				Gress  string     `json:"gress"`
				Rows   int        `json:"nStates"`
				States []struct{} `json:"states"`
			} `json:"parsers"`
		} `json:"parser"`
	} `json:"resources"`
}

// in returns how many units of a kind a stage has, and those in use.
func (k resource) in(stage map[string]json.RawMessage) (has int, use []element, err error) {
	var section map[string]json.RawMessage
	if stage[k.section] == nil {
		return 0, nil, nil
	}
	errs := []error{json.Unmarshal(stage[k.section], &section)}
	has = 1
	for _, f := range k.size {
		n := 0
		errs = append(errs, json.Unmarshal(section[f], &n))
		has *= n
	}
	errs = append(errs, json.Unmarshal(section[k.list], &use))
	use = slices.DeleteFunc(use, func(e element) bool {
		return k.section == "xbar_bytes" && (e.ByteType == "ternary") != (k.Kind == TernaryX)
	})
	if err := errors.Join(errs...); err != nil {
		return 0, nil, fmt.Errorf("resources.json: %s: %w", k.section, err)
	}
	return has, use, nil
}

// element is one unit in use, of any kind: each kind has its own fields for where the unit
// is and who uses it.
type element struct {
	Row         int      `json:"row"`
	Column      int      `json:"column"`
	Unit        int      `json:"unit_id"`
	Hash        int      `json:"hash_id"`
	ID          int      `json:"id"`
	Byte        int      `json:"byte_number"`
	ByteType    string   `json:"byte_type"`
	Instruction int      `json:"instruction_number"`
	Table       string   `json:"table_name"`
	UsedBy      []string `json:"used_by_tables"`
	Usages      []usage  `json:"usages"`
	Colours     []struct {
		Usages []usage `json:"usages"`
	} `json:"color_usages"`
}

type usage struct {
	By  string `json:"used_by"`
	For string `json:"used_for"`
}

// place identifies the unit among those of its kind in a stage.
func (e element) place() [6]int {
	return [6]int{e.Row, e.Column, e.Unit, e.Hash, e.ID + e.Instruction, e.Byte}
}

// users lists the tables that use the unit.
func (e element) users() []usage {
	all := append([]usage{}, e.Usages...)
	for _, c := range e.Colours {
		all = append(all, c.Usages...)
	}
	for _, name := range e.UsedBy {
		all = append(all, usage{By: name})
	}
	if e.Table != "" {
		all = append(all, usage{By: e.Table})
	}
	return all
}

// phvReport is the part of the compiler's phv.json that is used here.
type phvReport struct {
	Containers []struct {
		Number int    `json:"phv_number"`
		Width  int    `json:"bit_width"`
		Kind   string `json:"container_type"`
		Gress  string `json:"gress"`
	} `json:"containers"`
}

func readJSON(path string, to any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}
