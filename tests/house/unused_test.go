package house

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// support are folders whose packages are for tests of several packages.
var support = []string{"tests/", "controller/internal/testenv/",
	"headroom/model/", "internal/testcert/", "internal/veth/", "softswitch/p4rt/internal/p4test/"}

// elsewhere are functions that other modules call, and one that the generator of package ids writes
// for each kind of constant.
var elsewhere = []string{"main", "init", "Init", "Unwrap", "Is", "MarshalJSON", "UnmarshalJSON", "String", "Error",
	"AuthType", "GetRequestMetadata", "RequireTransportSecurity", "DataRange", "Dims", "DropReason", "GlyphBoxes"}

// uncalled returns the functions and methods of the product that no product code names, and how many
// functions there are. Names that several functions have count for all of them.
func uncalled(t *testing.T, files map[string][]byte) (faults []string, functions int) {
	t.Helper()
	named, declared := map[string]int{}, map[string]string{}
	for path, text := range files {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		helper := slices.ContainsFunc(support, func(s string) bool { return strings.HasPrefix(path, s) })
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				named[n.Name]++
			case *ast.FuncDecl:
				if !helper && !strings.HasSuffix(path, ".pb.go") {
					declared[n.Name.Name] = fmt.Sprintf("%s:%d", path, set.Position(n.Pos()).Line)
				}
			}
			return true
		})
	}
	for name, at := range declared {
		if named[name] == 1 && !slices.Contains(elsewhere, name) {
			faults = append(faults, fmt.Sprintf("%s: no product code calls %s: delete it, or put it into a test", at, name))
		}
	}
	return faults, len(declared)
}

// TestNothingForTestsAlone: what only tests call is dead code. deadcode does not see it where
// reflection could reach its type.
func TestNothingForTestsAlone(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "*.go")
	cmd.Dir = "../.."
	list, err := cmd.Output()
	if err != nil {
		t.Skip("this is no git checkout: ", err)
	}
	files := map[string][]byte{}
	for path := range strings.Lines(string(list)) {
		path = strings.TrimSpace(path)
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", path))
		switch {
		case err == nil:
			files[path] = text
		case !errors.Is(err, fs.ErrNotExist): // deleted, and the index does not know it yet
			t.Fatal(err)
		}
	}
	faults, functions := uncalled(t, files)
	if functions < 1000 {
		t.Errorf("only %d functions were read", functions)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

func TestUncalledBites(t *testing.T) {
	faults, _ := uncalled(t, map[string][]byte{
		"a/a.go":     []byte("package a\n\nfunc Called() {}\n\nfunc (x T) Alone() {}\n"),
		"b/b.go":     []byte("package b\n\nvar _ = a.Called\n"),
		"tests/t.go": []byte("package t\n\nfunc Helper() {}\n"),
	})
	if want := "a/a.go:5: no product code calls Alone: delete it, or put it into a test"; len(faults) != 1 || faults[0] != want {
		t.Errorf("%q, want %q", faults, want)
	}
}
