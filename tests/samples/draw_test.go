package samples

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/stf"
)

// ports are 0 to ports-1; packets arrive on them and leave by them.
const ports = 16

// draw makes packets and entries for one program.
type draw struct {
	*rand.Rand
	words [][]byte // constants in the program's comparisons, so that packets and keys match
	seen  [][]byte // packets of the program's own test
}

// learn takes the constants of the parser's transitions and the packets of a test.
func (d *draw) learn(doc []byte, test []stf.Statement) error {
	var p struct {
		Parsers []struct {
			States []struct {
				Transitions []struct{ Value any } `json:"transitions"`
			} `json:"parse_states"`
		} `json:"parsers"`
	}
	if err := json.Unmarshal(doc, &p); err != nil {
		return err
	}
	for _, parser := range p.Parsers {
		for _, s := range parser.States {
			for _, t := range s.Transitions {
				text, _ := t.Value.(string)
				if w, err := hex.DecodeString(strings.TrimPrefix(text, "0x")); err == nil && len(w) > 0 {
					d.words = append(d.words, w)
				}
			}
		}
	}
	for i := range test {
		if f, err := hex.DecodeString(test[i].Data); test[i].Verb == "packet" && err == nil {
			d.seen = append(d.seen, f)
		}
	}
	return nil
}

func (d *draw) byte() byte {
	return [...]byte{0, 0, 1, 2, 0xff, 0x80, byte(d.Uint32()), byte(d.Uint32())}[d.IntN(8)]
}

func (d *draw) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = d.byte()
	}
	return b
}

// frame is a packet of the test with changed bytes, or random bytes. Words of the program are inserted, and the
// length varies.
func (d *draw) frame() []byte {
	var f []byte
	switch n := d.IntN(8); {
	case n < 4 && len(d.seen) > 0:
		f = append(f, d.seen[d.IntN(len(d.seen))]...)
		for range d.IntN(4) {
			f[d.IntN(len(f))] = d.byte()
		}
	case n < 6: // Ethernet and IPv4, as most programs parse
		f = append(d.bytes(12), 8, 0, 0x45, d.byte(), 0, byte(20+d.IntN(40)))
		f = append(append(f, d.bytes(5)...), []byte{6, 17, 1, 4}[d.IntN(4)])
		f = append(f, d.bytes(10+d.IntN(40))...)
	default:
		f = d.bytes(1 + d.IntN(80))
	}
	if len(d.words) > 0 {
		for range d.IntN(3) {
			w := d.words[d.IntN(len(d.words))]
			if len(w) <= len(f) {
				copy(f[d.IntN(len(f)-len(w)+1):], w)
			}
		}
	}
	switch d.IntN(8) {
	case 0:
		f = f[:1+d.IntN(len(f))]
	case 1:
		f = append(f, d.bytes(d.IntN(40))...)
	}
	return f
}

// value is a number of at most n bits that packets are likely to have.
func (d *draw) value(bits int) *big.Int {
	b := d.bytes((bits + 7) / 8)
	switch n := d.IntN(8); {
	case n < 3:
		b = []byte{byte(d.IntN(4))}
	case n < 5 && len(d.words) > 0:
		b = d.words[d.IntN(len(d.words))]
	}
	v := new(big.Int).SetBytes(b)
	return v.And(v, ones(bits))
}

func ones(bits int) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	return v.Sub(v, big.NewInt(1))
}

// key is a match of a key field, in the words of an STF test; "" matches anything.
func (d *draw) key(k engine.KeyField) string {
	v := d.value(k.Bits)
	if k.Kind != engine.Exact && d.IntN(3) == 0 {
		return ""
	}
	switch k.Kind {
	case engine.LPM:
		n := d.IntN(k.Bits + 1)
		v.And(v, new(big.Int).Lsh(ones(n), uint(k.Bits-n)))
		return fmt.Sprintf("%#x/%d", v, n)
	case engine.Ternary:
		m := d.value(k.Bits)
		return fmt.Sprintf("%#x&&&%#x", v.And(v, m), m)
	case engine.Optional:
		return fmt.Sprintf("%#x&&&%#x", v, ones(k.Bits))
	case engine.Range:
		w := d.value(k.Bits)
		if v.Cmp(w) > 0 {
			v, w = w, v
		}
		return fmt.Sprintf("%#x->%#x", v, w)
	}
	return fmt.Sprintf("%#x", v)
}

func (d *draw) call(s *stf.Statement, a engine.ActionInfo) {
	s.Action = a.Name
	for _, p := range a.Params {
		v := d.value(p.Bits)
		if p.Bits == 9 { // a port
			v = big.NewInt(int64(d.IntN(ports)))
		}
		s.Args = append(s.Args, stf.Arg{Name: p.Name, Value: fmt.Sprintf("%#x", v)})
	}
}

// entries draws entries and defaults for all tables, clone sessions and a multicast group.
func (d *draw) entries(prog *engine.Program) (all []stf.Statement) {
	actions := map[string]engine.ActionInfo{}
	for _, a := range prog.Actions() {
		actions[a.Name] = a
	}
	ambiguous := func(name string) bool { // simple_switch_CLI then takes it as neither
		for other := range actions {
			if strings.HasSuffix(other, "."+name) {
				return true
			}
		}
		return false
	}
	for _, t := range prog.Tables() {
		t.Actions = slices.DeleteFunc(slices.Clone(t.Actions), ambiguous)
		if t.Profile != "" || len(t.Actions) == 0 {
			continue
		}
		action := func() engine.ActionInfo { return actions[t.Actions[d.IntN(len(t.Actions))]] }
		if !t.ConstDefault && d.IntN(2) == 0 {
			s := stf.Statement{Verb: "setdefault", Name: t.Name}
			d.call(&s, action())
			all = append(all, s)
		}
		if t.ConstEntries || len(t.Key) == 0 {
			continue
		}
		for i := range min(8, t.Size) {
			s := stf.Statement{Verb: "add", Name: t.Name, Priority: 1 + i} // which of two equal ones wins is undefined
			for _, k := range t.Key {
				if text := d.key(k); text != "" && k.Kind != engine.Selector {
					s.Matches = append(s.Matches, stf.Match{Name: k.Name, Value: text})
				}
			}
			d.call(&s, action())
			all = append(all, s)
		}
	}
	for session := range 8 {
		all = append(all, stf.Statement{Verb: "mirroring_add", Numbers: []string{fmt.Sprint(session), fmt.Sprint(d.IntN(ports))}})
	}
	return append(all,
		stf.Statement{Verb: "mc_mgrp_create", Numbers: []string{"1"}},
		stf.Statement{Verb: "mc_node_create", Numbers: []string{"7", "2", "3"}},
		stf.Statement{Verb: "mc_node_associate", Numbers: []string{"1", "0"}})
}
