package engine

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/headgate/headgate/p4src"
)

// edited loads dynvalid.json with one value changed.
func edited(t *testing.T, change func(doc map[string]any)) error {
	t.Helper()
	text, err := os.ReadFile("testdata/dynvalid.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	change(doc)
	if text, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	_, err = Load(text)
	return err
}

func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

func put(doc any, value any, path ...any) {
	last := path[len(path)-1]
	switch m := at(doc, path[:len(path)-1]...).(type) {
	case map[string]any:
		m[last.(string)] = value
	case []any:
		m[last.(int)] = value
	}
}

// TestLoadErrors checks that errors name the place, the value and what is allowed.
func TestLoadErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(doc map[string]any)
		want   string
	}{
		{"version", func(d map[string]any) { put(d, []int{2, 25}, "__meta__", "version") }, "__meta__: version [2 25] is not supported, allowed are 2.0 to 2.24"},
		{"type", func(d map[string]any) { put(d, "x", "headers", 0, "id") }, "headers.id: string where int is wanted"},
		{"primitive", func(d map[string]any) { put(d, "fly", "actions", 0, "primitives", 0, "op") }, `actions[0].primitives[0]: unknown primitive "fly"`},
		{"arity", func(d map[string]any) { put(d, []any{}, "actions", 0, "primitives", 0, "parameters") }, `actions[0].primitives[0]: primitive "assign" has 0 parameters, want 2`},
		{"field", func(d map[string]any) {
			put(d, []any{"standard_metadata", "nope"}, "actions", 0, "primitives", 0, "parameters", 0, "value")
		}, `actions[0].primitives[0].parameters[0]: header "standard_metadata" has no field "nope"`},
		{"header type", func(d map[string]any) { put(d, "nope", "headers", 0, "header_type") }, `headers[0]: header "scalars" has unknown header_type "nope"`},
		{"hex", func(d map[string]any) {
			put(d, map[string]any{"type": "hexstr", "value": "0xg"}, "actions", 0, "primitives", 0, "parameters", 1)
		}, `parameters[1]: "0xg" is not a hexadecimal number`},
		{"parser op", func(d map[string]any) { put(d, "dig", "parsers", 0, "parse_states", 0, "parser_ops", 0, "op") }, `parsers[0].parse_states[0].parser_ops[0]: unknown parser op "dig"`},
		{"no parser", func(d map[string]any) { put(d, []any{}, "parsers") }, `or "parser" (v1model)`},
		{"no pipeline", func(d map[string]any) { put(d, []any{}, "pipelines") }, `there is no pipeline named "ingress"`},
		{"cycle", func(d map[string]any) {
			name := at(d, "pipelines", 0, "conditionals", 0, "name")
			put(d, name, "pipelines", 0, "conditionals", 0, "true_next")
		}, "the pipeline comes back to"},
		{"extern", func(d map[string]any) {
			d["extern_instances"] = []any{map[string]any{"name": "e", "id": 0, "type": "Foo"}}
		}, `extern_instances[0]: extern type "Foo" is not part of v1model`},
		{"standard metadata", func(d map[string]any) {
			put(d, "other", "headers", 1, "name")
		}, `"standard_metadata"`},
	} {
		err := edited(t, c.change)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v\nwant %s", c.name, err, c.want)
		}
	}
	if _, err := Load([]byte("{")); err == nil {
		t.Error("half a document loads")
	}
	err := edited(t, func(d map[string]any) { put(d, []any{}, "parsers") })
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("%v is not ErrInvalid", err)
	}
}

// TestLoadShares: switches that run the same JSON share one program, which is freed with the last
// of them.
func TestLoadShares(t *testing.T) {
	doc := append(slices.Clone(p4src.JSON()), "   "...) // no other test loads this text
	first, err := Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Load(slices.Clone(doc)); err != nil || second != first {
		t.Errorf("the same JSON again: %p, %v, want %p", second, err, first)
	}
	if other, err := Load(append(doc, ' ')); err != nil || other == first {
		t.Errorf("other JSON: %p, %v", other, err)
	}
	gone := weak.Make(first)
	first = nil
	for range 10 {
		runtime.GC()
	}
	if gone.Value() != nil {
		t.Error("a program that nobody runs stays in memory")
	}
}
