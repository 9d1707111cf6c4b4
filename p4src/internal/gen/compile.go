package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	compiler = "p4c-bm2-ss"
	mainFile = "headgate_v1model.p4"
)

// errNoCompiler says that p4c is not installed.
var errNoCompiler = errors.New(compiler + " is not on the PATH (p4lang's packages have it, or build p4c with its BMv2 backend)")

// knownWarning is emitted by p4c's backend for every table with an action selector, for
// the default action that its own front end adds; neither flags nor annotations reach it.
const knownWarning = "Target does not support default_action for ingress.routing.ipv4_lpm (due to action profiles)"

// compile runs p4c in dir, so that the artefacts name sources by relative paths. Any
// warning but the known one is an error.
func compile(dir string) (artefacts, error) {
	path, err := exec.LookPath(compiler)
	if err != nil {
		return artefacts{}, errNoCompiler
	}
	tmp, err := os.MkdirTemp("", "headgate-p4-")
	if err != nil {
		return artefacts{}, err
	}
	defer os.RemoveAll(tmp)
	jsonOut, p4infoOut := filepath.Join(tmp, "headgate.json"), filepath.Join(tmp, "headgate.p4info.txtpb")

	var art artefacts
	if art.compiler, err = compilerVersion(path); err != nil {
		return artefacts{}, err
	}
	cmd := exec.Command(path, "--arch", "v1model", "--std", "p4-16", "--Werror",
		"-o", jsonOut, "--p4runtime-files", p4infoOut, mainFile)
	cmd.Dir = dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return artefacts{}, fmt.Errorf("%s: %w\n%s", compiler, err, output.String())
	}
	if n := strings.Count(output.String(), "warning:") - strings.Count(output.String(), knownWarning); n != 0 {
		return artefacts{}, fmt.Errorf("%s: %d warnings:\n%s", compiler, n, output.String())
	}

	if art.json, err = os.ReadFile(jsonOut); err != nil {
		return artefacts{}, err
	}
	if art.p4info, err = os.ReadFile(p4infoOut); err != nil {
		return artefacts{}, err
	}
	art.p4info = withoutInitialDefaults(art.p4info)
	return art, nil
}

// compilerVersion returns the compiler's name and version: another version may write the
// same program in another way.
func compilerVersion(path string) (string, error) {
	out, err := exec.Command(path, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", compiler, err)
	}
	version := regexp.MustCompile(`\d+(\.\d+)+`).Find(out)
	return compiler + " " + string(version), nil
}

// withoutInitialDefaults removes the field initial_default_action from a P4Info. It came
// with P4Runtime 1.4.0; clients built before, and ours with its pinned modules, refuse a
// text with a field that they do not know. The program's JSON has the same defaults.
func withoutInitialDefaults(p4info []byte) []byte {
	return regexp.MustCompile(`(?m)^  initial_default_action \{\n(?:    .*\n)*  \}\n`).ReplaceAll(p4info, nil)
}
