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

// support are folders with packages for the tests of several packages.
var support = []string{"tests/", "controller/internal/testenv/",
	"headroom/model/", "internal/testcert/", "internal/veth/", "softswitch/p4rt/internal/p4test/"}

// elsewhere are functions that other modules call, and one that the generator of package ids writes for each kind
// of constant.
var elsewhere = []string{"main", "init", "Init", "Unwrap", "Is", "MarshalJSON", "UnmarshalJSON", "String", "Error",
	"AuthType", "GetRequestMetadata", "RequireTransportSecurity", "DataRange", "Dims", "DropReason", "GlyphBoxes"}

// uncalled returns the product's functions and methods that no product code names, and the total number of
// functions. A name that several functions share counts for all of them.
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

// TestNothingForTestsAlone: code that only tests call is dead. deadcode misses it if reflection could reach its
// type.
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
