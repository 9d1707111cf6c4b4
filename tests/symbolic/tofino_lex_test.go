package symbolic

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// token is a token of P4.
type token struct {
	text  string
	kind  byte // i identifier, n number, s string, p punctuation, 0 the end
	glued bool // adjacent to the one before
	at    string
}

// macro is a #define. params is nil for one without parentheses.
type macro struct {
	params []string
	body   []token
}

// source preprocesses files into tokens.
type source struct {
	files  fs.FS
	macros map[string]macro
	out    []token
	held   []token // not yet expanded: a macro's arguments may span several lines
}

// lexeme matches one token of P4. Two > are two tokens, as in bit<8>>.
var lexeme = regexp.MustCompile(`^(?:([A-Za-z_]\w*)|((?:\d+w)?(?:0[xX][0-9a-fA-F_]+|\d[\d_]*))|"([^"]*)"|(\|-\||\|\+\||&&&|##|\+\+|&&|\|\||[=!<>]=|<<|[-+*/%&|^~!<>=(){}\[\],;:.?@]))`)

func lex(line, at string) (out []token) {
	for {
		rest := strings.TrimLeft(line, " \t")
		glued := len(out) > 0 && len(rest) == len(line)
		line = rest
		if line == "" || strings.HasPrefix(line, "//") {
			return out
		}
		m := lexeme.FindStringSubmatch(line)
		if m == nil {
			panic(fmt.Errorf("%s: no P4 from %q on", at, line))
		}
		t := token{text: m[1] + m[2] + m[3] + m[4], glued: glued, at: at, kind: 'p'}
		for i, kind := range []byte("ins") {
			if m[i+1] != "" {
				t.kind = kind
			}
		}
		if m[0][0] == '"' {
			t.kind = 's'
		}
		out, line = append(out, t), line[len(m[0]):]
	}
}

// read preprocesses a file. Files in angle brackets are the architecture's; the prelude replaces them.
func (s *source) read(file string) {
	text, err := fs.ReadFile(s.files, file)
	if err != nil {
		panic(err)
	}
	s.text(file, string(text))
}

var blockComment = regexp.MustCompile(`(?s)/\*.*?\*/`)

func (s *source) text(file, text string) {
	text = blockComment.ReplaceAllString(text, " ")
	lines := strings.Split(text, "\n")
	var skipping []bool // by nested #if
	for i := 0; i < len(lines); i++ {
		at, line := fmt.Sprintf("%s:%d", file, i+1), lines[i]
		for strings.HasSuffix(line, "\\") && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, "\\") + " " + lines[i]
		}
		directive, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			if !slices.Contains(skipping, true) {
				s.held = append(s.held, lex(line, at)...)
			}
			continue
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(directive), " ")
		switch word {
		case "if", "ifdef", "ifndef":
			skipping = append(skipping, !s.condition(word, rest, at))
			continue
		case "else":
			skipping[len(skipping)-1] = !skipping[len(skipping)-1]
			continue
		case "endif":
			skipping = skipping[:len(skipping)-1]
			continue
		}
		if slices.Contains(skipping, true) {
			continue
		}
		s.flush()
		switch word {
		case "define":
			s.define(rest, at)
		case "undef":
			delete(s.macros, strings.TrimSpace(rest))
		case "include":
			if name, ok := strings.CutPrefix(rest, `"`); ok {
				name = strings.TrimSuffix(name, `"`)
				s.read(path.Join(path.Dir(file), name))
				s.flush()
			}
		default:
			panic(fmt.Errorf("%s: unknown directive #%s", at, word))
		}
	}
	s.flush()
}

// condition evaluates the condition of an #if: NAME, or NAME == NUMBER. The sources have no other conditions.
func (s *source) condition(word, rest, at string) bool {
	t := lex(rest, at)
	m, defined := s.macros[t[0].text]
	switch {
	case word != "if":
		return defined == (word == "ifdef")
	case len(t) == 3 && t[1].text == "==":
		return len(m.body) == 1 && m.body[0].text == t[2].text
	}
	panic(fmt.Errorf("%s: #if takes NAME == NUMBER, not %q", at, rest))
}

func (s *source) define(rest, at string) {
	t := lex(rest, at)
	m := macro{body: t[1:]}
	if len(t) > 1 && t[1].text == "(" && t[1].glued {
		end := slices.IndexFunc(t, func(x token) bool { return x.text == ")" })
		m.params = []string{}
		for _, p := range t[2:end] {
			if p.text != "," {
				m.params = append(m.params, p.text)
			}
		}
		m.body = t[end+1:]
	}
	s.macros[t[0].text] = m
}

func (s *source) flush() {
	s.out = append(s.out, s.expand(s.held, nil)...)
	s.held = nil
}

// expand replaces macros, except those that it is expanding.
func (s *source) expand(in []token, within []string) (out []token) {
	for i := 0; i < len(in); i++ {
		t := in[i]
		m, ok := s.macros[t.text]
		if t.kind != 'i' || !ok || slices.Contains(within, t.text) || m.params != nil && (i+1 == len(in) || in[i+1].text != "(") {
			out = append(out, t)
			continue
		}
		body := m.body
		if m.params != nil {
			var args [][]token
			args, i = arguments(in, i+2)
			body = substitute(m, args)
		}
		for k := range body {
			body[k].at = t.at
		}
		out = append(out, s.expand(body, append(within[:len(within):len(within)], t.text))...)
	}
	return out
}

// arguments splits the arguments after an opening parenthesis; end is the closing one.
func arguments(in []token, from int) (args [][]token, end int) {
	args = [][]token{nil}
	for depth, i := 0, from; i < len(in); i++ {
		switch in[i].text {
		case "(", "{", "[":
			depth++
		case ")", "}", "]":
			if depth == 0 {
				return args, i
			}
			depth--
		case ",":
			if depth == 0 {
				args = append(args, nil)
				continue
			}
		}
		args[len(args)-1] = append(args[len(args)-1], in[i])
	}
	panic(fmt.Errorf("%s: a macro's arguments have no end", in[from-1].at))
}

// substitute replaces parameters by arguments and joins tokens with ## between them.
func substitute(m macro, args [][]token) (out []token) {
	join := false
	for _, t := range m.body {
		if t.text == "##" {
			join = true
			continue
		}
		put := []token{t}
		if i := slices.Index(m.params, t.text); i >= 0 && t.kind == 'i' {
			put = slices.Clone(args[i])
		}
		if join {
			out[len(out)-1].text += put[0].text
			put = put[1:]
		}
		out, join = append(out, put...), false
	}
	return out
}

// literal reads a number with or without a width.
func literal(t token) (n uint64, width int) {
	text := strings.ReplaceAll(t.text, "_", "")
	if w, digits, ok := strings.Cut(text, "w"); ok {
		width, _ = strconv.Atoi(w)
		text = digits
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		panic(fmt.Errorf("%s: %w", t.at, err))
	}
	return n, width
}
