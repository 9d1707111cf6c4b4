package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// parses is the name of a function that reads bytes or text from outside.
var parses = regexp.MustCompile(`^(Parse|Decode|Unmarshal|Import|Load|PacketIn$|Read(Ports|Sizes|Config|Record)$)`)

// unfuzzed are packages with such functions and no fuzz target, with the reason.
var unfuzzed = map[string]string{
	"cli/command":           "ParseConfig is config.Parse, which controller.FuzzConfig calls",
	"controller/config":     "controller.FuzzConfig calls it with every feature's section",
	"internal/p4rtmsg":      "protobuf reads the P4Info",
	"p4src/internal/fit":    "it reads what the compiler wrote, when the program is built",
	"softswitch/bmv2json":   "softswitch/engine.FuzzProgram calls it",
	"softswitch/engine/phv": "a field has a place that the compiler gave it",
}

// TestParsersAreFuzzed: a package with an exported parser of bytes or text has a fuzz target, or a reason for
// having none.
func TestParsersAreFuzzed(t *testing.T) {
	parsers, fuzzed := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "tests" || name == ".git" || name == "examples" || strings.HasSuffix(name, "testdata") || strings.HasSuffix(name, "test")):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, ".pb.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case strings.HasSuffix(name, "_test.go"):
				fuzzed[folder] = fuzzed[folder] || strings.HasPrefix(f.Name.Name, "Fuzz")
			case parses.MatchString(f.Name.Name) && readsBytes(f):
				parsers[folder] = f.Name.Name
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, name := range parsers {
		if !fuzzed[folder] && unfuzzed[folder] == "" {
			t.Errorf("%s.%s reads what others made: want a fuzz target in %s, or a reason in unfuzzed", folder, name, folder)
		}
	}
	for folder := range unfuzzed {
		if fuzzed[folder] || parsers[folder] == "" {
			t.Errorf("unfuzzed: %s has a fuzz target, or no parser", folder)
		}
	}
	if len(parsers) < 15 {
		t.Errorf("%d packages have parsers: the test looks at the wrong place", len(parsers))
	}
}

// readsBytes reports whether a parameter is []byte, string, or a message of a switch.
func readsBytes(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		switch t := p.Type.(type) {
		case *ast.ArrayType:
			if e, ok := t.Elt.(*ast.Ident); ok && (e.Name == "byte" || e.Name == "string") {
				return true
			}
		case *ast.Ident:
			if t.Name == "string" {
				return true
			}
		case *ast.StarExpr:
			if s, ok := t.X.(*ast.SelectorExpr); ok && (s.Sel.Name == "PacketIn" || s.Sel.Name == "TableEntry") {
				return true
			}
		}
	}
	return false
}
