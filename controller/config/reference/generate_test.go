package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/keydoc"
)

// begin matches the beginning of a section type's comment.
var begin = regexp.MustCompile(`^Config is the section \w+(: (it )?|, |\. ?|$)`)

// tagged matches the tag of a field whose key differs from its name.
const tagged = "key"

// descriptions returns the comment of each key, by its path without brackets, and the keys without
// one.
func descriptions(keys []keydoc.Key) (texts map[string]string, faults []error) {
	s := &sources{texts: map[string]map[string]map[string]string{}, names: map[string]string{}}
	for _, k := range keys {
		name := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
		s.names[strings.ReplaceAll(name, "_", "")] = name
	}
	top := s.sections()
	texts = map[string]string{}
	for _, k := range keys {
		path := strings.Split(keydoc.Plain(k.Path), ".")
		if len(path) > 2 && path[0] == "switches" && top[path[1]] != nil {
			continue // as in the fabric's section
		}
		in := reflect.TypeFor[config.Config]()
		var text string
		switch section := top[path[0]]; {
		case section != nil && len(path) == 1:
			text = begin.ReplaceAllString(s.of(section)[""], "")
		case section != nil:
			text = s.find(section, path[1:])
		case k.Path == Policy:
			text = "The file that `controller.policy` names, with these keys, but without `policy.` before them: who may do what at the controller."
		case path[0] == Policy:
			text = s.find(reflect.TypeFor[authz.Policy](), path[1:])
		case len(path) == 2 && path[0] == "switches" && top[path[1]] != nil:
			text = "In place of keys of `" + path[1] + "`, for this switch alone."
		default:
			text = s.find(in, path)
		}
		switch {
		case text == "" && !k.Holds:
			faults = append(faults, fmt.Errorf("%s: has no comment: want a field of the configuration's types that has its name, or a tag key with it", k.Path))
		case k.Default == keydoc.Computed && !strings.Contains(text, "efault"):
			faults = append(faults, fmt.Errorf("%s: has a default that follows from other keys: want a comment that says which", k.Path))
		}
		if text != "" {
			texts[keydoc.Plain(k.Path)] = text
		}
	}
	return texts, faults
}

// sources are the packages that describe keys.
type sources struct {
	// texts holds the comments of a package's types: a field's by its name, the type's own by "".
	texts map[string]map[string]map[string]string // by package and type
	names map[string]string                       // by key, without underscores
}

// sections returns the types of the sections.
func (*sources) sections() map[string]reflect.Type {
	const least = "name: f\nswitches: [{name: s, device_id: 1, address: \"h:1\"}]\n"
	cfg, err := config.Parse("least.yaml", []byte(least), nil, controller.Sections()...)
	if err != nil {
		panic(err)
	}
	types := map[string]reflect.Type{}
	for _, s := range controller.Sections() {
		types[s.Key] = reflect.TypeOf(cfg.Section(s.Key))
	}
	return types
}

// of returns the comments of one type.
func (s *sources) of(t reflect.Type) map[string]string {
	if s.texts[t.PkgPath()] == nil {
		s.texts[t.PkgPath()] = parse("../../../" + strings.TrimPrefix(t.PkgPath(), "github.com/headgate/headgate/"))
	}
	return s.texts[t.PkgPath()][t.Name()]
}

// find returns the comment of a type's key, with field names replaced by keys.
func (s *sources) find(t reflect.Type, path []string) string {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return ""
	}
	for i := range t.NumField() {
		f := t.Field(i)
		switch tag, has := f.Tag.Lookup(tagged); {
		case has && slices.Contains(strings.Split(tag, ","), strings.Join(path, ".")),
			!has && len(path) == 1 && named(f, path[0]):
			return s.withKeys(t, s.of(t)[f.Name])
		case !has && len(path) > 1 && named(f, path[0]):
			return s.find(f.Type, path[1:])
		}
	}
	return ""
}

func named(f reflect.StructField, key string) bool {
	return strings.EqualFold(f.Name, strings.ReplaceAll(key, "_", ""))
}

// withKeys replaces field names in a comment by keys.
func (s *sources) withKeys(t reflect.Type, text string) string {
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get(tagged)
		if key == "" {
			key = s.names[strings.ToLower(f.Name)]
		}
		before := "(^|[ (^/])"
		if f.Name == "A" {
			before = "^()" // elsewhere it is the indefinite article
		}
		if f.IsExported() && key != "" && !strings.Contains(key, ",") {
			key = key[strings.LastIndexByte(key, '.')+1:]
			text = regexp.MustCompile(before+f.Name+`([ ,.;:)]|$)`).ReplaceAllString(text, "$1`"+key+"`$2")
		}
	}
	return text
}

// parse returns the comments of a package's struct types.
func parse(dir string) map[string]map[string]string {
	types := map[string]map[string]string{}
	list, err := os.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	for _, e := range list {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			panic(err)
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					types[t.Name.Name] = commentsOf(g, t)
				}
			}
		}
	}
	return types
}

func commentsOf(g *ast.GenDecl, t *ast.TypeSpec) map[string]string {
	texts := map[string]string{"": line(g.Doc)}
	if s, ok := t.Type.(*ast.StructType); ok {
		for _, f := range s.Fields.List {
			for _, n := range f.Names {
				texts[n.Name] = line(f.Doc)
			}
		}
	}
	return texts
}

func line(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// draw writes the reference page.
func draw(keys []keydoc.Key) string {
	var b strings.Builder
	b.WriteString("# Keys of the fabric file and of a policy\n" +
		"\n" +
		"Generated by `go test ./controller/config/reference -update` from the functions that read the files and the comments of their types.\n" +
		"`headgate explain KEY` prints the same. [`fabric.schema.json`](fabric.schema.json) and [`policy.schema.json`](policy.schema.json) are JSON schemas for editors\n" +
		"(`# yaml-language-server: $schema=docs/reference/fabric.schema.json` as a file's first line) and other checks; `headgate explain --schema` prints them.\n" +
		"[`examples/leaf-spine.yaml`](../../examples/leaf-spine.yaml) has every key in place.\n" +
		"\n" +
		"Rates have a unit (bps, Kbps, Mbps, Gbps), and so have amounts (B, KB = 1000 B, KiB = 1024 B, …) and times (ns, us, ms, s). Times of the network\n" +
		"are at line rate; in the fabric they are multiplied by `scale`. Times of `controller` are wall-clock times. `[]` stands for each element of a list.\n" +
		"\n")
	for _, k := range keys {
		parts := strings.Split(keydoc.Plain(k.Path), ".")
		if len(parts) > 2 && parts[0] == "switches" {
			if _, _, section := keydoc.Find(keys, parts[1]); section {
				continue // as in the fabric's section
			}
		}
		if k.Holds && len(parts) == 1 {
			fmt.Fprintf(&b, "\n## %s\n\n", k.Path)
			if k.Description != "" {
				fmt.Fprintf(&b, "%s\n\n", capital(k.Description))
			}
			continue
		}
		b.WriteString(k.Line())
	}
	return b.String()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
