package symbolic

import (
	"fmt"
	"slices"
)

// parser turns tokens into declarations. It panics with an error.
type parser struct {
	t      []token
	types  map[string]*typ
	consts map[string]*expr
	units  map[string]*unit
	named  string // by the last @name
}

func (p *parser) peek(ahead int) token {
	if ahead < len(p.t) {
		return p.t[ahead]
	}
	return token{}
}
func (p *parser) is(text string) bool { return p.peek(0).text == text && p.peek(0).kind != 's' }

func (p *parser) next() token {
	t := p.peek(0)
	if t.kind == 0 {
		panic(fmt.Errorf("the program ends too early"))
	}
	p.t = p.t[1:]
	return t
}

func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.t = p.t[1:]
		return true
	}
	return false
}

func (p *parser) want(text string) {
	if t := p.next(); t.text != text {
		panic(fmt.Errorf("%s: %q, want %q", t.at, t.text, text))
	}
}

// annotations skips annotations, except @name.
func (p *parser) annotations() {
	for p.accept("@") {
		word := p.next().text
		if !p.accept("(") {
			continue
		}
		if word == "name" {
			p.named = p.peek(0).text
		}
		for depth := 1; depth > 0; {
			switch p.next().text {
			case "(":
				depth++
			case ")":
				depth--
			}
		}
	}
}

// called renames the last declaration to the name that its annotation gave.
func (p *parser) called() string {
	n := p.named
	p.named = ""
	return n
}

// isType reports whether a type begins here.
func (p *parser) isType() bool {
	t := p.peek(0)
	return t.kind == 'i' && (p.types[t.text] != nil || p.units[t.text] != nil) && p.peek(1).text != "." && p.peek(1).text != "="
}

func (p *parser) typeOf() *typ {
	t := p.next()
	var args []*typ
	width := 0
	if p.is("<") && t.kind == 'i' {
		p.next()
		for !p.accept(">") {
			if p.peek(0).kind == 'n' {
				n, _ := literal(p.next())
				width = int(n)
			} else {
				args = append(args, p.typeOf())
			}
			p.accept(",")
		}
	}
	switch known := p.types[t.text]; {
	case t.text == "bit" || t.text == "int":
		return &typ{name: t.text, kind: t.text[0], width: width}
	case known != nil && known.kind != 'x':
		return known
	}
	return &typ{name: t.text, kind: 'x', args: args}
}

func (p *parser) variables(end string) (out []variable) {
	for !p.accept(end) {
		p.annotations()
		out1 := false
		switch p.peek(0).text {
		case "in", "inout", "out":
			out1 = p.next().text != "in"
		}
		v := variable{typ: p.typeOf(), out: out1}
		v.name = p.next().text
		out = append(out, v)
		if !p.accept(",") {
			p.accept(";")
		}
		p.called()
	}
	return out
}

// program parses all declarations of a file.
func (p *parser) program() {
	for p.annotations(); len(p.t) > 0; p.annotations() {
		switch t := p.next(); t.text {
		case "typedef":
			to := p.typeOf()
			p.types[p.next().text] = to
			p.want(";")
		case "const":
			to := p.typeOf()
			name := p.next().text
			p.want("=")
			p.consts[name] = &expr{op: "cast", at: t.at, typ: to, a: []*expr{p.expr(0)}}
			p.want(";")
		case "struct", "header":
			d := &typ{name: p.next().text, kind: t.text[0]}
			p.want("{")
			d.fields = p.variables("}")
			p.types[d.name] = d
		case "control", "parser":
			u := &unit{name: p.next().text, actions: map[string]*function{}, tables: map[string]*table{}, states: map[string][]stmt{}}
			p.want("(")
			u.params = p.variables(")")
			if p.accept("(") {
				u.ctor = p.variables(")")
			}
			p.units[u.name] = u
			p.unit(u)
		case "extern":
			name := p.next().text
			p.types[name] = &typ{name: name, kind: 'x'}
			p.want(";")
		default: // the pipeline, which always has the same parts
			for !p.accept(";") {
				p.next()
			}
		}
		p.called()
	}
}

func (p *parser) unit(u *unit) {
	p.want("{")
	for p.annotations(); !p.accept("}"); p.annotations() {
		switch {
		case p.accept("state"):
			name := p.next().text
			u.states[name] = p.block()
		case p.accept("action"):
			f := &function{name: p.next().text, full: p.called()}
			p.want("(")
			f.params = p.variables(")")
			f.body = p.block()
			u.actions[f.name] = f
		case p.accept("table"):
			t := p.table()
			u.tables[t.name] = t
		case p.accept("apply"):
			u.apply = p.block()
		default:
			of := p.typeOf()
			if p.is("(") {
				u.objects = append(u.objects, p.object(of))
				continue
			}
			u.vars = append(u.vars, p.variable(of))
		}
	}
}

func (p *parser) variable(of *typ) variable {
	v := variable{name: p.next().text, typ: of}
	if p.accept("=") {
		v.init = p.expr(0)
	}
	p.want(";")
	return v
}

func (p *parser) object(of *typ) object {
	o := object{typ: of, full: p.called()}
	p.want("(")
	o.args = p.list(")")
	o.name = p.next().text
	if p.accept("=") {
		p.want("{")
		o.methods = map[string]*function{}
		for !p.accept("}") {
			p.want("void")
			f := &function{name: p.next().text}
			p.want("(")
			f.params = p.variables(")")
			f.body = p.block()
			o.methods[f.name] = f
		}
	}
	p.want(";")
	return o
}

