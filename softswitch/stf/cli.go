package stf

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/headgate/headgate/softswitch/engine"
)

// topPriority converts priorities: topPriority minus the test's priority is BMv2's, where the
// lowest number wins (bmv2stf.py).
const topPriority = 10000

// Command returns simple_switch_CLI's command for a statement, so that BMv2 gets the same entries
// as the engine. Packets, expectations and removals have no command.
func (r *Runner) Command(s *Statement) (string, error) {
	switch s.Verb {
	case "add":
		t, key, c, err := r.entry(s)
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
		table, c, err := r.byDefault(s)
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
