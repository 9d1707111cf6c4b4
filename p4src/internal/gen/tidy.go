package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// withoutExterns removes the extern instances that P4Runtime's standard messages cannot
// carry: their bodies are messages that only the chip's own server knows, and a text with an
// unknown message cannot be read. No controller of ours uses them.
func withoutExterns(p4info []byte) []byte {
	return regexp.MustCompile(`(?m)^externs \{\n(?:  .*\n)*\}\n`).ReplaceAll(p4info, nil)
}

// withoutSnapshots removes the tables of the chip's snapshots from a BF Runtime schema: they
// are of use only to who debugs the chip, are two thirds of the text, and come in any order.
func withoutSnapshots(schema []byte) ([]byte, error) {
	var s struct {
		Version json.RawMessage   `json:"schema_version"`
		Tables  []json.RawMessage `json:"tables"`
		Learn   json.RawMessage   `json:"learn_filters"`
	}
	d := json.NewDecoder(bytes.NewReader(schema))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", bfrtFile, err)
	}
	var fault error
	s.Tables = slices.DeleteFunc(s.Tables, func(table json.RawMessage) bool {
		var t struct {
			Name string `json:"name"`
		}
		fault = cmp.Or(fault, json.Unmarshal(table, &t))
		return strings.HasPrefix(t.Name, "pipe.snapshot.")
	})
	if fault != nil {
		return nil, fmt.Errorf("%s: %w", bfrtFile, fault)
	}
	out, err := json.MarshalIndent(s, "", " ")
	return append(out, '\n'), err
}

// withoutInitialDefaults removes the field initial_default_action from a P4Info. It came
// with P4Runtime 1.4.0; clients built before, and ours with its pinned modules, refuse a
// text with a field that they do not know. The program's JSON has the same defaults.
func withoutInitialDefaults(p4info []byte) []byte {
	return regexp.MustCompile(`(?m)^  initial_default_action \{\n(?:    .*\n)*  \}\n`).ReplaceAll(p4info, nil)
}
