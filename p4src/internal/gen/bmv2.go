package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const compiler = "p4c-bm2-ss"

var errNoCompiler = errors.New(compiler + " is not on the PATH (p4lang's packages have it, or build p4c with its BMv2 backend)")

// knownWarning is emitted by p4c's backend for every table with an action selector, for
// the default action that its own front end adds; neither flags nor annotations reach it.
var knownWarning = regexp.MustCompile(`Target does not support default_action for ingress\.routing\.ipv[46]_lpm \(due to action profiles\)`)

// compile runs p4c in dir, so that the artefacts name sources by relative paths. Any
// warning but the known one is an error.
func compile(dir string) (build, error) {
	exe, err := exec.LookPath(compiler)
	if err != nil {
		return build{}, errNoCompiler
	}
	tmp, err := os.MkdirTemp("", "headgate-p4-")
	if err != nil {
		return build{}, err
	}
	defer os.RemoveAll(tmp)
	jsonOut, p4infoOut := filepath.Join(tmp, jsonFile), filepath.Join(tmp, p4infoFile)

	b := build{target: targets()[0]}
	if b.compiler, err = compilerVersion(exe); err != nil {
		return build{}, err
	}
	// Unused constants are those that only Tofino uses.
	output, err := runTool(dir, exe, "--arch", "v1model", "--std", "p4-16", "--Werror", "--Wdisable=unused",
		"-o", jsonOut, "--p4runtime-files", p4infoOut, b.main)
	if err != nil {
		return build{}, err
	}
	if n := strings.Count(output, "warning:") - len(knownWarning.FindAllString(output, -1)); n != 0 {
		return build{}, fmt.Errorf("%s: %d warnings:\n%s", compiler, n, output)
	}

	program, err := os.ReadFile(jsonOut)
	if err != nil {
		return build{}, err
	}
	p4info, err := os.ReadFile(p4infoOut)
	if err != nil {
		return build{}, err
	}
	b.files = map[string][]byte{
		path.Join(b.folder, jsonFile):   program,
		path.Join(b.folder, p4infoFile): withoutInitialDefaults(p4info),
	}
	return b, nil
}

// compilerVersion returns the compiler's name and version: another version may write the
// same program in another way.
func compilerVersion(exe string) (string, error) {
	name := filepath.Base(exe)
	out, err := exec.Command(exe, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", name, err)
	}
	version := regexp.MustCompile(`\d+(\.\d+)+`).Find(out)
	if version == nil {
		return "", fmt.Errorf("%s --version prints no version: %q", name, out)
	}
	return name + " " + string(version), nil
}

// withoutExterns removes the extern instances that P4Runtime's standard messages cannot carry. Their bodies are
// messages that only the chip's own server knows, and a text with an unknown message cannot be read. No
// controller of ours uses them.
func withoutExterns(p4info []byte) []byte {
	return regexp.MustCompile(`(?m)^externs \{\n(?:  .*\n)*\}\n`).ReplaceAll(p4info, nil)
}

// withoutSnapshots removes the tables of the chip's snapshots from a BF Runtime schema. They serve only to
// debug the chip, are two thirds of the text, and come in any order.
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
