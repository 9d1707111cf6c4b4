package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
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

// committed returns every target's build as committed.
func committed(t *testing.T) []build {
	t.Helper()
	all, err := withCommitted(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestGeneratedFilesAreCurrent fails if a P4 source, an artefact or the generator changed and the generated files
// did not.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	builds := committed(t)
	files, err := generate(root, builds)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sortedKeys(files) {
		if diff := cmp.Diff(string(readFile(t, name)), string(files[name])); diff != "" {
			t.Errorf("%s is stale: run `make p4` (committed -, current +)\n%s", name, diff)
		}
	}
	for _, b := range builds {
		want, err := b.digestLines(root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(readFile(t, b.digestFile())), string(want)); diff != "" {
			t.Errorf("%s is stale: run `%s` (committed -, current +)\n%s", b.digestFile(), b.remake, diff)
		}
	}
}

// TestCompilersAgree recompiles if p4c is installed: the digests cannot show whether the generator ran with
// artefacts of other sources. Tofino takes minutes, so it runs only on request.
func TestCompilersAgree(t *testing.T) {
	for _, want := range committed(t) {
		t.Run(want.name, func(t *testing.T) {
			got := recompile(t, want)
			if got.compiler != want.compiler {
				t.Skipf("%s is installed; the artefacts are of %s", got.compiler, want.compiler)
			}
			for name, data := range want.files {
				if !bytes.Equal(got.files[name], data) {
					t.Errorf("%s differs from what p4c makes of the sources: run `%s`", name, want.remake)
				}
			}
		})
	}
}

func recompile(t *testing.T, want build) build {
	t.Helper()
	if want.name == "bmv2" {
		b, err := compile(root)
		if errors.Is(err, errNoCompiler) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if os.Getenv("HEADGATE_TOFINO") != "1" {
		t.Skip("HEADGATE_TOFINO=1 recompiles for Tofino, which takes minutes")
	}
	b, err := compileTofino(root, -1, io.Discard, want.name)
	if errors.Is(err, errNoTofino) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b[0]
}

// TestArtefactsNameNoMachine: artefacts contain no paths or dates of the machine that compiled them.
func TestArtefactsNameNoMachine(t *testing.T) {
	dates := regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b`)
	paths := regexp.MustCompile(`"[^"]*(?:\.\./|/(?:home|opt|root|tmp|usr|work)/)[^"]*"|"(/[A-Za-z][^"]*)"`)
	for _, b := range committed(t) {
		for name, data := range b.files {
			if m := paths.Find(data); m != nil {
				t.Errorf("%s names a path outside the sources: %s", name, m)
			}
			if m := dates.Find(data); m != nil {
				t.Errorf("%s carries a date or time: %s", name, m)
			}
		}
	}
}

// TestEverySourceIsCompiled finds P4 files that no main file includes.
func TestEverySourceIsCompiled(t *testing.T) {
	used := map[string]bool{}
	for _, target := range targets() {
		names, err := sourceFiles(root, target.main)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			used[name] = true
		}
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".p4" && !used[name] {
			t.Errorf("%s is included by no main", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestIdsAreOurs: every object of the P4Infos has an id from ids.p4, so that ids stay when the program grows and
// are equal on all targets. Every id of ids.p4 is used.
func TestIdsAreOurs(t *testing.T) {
	fixed := map[uint32]string{}
	ids, err := definedIDs(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range ids {
		if other := fixed[v]; other != "" {
			t.Errorf("%s and %s are both %#x", other, name, v)
		}
		fixed[v] = name
	}
	used := map[uint32]string{}
	for _, b := range committed(t) {
		info := decode(t, b)
		for _, p := range preambles(info) {
			id := p.GetId()
			if id>>24 == uint32(p4configv1.P4Ids_DIGEST) && fixed[id] == "" { // derived from its name
				continue
			}
			if fixed[id] == "" {
				t.Errorf("%s: %s has id %#x, which is in no ids.p4", b.name, p.GetName(), p.GetId())
			}
			if other := used[id]; other != "" && other != p.GetName() {
				t.Errorf("%s: id %#x is %s; it is %s on another target", b.name, id, p.GetName(), other)
			}
			used[id] = p.GetName()
		}
	}
	// No program has these ids now. They belonged to a table of victim ports.
	retired := map[string]bool{"ID_TABLE_VICTIM_PORT": true, "ID_ACTION_SET_VICTIM": true}
	for id, name := range fixed {
		if (used[id] == "") != retired[name] {
			t.Errorf("%s (%#x) is in a P4Info: %v; retired: %v", name, id, used[id] != "", retired[name])
		}
	}
}

func decode(t *testing.T, b build) *p4configv1.P4Info {
	t.Helper()
	info, err := b.p4info()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestFieldIdsCountFromOne checks p4runtime-go-client's assumption about parameters.
func TestFieldIdsCountFromOne(t *testing.T) {
	for _, b := range committed(t) {
		info := decode(t, b)
		for _, a := range info.GetActions() {
			for i, p := range a.GetParams() {
				if int(p.GetId()) != i+1 {
					t.Errorf("%s: %s: parameter %s has id %d, want %d", b.name, a.GetPreamble().GetName(), p.GetName(), p.GetId(), i+1)
				}
			}
		}
		for _, tb := range info.GetTables() {
			for i, f := range tb.GetMatchFields() {
				if int(f.GetId()) != i+1 {
					t.Errorf("%s: %s: field %s has id %d, want %d", b.name, tb.GetPreamble().GetName(), f.GetName(), f.GetId(), i+1)
				}
			}
		}
	}
}

// TestFeaturesAreTargetFree: shared files use no externs of a target, so that every target's main file can
// include them.
func TestFeaturesAreTargetFree(t *testing.T) {
	extern := regexp.MustCompile(`\b(standard_metadata_t|mark_to_drop|v1model\.p4|t2?na\.p4|\w+_intrinsic_metadata_\w+|RegisterAction|(register|counter|random|clone\w*|hash|digest|meter|action_selector|Register|Counter|Random|Mirror|Hash|Digest|Meter|Lpf|ActionSelector|ActionProfile)\s*[<(])`)
	comment := regexp.MustCompile(`//.*`)
	files, err := fs.Glob(os.DirFS(root), "shared/*.p4")
	if err != nil || len(files) == 0 {
		t.Fatalf("shared/*.p4: %d files, %v", len(files), err)
	}
	for _, name := range files {
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