func (p *parser) table() *table {
	t := &table{name: p.next().text, full: p.called(), props: map[string]*expr{}}
	p.want("{")
	for !p.accept("}") {
		p.accept("const")
		word := p.next()
		p.want("=")
		switch word.text {
		case "key":
			p.want("{")
			for !p.accept("}") {
				k := keyField{e: p.expr(0)}
				p.want(":")
				k.kind = p.next().text
				p.annotations()
				k.name = p.called()
				p.want(";")
				t.keys = append(t.keys, k)
			}
		case "actions":
			p.want("{")
			for !p.accept("}") {
				p.annotations()
				t.actions = append(t.actions, p.next().text)
				p.want(";")
			}
		case "entries":
			p.want("{")
			for !p.accept("}") {
				key := p.expr(0)
				p.want(":")
				t.entries = append(t.entries, [2]*expr{key, p.expr(0)})
				p.want(";")
			}
		case "default_action":
			t.deflt = p.expr(0)
			p.want(";")
		default:
			t.props[word.text] = p.expr(0)
			p.want(";")
		}
	}
	return t
}

func (p *parser) block() (out []stmt) {
	p.want("{")
	for !p.accept("}") {
		out = append(out, p.stmt()...)
	}
	return out
}

// body is a block, or one statement.
func (p *parser) body() []stmt {
	if p.is("{") {
		return p.block()
	}
	return p.stmt()
}

func (p *parser) stmt() []stmt {
	s := stmt{at: p.peek(0).at}
	switch {
	case p.is("{"):
		s.op, s.body = "block", p.block()
	case p.accept("if"):
		p.want("(")
		s.op, s.e = "if", p.expr(0)
		p.want(")")
		s.body = p.body()
		if p.accept("else") {
			s.other = p.body()
		}
	case p.accept("transition"):
		s.op = "transition"
		if !p.accept("select") {
			s.cases = []branch{{next: p.next().text}}
			p.want(";")
			break
		}
		p.want("(")
		s.e = &expr{op: "list", a: p.list(")")}
		p.want("{")
		for !p.accept("}") {
			var b branch
			if !p.accept("default") {
				b.keys = []*expr{p.expr(0)}
				if b.keys[0].op == "list" {
					b.keys = b.keys[0].a
				}
			}
			p.want(":")
			b.next = p.next().text
			p.want(";")
			s.cases = append(s.cases, b)
		}
	case p.isType() && p.peek(1).text != "(":
		s.op, s.v = "var", p.variable(p.typeOf())
	default:
		s.op, s.e = "call", p.expr(0)
		if p.accept("=") {
			s.op, s.to, s.e = "=", s.e, p.expr(0)
		}
		p.want(";")
	}
	return []stmt{s}
}

func (p *parser) list(end string) (out []*expr) {
	for !p.accept(end) {
		out = append(out, p.expr(0))
		p.accept(",")
	}
	return out
}

// precedence of operators, the loosest first. In P4, & binds more tightly than a comparison.
var precedence = [][]string{{"&&&"}, {"?"}, {"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="}, {"<<", ">>"}, {"+", "-", "|+|", "|-|", "++"}, {"*", "/", "%"}}

func (p *parser) expr(level int) *expr {
	if level == len(precedence) {
		return p.unary()
	}
	x := p.expr(level + 1)
	for {
		t := p.peek(0)
		if t.text == ">" && p.peek(1).text == ">" && p.peek(1).glued {
			t.text = ">>"
		}
		if t.kind != 'p' || !slices.Contains(precedence[level], t.text) {
			return x
		}
		p.next()
		switch t.text {
		case ">>":
			p.next()
		case "?":
			yes := p.expr(0)
			p.want(":")
			x = &expr{op: "?", at: t.at, a: []*expr{x, yes, p.expr(0)}}
			continue
		}
		x = &expr{op: t.text, at: t.at, a: []*expr{x, p.expr(level + 1)}}
	}
}

func (p *parser) unary() *expr {
	t := p.peek(0)
	switch {
	case t.kind == 'p' && slices.Contains([]string{"-", "!", "~"}, t.text):
		p.next()
		return &expr{op: "unary" + t.text, at: t.at, a: []*expr{p.unary()}}
	case t.text == "{":
		p.next()
		return &expr{op: "list", at: t.at, a: p.list("}")}
	case t.text == "(":
		p.next()
		if p.isType() {
			to := p.typeOf()
			p.want(")")
			return &expr{op: "cast", at: t.at, typ: to, a: []*expr{p.unary()}}
		}
		in := p.list(")")
		if len(in) > 1 {
			return &expr{op: "list", at: t.at, a: in}
		}
		return p.postfix(in[0])
	case t.kind == 'n':
		p.next()
		n, w := literal(t)
		x := &expr{op: "num", at: t.at, n: n}
		if w > 0 {
			x.typ = &typ{name: "bit", kind: 'b', width: w}
		}
		return x
	case t.kind == 's':
		p.next()
		return &expr{op: "str", at: t.at, name: t.text}
	case t.kind == 'i':
		p.next()
		return p.postfix(&expr{op: "name", at: t.at, name: t.text})
	}
	panic(fmt.Errorf("%s: no expression begins with %q", t.at, t.text))
}

func (p *parser) postfix(x *expr) *expr {
	for {
		at := p.peek(0).at
		switch {
		case p.accept("."):
			x = &expr{op: "member", at: at, name: p.next().text, a: []*expr{x}}
		case p.accept("["):
			high := p.expr(0)
			p.want(":")
			x = &expr{op: "slice", at: at, a: []*expr{x, high, p.expr(0)}}
			p.want("]")
		case x.op == "member" && slices.Contains([]string{"lookahead", "emit"}, x.name) && p.accept("<"):
			x.typ = p.typeOf()
			p.want(">")
		case p.accept("("):
			x = &expr{op: "call", at: at, a: append([]*expr{x}, p.list(")")...)}
		default:
			return x
		}
	}
}
