package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
)

const root = "../.."

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func committed(t *testing.T) artefacts {
	first, _, _ := strings.Cut(string(readFile(t, digestFile)), "\n")
	return artefacts{
		json: readFile(t, jsonFile), p4info: readFile(t, p4infoFile),
		compiler: strings.TrimPrefix(first, compiledBy),
	}
}

// TestGeneratedFilesAreCurrent fails when a P4 source, an artefact or the generator changed
// without the files that follow from it.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generate(root, committed(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sortedKeys(files) {
		if diff := cmp.Diff(string(readFile(t, name)), string(files[name])); diff != "" {
			t.Errorf("%s is stale: run `make p4` (committed -, current +)\n%s", name, diff)
		}
	}
}

// TestCompilerAgrees recompiles where p4c is installed: the digests cannot see that
// somebody ran the generator with artefacts of other sources.
func TestCompilerAgrees(t *testing.T) {
	art, err := compile(root)
	if errors.Is(err, errNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := committed(t)
	if art.compiler != want.compiler {
		t.Skipf("%s is installed; the artefacts are of %s", art.compiler, want.compiler)
	}
	if !bytes.Equal(art.p4info, want.p4info) {
		t.Errorf("%s differs from what p4c makes of the sources: run `make p4`", p4infoFile)
	}
	if !bytes.Equal(art.json, want.json) {
		t.Errorf("%s differs from what p4c makes of the sources: run `make p4`", jsonFile)
	}
}

// TestArtefactsNameNoMachine keeps paths and dates of the machine that compiled out.
func TestArtefactsNameNoMachine(t *testing.T) {
	art := committed(t)
	dates := regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b`)
	paths := regexp.MustCompile(`"(/[A-Za-z][^"]*)"`)
	for name, data := range map[string][]byte{jsonFile: art.json, p4infoFile: art.p4info} {
		if m := paths.Find(data); m != nil {
			t.Errorf("%s names an absolute path: %s", name, m)
		}
		if m := dates.Find(data); m != nil {
			t.Errorf("%s carries a date or time: %s", name, m)
		}
	}
}

// TestIdsAreOurs checks that every object of the P4Info has an id from ids.p4, so that it
// stays when the program grows, and that no id of ids.p4 is left over.
func TestIdsAreOurs(t *testing.T) {
	var info p4configv1.P4Info
	if err := prototext.Unmarshal(committed(t).p4info, &info); err != nil {
		t.Fatal(err)
	}
	fixed := map[uint64]string{}
	define := regexp.MustCompile(`(?m)^#define\s+(ID_\w+)\s+(\w+)$`)
	for _, m := range define.FindAllStringSubmatch(string(readFile(t, "shared/ids.p4")), -1) {
		v, err := evaluate(m[2], nil)
		if err != nil {
			t.Fatal(err)
		}
		if other := fixed[v]; other != "" {
			t.Errorf("%s and %s are both %#x", other, m[1], v)
		}
		fixed[v] = m[1]
	}
	var preambles []*p4configv1.Preamble
	for _, x := range info.GetTables() {
		preambles = append(preambles, x.GetPreamble())
	}
	for _, x := range info.GetActions() {
		if x.GetPreamble().GetName() != "NoAction" {
			preambles = append(preambles, x.GetPreamble())
		}
	}
	for _, x := range info.GetActionProfiles() {
		preambles = append(preambles, x.GetPreamble())
	}
	for _, x := range info.GetCounters() {
		preambles = append(preambles, x.GetPreamble())
	}
	for _, x := range info.GetDirectCounters() {
		preambles = append(preambles, x.GetPreamble())
	}
	for _, x := range info.GetRegisters() {
		preambles = append(preambles, x.GetPreamble())
	}
	for _, x := range info.GetControllerPacketMetadata() {
		preambles = append(preambles, x.GetPreamble())
	}
	for _, p := range preambles {
		if fixed[uint64(p.GetId())] == "" {
			t.Errorf("%s has id %#x, which is not in shared/ids.p4", p.GetName(), p.GetId())
		}
		delete(fixed, uint64(p.GetId()))
	}
	for id, name := range fixed {
		t.Errorf("shared/ids.p4: %s (%#x) is not in the P4Info", name, id)
	}
}

// TestFieldIdsCountFromOne holds what p4runtime-go-client assumes of parameters.
func TestFieldIdsCountFromOne(t *testing.T) {
	var info p4configv1.P4Info
	if err := prototext.Unmarshal(committed(t).p4info, &info); err != nil {
		t.Fatal(err)
	}
	for _, a := range info.GetActions() {
		for i, p := range a.GetParams() {
			if int(p.GetId()) != i+1 {
				t.Errorf("%s: parameter %s has id %d, want %d", a.GetPreamble().GetName(), p.GetName(), p.GetId(), i+1)
			}
		}
	}
	for _, tb := range info.GetTables() {
		for i, f := range tb.GetMatchFields() {
			if int(f.GetId()) != i+1 {
				t.Errorf("%s: field %s has id %d, want %d", tb.GetPreamble().GetName(), f.GetName(), f.GetId(), i+1)
			}
		}
	}
}

// TestFeaturesAreTargetFree keeps v1model out of the shared files, so that another
// target's main can include them.
func TestFeaturesAreTargetFree(t *testing.T) {
	names, err := sourceFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	extern := regexp.MustCompile(`\b(standard_metadata_t|mark_to_drop|v1model\.p4|(register|counter|random|clone\w*|hash|digest|meter|action_selector)\s*[<(])`)
	comment := regexp.MustCompile(`//.*`)
	for _, name := range names {
		if !strings.HasPrefix(name, "shared/") {
			continue
		}
		code := comment.ReplaceAllString(string(readFile(t, name)), "")
		if m := extern.FindString(code); m != "" {
			t.Errorf("%s uses %s, which belongs into a target's folder", name, m)
		}
	}
}

func TestParseConstants(t *testing.T) {
	for _, tc := range []struct {
		source string
		want   []constant
		fault  string
	}{
		{"const bit<32> A_B = 12; // why\n#define C 64\nconst bit<9> D = A_B * C;",
			[]constant{{"A_B", 12, false, "why"}, {"C", 64, false, ""}, {"D", 768, false, ""}}, ""},
		{"const drop_t X = 0xff;", []constant{{"X", 255, true, ""}}, ""},
		{"#ifndef GUARD\n#define GUARD\ntypedef bit<9> port_t;", nil, ""},
		{"\nconst bit<8> Y = Z;", nil, `line 2: constant Y: "Z" is neither a number nor a constant defined before it`},
	} {
		got, err := parseConstants(tc.source, map[string]uint64{})
		if tc.fault != "" {
			if err == nil || err.Error() != tc.fault {
				t.Errorf("%q: error %v, want %s", tc.source, err, tc.fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.source, err)
		}
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(constant{})); diff != "" {
			t.Errorf("%q: want -, got +\n%s", tc.source, diff)
		}
	}
}

func TestGoName(t *testing.T) {
	for in, want := range map[string]string{
		"UDP_PORT_ROCE": "UDPPortRoCE",
		"ipv4_lpm":      "IPv4LPM",
		"dscp_to_class": "DSCPToClass",
		"maxqd_scale":   "MaxQDScale",
	} {
		if got := goName(in); got != want {
			t.Errorf("goName(%q) = %s, want %s", in, got, want)
		}
	}
}
