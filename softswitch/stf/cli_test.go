package stf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/softswitch/engine"
)

// TestCommand checks what simple_switch_CLI is told.
func TestCommand(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "engine", "testdata", "control.json"))
	if err != nil {
		t.Fatal(err)
	}
	prog, err := engine.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRunner(prog, engine.New(prog, engine.Options{}))
	for _, c := range []struct{ line, want string }{
		{"add I.exact_ hdr.h.a:1 hdr.h.b:0x2 mark(v:3)", "table_add I.exact_ I.mark 0x01 0x02 => 0x03"},
		{"add lpm_ hdr.h.c:10.1.0.0/16 mark(v:0)", "table_add I.lpm_ I.mark 0x0a010000/16 => 0x0"},
		{"add lpm_ mark(v:0)", "table_add I.lpm_ I.mark 0x0/0 => 0x0"},
		{"add ternary_ 10 hdr.h.a:0x1* mark(v:1)", "table_add I.ternary_ I.mark 0x10&&&0xf0 0x0&&&0x0 0x0&&&0x0 => 0x01 9990"},
		{"add range_ 1 hdr.h.b:10->20 mark(v:1)", "table_add I.range_ I.mark 0x0a->0x14 0x0&&&0x0 => 0x01 9999"},
		{"add range_ 1 mark(v:1)", "table_add I.range_ I.mark 0x0->0xffff 0x0&&&0x0 => 0x01 9999"},
		{"setdefault exact_ mark(v:7)", "table_set_default I.exact_ I.mark 0x07"},
		{"mirroring_add 5 6", "mirroring_add 5 6"},
		{"register_write I.r 1 0xff", "register_write I.r 1 0xff"},
	} {
		list, err := Parse(strings.NewReader(c.line))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Command(&list[0]); err != nil || got != c.want {
			t.Errorf("%s:\n got %q, %v\nwant %q", c.line, got, err, c.want)
		}
	}
	for _, line := range []string{"packet 0 00", "remove all", "add nope mark(v:1)", "add exact_ mark(n:1)", "setdefault exact_ nope()"} {
		list, err := Parse(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Command(&list[0]); err == nil {
			t.Errorf("%s: got %q, want an error", line, got)
		}
	}
}
