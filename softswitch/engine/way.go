package engine

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/headgate/headgate/softswitch/engine/phv"
)

// This file runs packets whose path is logged: one parser state and one pipeline node at a time. The interpreter runs
// the same code for them as for all other packets, so the results are the same.

// parseLogged runs the parser and logs each state.
func (p *Packet) parseLogged(ps *parser) {
	codes := &p.in.prog.codes
	p.Logf("Parser '%s': start", ps.name)
	ok := true
	for n, s := 0, ps.start; s != nil && ok; n++ {
		if n > MaxParserStates {
			p.parserError = codes.timeout
			break
		}
		p.Logf("Parser '%s' entering state '%s'", ps.name, s.name)
		if s.lock >= 0 {
			p.in.registers[s.lock].mu.Lock()
		}
		next := s
		for i := 0; i < len(s.steps) && ok; i++ {
			if what := s.steps[i].what; what != "" {
				p.Logf("Extracting %s", what)
			}
			_, ok = (&parseState{steps: s.steps[i : i+1]}).run(p)
		}
		if ok {
			choice := *s
			choice.steps = nil
			next, ok = choice.run(p)
		}
		if s.lock >= 0 {
			p.in.registers[s.lock].mu.Unlock()
		}
		switch {
		case ok && len(s.key) == 0:
			p.Logf("Parser state '%s' has no switch, going to default next state", s.name)
		case ok:
			p.Logf("Parser state '%s': key is %x", s.name, s.keyOf(p))
		}
		p.Logf("Bytes parsed: %d", p.head-p.base)
		s = next
	}
	if p.parserError != codes.noError {
		p.Logf("Exception while parsing: %s", p.in.prog.errorName(p.parserError))
	}
	p.Logf("Parser '%s': end", ps.name)
}

// keyOf returns the transition key of the state that has just run.
func (s *parseState) keyOf(p *Packet) []byte {
	if !s.narrow {
		return p.input.B
	}
	b := make([]byte, s.keyBits/8)
	phv.WriteField(b, 0, []uint64{s.narrowKey(p)}, s.keyBits)
	return b
}

func (prog *Program) errorName(code uint32) string {
	for name, c := range prog.errorBy {
		if c == code {
			return name
		}
	}
	return fmt.Sprint(code)
}

// follow runs a pipeline from node n on and logs each node.
func (p *Packet) follow(name string, n *node) {
	p.Logf("Pipeline '%s': start", name)
	defer p.Logf("Pipeline '%s': end", name)
	p.exit = false
	for n != nil {
		var act *boundAction
		next := n.next
		switch {
		case n.table != nil:
			p.Logf("Applying table '%s'", n.name)
			act, next = p.apply(n)
		case n.call != nil:
			act = n.call
		default:
			next = p.test(n)
		}
		if act != nil && act.act != nil {
			p.Logf("Action %s", act.act.name)
			if !act.act.noop() {
				p.Args = act.args
				p.Interpret(act.act.pc)
			}
		}
		if p.exit {
			p.Logf("Packet is marked for exit, interrupting pipeline")
			return
		}
		n = next
	}
}

// test evaluates a node's condition and returns the next node.
func (p *Packet) test(n *node) *node {
	if n.lock >= 0 {
		p.in.registers[n.lock].mu.Lock()
	}
	yes := p.eval.Bool(n.cond)
	if n.lock >= 0 {
		p.in.registers[n.lock].mu.Unlock()
	}
	p.Logf("Condition \"%s\" (%s) is %t", n.text, n.name, yes)
	if yes {
		return n.yes
	}
	return n.no
}

// apply looks a packet up in a table. It returns the action and the node that follows it.
func (p *Packet) apply(n *node) (*boundAction, *node) {
	spec, t := n.table, p.in.tables[n.table.index]
	if n.call != nil { // a table without a key whose action never changes
		p.Logf("Table '%s': miss", n.name)
		p.Logf("Action entry is %s", n.call)
		return n.call, n.next
	}
	key := make([]uint64, spec.words)
	spec.build(p, key)
	p.Logf("Looking up key:")
	for i, f := range spec.key.Fields {
		p.Logf("* %-20s: %0*x", f.Name, padded(f.Bits)/4, bitsOf(key, spec.key.At[i], f.Bits))
	}
	s := t.Match(p)
	if s == &t.miss {
		p.Logf("Table '%s': miss", n.name)
		p.Logf("Action entry is %s", t.deflt)
		return t.deflt, spec.missed(t.deflt)
	}
	e := t.look.Find(key, &p.found).Owner.(*entry)
	p.Logf("Table '%s': hit with handle %d", n.name, e.handle().Slot())
	act, next := e.chosen(s, spec)
	p.Logf("Action entry is %s", act)
	return act, next
}

// chosen returns the action that the lookup's step runs, and the node that follows it.
func (e *entry) chosen(s *step, t *tableSpec) (*boundAction, *node) {
	if e.act != nil {
		return &boundAction{e.act, s.args}, t.after(e.act)
	}
	members := []*member{e.member}
	if e.group != nil {
		members = e.group.members
	}
	for _, m := range members {
		if s == &m.steps[t.user] {
			return &m.act, t.after(m.act.act)
		}
	}
	return nil, t.miss // an empty group
}

// bitsOf returns a field of a packed key.
func bitsOf(key []uint64, at, bits int) *big.Int {
	k := new(big.Int)
	for i := len(key) - 1; i >= 0; i-- {
		k.Or(k.Lsh(k, 64), new(big.Int).SetUint64(key[i]))
	}
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), big.NewInt(1))
	return k.And(k.Rsh(k, uint(at)), mask)
}

// String returns the action and its arguments as BMv2 prints them.
func (b *boundAction) String() string {
	if b == nil || b.act == nil {
		return "NULL"
	}
	var s strings.Builder
	s.WriteString(b.act.name + " - ")
	for _, q := range b.act.params {
		if q.word+phv.Words(q.Bits) > len(b.args) { // the entry's action does nothing, so its arguments were not kept
			break
		}
		fmt.Fprintf(&s, "%x,", bitsOf(b.args[q.word:q.word+phv.Words(q.Bits)], 0, q.Bits))
	}
	return s.String()
}

// logHeaders logs the headers that the deparser has written.
func (p *Packet) logHeaders(d *deparser) {
	p.Logf("Deparser '%s': start", d.name)
	for _, h := range d.order {
		if p.IsValid(h) && !h.Metadata {
			p.Logf("Deparsing header '%s'", h.Name)
		}
	}
	p.Logf("Deparser '%s': end", d.name)
}
