package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/sim/experiment"
	"github.com/headgate/headgate/tests/race"
)

const tiny = `
title: Two hosts
topology: {kind: star, hosts: 2, host: {rate: 100Gbps, delay: 1us}}
flows:
  - {kind: flow, from: h0, to: h1, size: 10KB}
run: {until: 100us, stop_when_done: true}
measures:
  - {name: FCT, what: fct, paper: "6.5"}
`

func sim(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	c := newSimCommand()
	var out, errOut bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&errOut)
	c.SetArgs(args)
	c.SilenceUsage = true
	err = c.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tiny.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSimList(t *testing.T) {
	out, _, err := sim(t, "list")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range experiment.Builtin() {
		if !strings.Contains(out, name+" ") {
			t.Errorf("%s is not listed:\n%s", name, out)
		}
	}
}

func TestSimRun(t *testing.T) {
	// 10 packets of 1054 B at 80 ps a byte, one packet's time in the switch, two links; then the
	// acknowledgement of 64 B over both links.
	const fct = "4.9378"
	name := file(t, tiny)
	out, _, err := sim(t, "run", name)
	if err != nil || !strings.Contains(out, fct) {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = sim(t, "run", name, "--json", "--seeds", "2")
	var rep experiment.Report
	if err != nil || json.Unmarshal([]byte(out), &rep) != nil || len(rep.Outcomes) != 2 || rep.Outcomes[1].Seed != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSimShardAndMerge(t *testing.T) {
	name, dir := file(t, tiny), t.TempDir()
	for _, shard := range []string{"0/2", "1/2"} {
		if _, _, err := sim(t, "run", name, "--seeds", "3", "--shard", shard, "--out", dir); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := sim(t, "merge", filepath.Join(dir, "tiny"))
	if err != nil || !strings.Contains(out, "3 of 3 runs") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSimRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		`no experiment "nonsense"`:     {"run", "nonsense"},
		"no such file":                 {"run", filepath.Join(t.TempDir(), "x.yaml")},
		`--shard "2/2"`:                {"run", file(t, tiny), "--shard", "2/2"},
		"at least one seed":            {"run", file(t, tiny), "--seeds", "0"},
		"tiny.yaml:3: topology.hosts:": {"run", file(t, strings.Replace(tiny, "hosts: 2", "hosts: 1", 1))},
	} {
		if _, _, err := sim(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
}

func TestSimLaws(t *testing.T) {
	var out strings.Builder
	c := newSimCommand()
	c.SetArgs([]string{"laws"})
	c.SetOut(&out)
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  hpcc: HPCC (SIGCOMM 2019)\n", "      max_stage=WHOLE NUMBER: ", "  soze: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed\n%s\nwithout %q", out.String(), want)
		}
	}
}

// TestSimNewAndCheck: new writes a valid file that runs, check names each error with its line, and no file is
// overwritten.
func TestSimNewAndCheck(t *testing.T) {
	name := filepath.Join(t.TempDir(), "mine.yaml")
	bad := file(t, strings.NewReplacer("10KB", "10", "what: fct", "what: fcts", "100us,", "never,").Replace(tiny)+
		"colour: red\nvariants: [{name: a, set: {}}, {name: b, set: {run: {until: 1h}}}]\nclaims: [{name: c, measure: none}]\n")
	for _, c := range []struct {
		args  []string
		out   string
		fails []string
	}{
		{[]string{"new", name}, "wrote ", nil},
		{[]string{"check", name}, "mine.yaml is right: 3 variants, 5 measures, 1 claim\n", nil},
		{[]string{"run", name}, "verdict: agrees", nil},
		{[]string{"new", name}, "", []string{"file exists"}},
		{[]string{"new", name + ".txt"}, "", []string{"ends in .yaml"}},
		{[]string{"new", name, "--from", "none"}, "", []string{`--from: no experiment "none"`}},
		{[]string{"new", filepath.Join(t.TempDir(), "x.yaml"), "--from", "dsh-14"}, "wrote ", nil},
		{[]string{"check", bad}, "", []string{
			"tiny.yaml:5: flows[0].size: ", "tiny.yaml:6: run.until: ", "tiny.yaml:8: measures[0].what: ", "tiny.yaml:9: colour: ",
			`tiny.yaml:10: run.until: "1h"`, `tiny.yaml:11: claims[0].variant: is ""`,
		}},
	} {
		out, _, err := sim(t, c.args...)
		if !strings.Contains(out, c.out) || (err != nil) != (c.fails != nil) {
			t.Errorf("%v: %v\n%s", c.args, err, out)
		}
		for _, want := range c.fails {
			if err != nil && strings.Count(err.Error(), want) != 1 {
				t.Errorf("%v: %v, want once %q", c.args, err, want)
			}
		}
	}
}

func TestSimExplain(t *testing.T) {
	race.SkipSequential(t)
	for args, want := range map[string]string{
		"flows.load":        "flows[].load: a number from 0.000001 to 1\ndefault: follows from other keys\nwhere kind is coflows, poisson\n\nFraction of",
		"":                  "topology",
		"measures.what":     "goodput         Gb/s  payload of a group",
		"run -o json":       `"key": "run.until"`,
		"--schema":          `"additionalProperties": false`,
		"flows.colour":      `"flows.colour" is no key: flows has no "colour", want one of class, `,
		"colour":            `"colour" is no key: the experiment file has no "colour", want one of `,
		"flows --schema":    `--schema takes no KEY, got "flows"`,
		"laws.increase":     "where kind is aimd, d2tcp",
		"laws.max_mdf":      "swift  ",
		"laws.swift":        "KEY             DEFAULT              ALLOWED",
		"laws.none -o json": `"kinds": [`,
	} {
		out, _, err := sim(t, append([]string{"explain"}, strings.Fields(args)...)...)
		if err != nil {
			out += err.Error()
		}
		if !strings.Contains(out, want) {
			t.Errorf("%s:\n%s\nwant %q", args, out, want)
		}
	}
}

// TestSimFigures: figures does not run a file again that has a record, and its pages show recorded
// and new results.
func TestSimFigures(t *testing.T) {
	race.SkipSequential(t)
	dir := t.TempDir()
	args := []string{"figures", "dsh-14", "--records", dir, "--pages", dir}
	for i, want := range []string{"dsh-14: 6 agrees", "dsh-14: has its record"} {
		out, _, err := sim(t, args...)
		if err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("run %d: %v, %q, want %q", i+1, err, out, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "dsh.md")); err != nil || !strings.Contains(string(text), "](dsh-14-sih.svg)") {
		t.Errorf("the page of DSH: %v\n%s", err, text)
	}
	if _, _, err := sim(t, "figures", "load-90"); err == nil || !strings.Contains(err.Error(), "has no figure") {
		t.Errorf("load-90: %v", err)
	}
}

// TestSimVerdicts: a command prints its verdict, and its exit code says the same.
func TestSimVerdicts(t *testing.T) {
	ring := `
topology:
  kind: custom
  hosts: [h0, h1, h2, h3, h4]
  switches: [s0, s1, s2, s3, s4]
  links:
`
	for i := range 5 {
		ring += fmt.Sprintf("    - {a: s%d, b: h%[1]d, rate: 100Gbps, delay: 1us}\n    - {a: s%[1]d, b: s%d, rate: 100Gbps, delay: 1us}\n", i, (i+1)%5)
	}
	ring += "flows: [{kind: permutation, size: 100KB}]\nrun: {until: 1ms}\nmeasures: [{name: f, what: fct}]\n"
	claim := func(text string) string {
		return tiny + "figure: {paper: headgate, number: a}\nclaims: [{name: it is quick, measure: FCT, " + text + "}]\n"
	}
	dir := t.TempDir()
	for _, c := range []struct {
		args    []string
		out, in string // of the error
	}{
		{[]string{"cycles", file(t, ring)}, "s0→s1→", "cyclic buffer dependency"},
		{[]string{"cycles", file(t, tiny)}, "no cycle", ""},
		{[]string{"run", file(t, claim("below: 1"))}, "disagrees", "the claims of tiny: disagrees"},
		{[]string{"run", file(t, claim("below: 1")), "--out", dir, "--seeds", "2", "--shard", "0/2"}, "", ""},
		{[]string{"run", file(t, claim("below: 1")), "--out", dir, "--seeds", "2", "--shard", "1/2"}, "", ""},
		{[]string{"run", file(t, claim("below: 10"))}, "agrees", ""},
	} {
		out, _, err := sim(t, c.args...)
		if !strings.Contains(out, c.out) || (err != nil) != (c.in != "") || err != nil && !strings.Contains(err.Error(), c.in) {
			t.Errorf("%v: %v, want %q\n%s", c.args, err, c.in, out)
		}
	}
}
