package samples

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/stf"
)

// topPriority converts priorities: topPriority minus the test's priority is BMv2's, where the
// lowest number wins (bmv2stf.py).
const topPriority = 10000

// command returns simple_switch_CLI's command for a statement, so that BMv2 gets the same entries
// as the engine. Packets, expectations and removals have no command.
func command(r *stf.Runner, s *stf.Statement) (string, error) {
	switch s.Verb {
	case "add":
		t, key, c, err := r.Entry(s)
		if err != nil {
			return "", err
		}
		words := []string{"table_add", t.Name, c.Name}
		ranked := false
		for i, k := range t.Key {
			words = append(words, matchWord(k, key[i]))
			ranked = ranked || k.Kind == engine.Ternary || k.Kind == engine.Optional || k.Kind == engine.Range
		}
		words = append(append(words, "=>"), argWords(c)...)
		if ranked {
			words = append(words, fmt.Sprint(topPriority-s.Priority))
		}
		return strings.Join(words, " "), nil
	case "setdefault":
		table, c, err := r.Default(s)
		if err != nil {
			return "", err
		}
		return strings.Join(append([]string{"table_set_default", table, c.Name}, argWords(c)...), " "), nil
	case "packet", "expect", "no_packet", "wait", "check_counter", "remove":
		return "", fmt.Errorf("simple_switch_CLI has no command for %q", s.Verb)
	}
	words := []string{s.Verb}
	if s.Name != "" {
		words = append(words, s.Name)
	}
	return strings.Join(append(words, s.Numbers...), " "), nil
}

func argWords(c *engine.ActionCall) (words []string) {
	for _, a := range c.Args {
		words = append(words, hexWord(a))
	}
	return words
}

func hexWord(b []byte) string {
	if len(b) == 0 {
		return "0x0"
	}
	return fmt.Sprintf("%#x", b)
}

// matchWord returns a key field as simple_switch_CLI reads it.
func matchWord(k engine.KeyField, m engine.Match) string {
	switch k.Kind {
	case engine.LPM:
		return fmt.Sprintf("%s/%d", hexWord(m.Value), m.Prefix)
	case engine.Ternary, engine.Optional:
		if m.Any {
			return "0x0&&&0x0"
		}
		return hexWord(m.Value) + "&&&" + hexWord(m.Mask)
	case engine.Range:
		if m.Any {
			top := new(big.Int).Lsh(big.NewInt(1), uint(k.Bits))
			return fmt.Sprintf("0x0->%#x", top.Sub(top, big.NewInt(1)))
		}
		return hexWord(m.Value) + "->" + hexWord(m.Mask)
	}
	return hexWord(m.Value)
}

// TestCommand checks the commands for simple_switch_CLI.
func TestCommand(t *testing.T) {
	doc, err := os.ReadFile("../../softswitch/engine/testdata/control.json")
	if err != nil {
		t.Fatal(err)
	}
	prog, err := engine.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	r := stf.NewRunner(prog, engine.New(prog, engine.Options{}))
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
		list, err := stf.Parse(strings.NewReader(c.line))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := command(r, &list[0]); err != nil || got != c.want {
			t.Errorf("%s:\n got %q, %v\nwant %q", c.line, got, err, c.want)
		}
	}
	for _, line := range []string{"packet 0 00", "remove all", "add nope mark(v:1)", "add exact_ mark(n:1)", "setdefault exact_ nope()"} {
		list, err := stf.Parse(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := command(r, &list[0]); err == nil {
			t.Errorf("%s: got %q, want an error", line, got)
		}
	}
}
