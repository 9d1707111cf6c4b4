// Package house has the repository's rules as tests: the packages that each package may import, and that no
// product code exists only for tests.
package house

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the path of the main module.
const module = "github.com/headgate/headgate/"

// allowed lists the top-level folders that the product code of each folder may import. Tests may import more. The
// algorithms (headroom, cnpgen, int, hosts/law, tables) import no sockets and no daemon, so that the simulator,
// the switch and the agent can share them.
var allowed = map[string][]string{
	"api":        {"internal"},
	"cli":        {"api", "cnpgen", "controller", "emulation", "headroom", "hosts", "internal", "plotting", "preview", "sim", "softswitch", "units"},
	"clock":      {"internal", "units"},
	"cmd":        {"cli"},
	"cnpgen":     {"internal", "p4src", "packet", "units"},
	"controller": {"api", "cnpgen", "headroom", "hosts", "internal", "p4src", "preview", "tables", "units"},
	"emulation":  {"api", "clock", "controller", "examples", "hosts", "int", "internal", "p4src", "packet", "plotting", "preview", "sim", "softswitch", "units"},
	"examples":   {"api"},
	"headroom":   {"tables", "units"},
	"hosts":      {"api", "clock", "int", "internal", "packet", "units"},
	"int":        {"units"},
	"internal":   {"units"},
	"p4src":      {"units"},
	"packet":     {"int", "units"},
	"plotting":   {},
	"preview":    {"api", "cnpgen", "controller", "headroom", "p4src", "plotting", "sim", "units"},
	"sim":        {"cnpgen", "headroom", "hosts", "int", "internal", "plotting", "units"},
	"softswitch": {"clock", "cnpgen", "internal", "p4src", "packet", "units"},
	"tables":     {"headroom", "p4src", "units"},
	"tests":      {"clock", "cnpgen", "controller", "headroom", "int", "internal", "p4src", "softswitch", "tables", "units"},
	"units":      {},
}

// only are packages that only one package, and packages below it, may import.
var only = []struct{ what, by, why string }{
	{"github.com/spf13/cobra", module + "cli", "subcommands have one home"},
	{module + "controller/state/lie", module + "controller/state", "what lies is for tests/cluster to find"},
	{module + "controller/trafficmanager/tofino", module + "controller", "the rest sees package trafficmanager's Driver"},
}

// forbidden are packages that a folder may not reach even through others.
var forbidden = []struct{ from, to, why string }{
	{"controller", "softswitch", "the daemon drives switches over P4Runtime and links none"},
	{"controller", "sim", "the daemon simulates nothing: preview does, in the operator's process"},
	{"sim", "controller", "the simulator runs the algorithms, not the daemon"},
	{"hosts/law", "net", "a law is a state machine without sockets"},
	{"api/headgate/v1", module + "internal", "other programs import the API alone"},
	{"api/headgate/v1", "api/client", "other programs import the API alone"},
	{"headroom", "net", "a buffer policy knows no sockets"},
}

// pkg is the output of `go list` for a package.
type pkg struct {
	ImportPath    string
	Imports, Deps []string
}

// list returns all packages of the module.
func list(t *testing.T) []pkg {
	t.Helper()
	// By default, the profile of cmd/headgate would give its imports other names.
	cmd := exec.Command("go", "list", "-pgo=off", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = "../.."
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// folder returns the top-level folder of a package of the module, "" for others.
func folder(path string) string {
	inner, ok := strings.CutPrefix(path, module)
	if !ok {
		return ""
	}
	top, _, _ := strings.Cut(inner, "/")
	return top
}

// faults returns violations of the rules, one line each.
func faults(all []pkg) []string {
	var out []string
	for _, p := range all {
		from := folder(p.ImportPath)
		may, known := allowed[from]
		if !known {
			out = append(out, fmt.Sprintf("%s: the folder %q has no rule", p.ImportPath, from))
			continue
		}
		for _, i := range p.Imports {
			if to := folder(i); to != "" && to != from && !slices.Contains(may, to) {
				out = append(out, fmt.Sprintf("%s imports %s, but %s may import only %s", p.ImportPath, i, from, strings.Join(may, ", ")))
			}
		}
		for _, o := range only {
			for _, i := range p.Imports {
				if !within(p.ImportPath, o.by) && !within(p.ImportPath, o.what) && within(i, o.what) {
					out = append(out, fmt.Sprintf("%s imports %s: only %s may, for %s", p.ImportPath, i, o.by, o.why))
				}
			}
		}
		for _, f := range forbidden {
			if !within(p.ImportPath, module+f.from) {
				continue
			}
			for _, d := range p.Deps {
				if within(d, f.to) || within(d, module+f.to) {
					out = append(out, fmt.Sprintf("%s depends on %s: %s", p.ImportPath, d, f.why))
				}
			}
		}
	}
	return out
}

// within reports whether a package is in a folder, or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func TestImports(t *testing.T) {
	for _, f := range faults(list(t)) {
		t.Error(f)
	}
}

// Each deliberate violation is reported.
func TestImportRulesBite(t *testing.T) {
	for name, tc := range map[string]struct {
		pkg  pkg
		want string
	}{
		"a folder too many":  {pkg{ImportPath: module + "units", Imports: []string{module + "cli"}}, "units may import only"},
		"an unknown folder":  {pkg{ImportPath: module + "news/paper"}, `"news" has no rule`},
		"a second home":      {pkg{ImportPath: module + "emulation", Imports: []string{"github.com/spf13/cobra"}}, "subcommands have one home"},
		"a part of it":       {pkg{ImportPath: module + "cmd/man", Imports: []string{"github.com/spf13/cobra/doc"}}, "subcommands have one home"},
		"through others":     {pkg{ImportPath: module + "controller/p4runtime/device", Deps: []string{module + "softswitch/engine"}}, "links none"},
		"an API with more":   {pkg{ImportPath: module + "api/headgate/v1", Deps: []string{module + "internal/confine"}}, "import the API alone"},
		"a law with sockets": {pkg{ImportPath: module + "hosts/law/swift", Deps: []string{"net"}}, "without sockets"},
	} {
		got := faults([]pkg{tc.pkg})
		if len(got) != 1 || !strings.Contains(got[0], tc.want) {
			t.Errorf("%s: %q, want one fault with %q", name, got, tc.want)
		}
	}
}
