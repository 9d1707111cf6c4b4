package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var sequential = regexp.MustCompile(`(?s)\nSEQUENTIAL := (.*?[^\\])\n`)

// TestSequentialPackages: packages that the Makefile tests without the race detector start no goroutine, and
// neither do their imports from the module.
func TestSequentialPackages(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	m := sequential.FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile has no SEQUENTIAL")
	}
	packages := strings.Fields(strings.ReplaceAll(string(m[1]), "\\\n", " "))
	cmd := exec.Command("go", slices.Concat([]string{"list", "-test", "-deps", "-f",
		`{{$d := .Dir}}{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$d}} {{.}}{{"\n"}}{{end}}{{end}}{{end}}`}, packages)...)
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for line := range strings.Lines(string(list)) {
		dir, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if filepath.IsAbs(name) {
			continue // the main file of a test
		}
		name = filepath.Join(dir, name)
		files++
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if starts(file) && !strings.Contains(name, cores) {
			t.Errorf("%s starts goroutines: take its package out of the Makefile's SEQUENTIAL", name)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
}

// cores is the file in which the simulator starts goroutines, only for runs on several cores. The Makefile runs
// the tests of those separately with the race detector.
const cores = "/sim/parallel"

// starters are functions and methods of other modules that start goroutines.
var starters = map[string]bool{
	"Go": true, "Parallel": true, "RunParallel": true, "AfterFunc": true,
	"NewServer": true, "NewTLSServer": true, "Serve": true, "ListenAndServe": true,
}

// starts reports whether a file starts a goroutine, directly or through another module's functions.
func starts(file *ast.File) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || starters[n.Sel.Name]
		}
		return !found
	})
	return found
}

func TestStartsBites(t *testing.T) {
	for code, want := range map[string]bool{
		"go f()": true, "wg.Go(f)": true, "t.Parallel()": true, "f()": false, "b.RunParallel(f)": true,
		"httptest.NewServer(h)": true, "time.AfterFunc(d, f)": true,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() { "+code+" }", 0)
		if err != nil || starts(file) != want {
			t.Errorf("%s: %v, %v, want %v", code, starts(file), err, want)
		}
	}
}
