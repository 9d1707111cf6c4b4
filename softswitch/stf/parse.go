// Package stf reads and runs STF tests, the format of p4c's tests for P4 programs: packets sent to
// ports, packets expected on ports, and the control plane's commands in between. The grammar is
// that of p4c's tools/stf/stf_parser.py and backends/bmv2/bmv2stf.py. Start reading at Run.
package stf

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Statement is one line of a test.
type Statement struct {
	Line int
	Verb string // lower case

	Port int    // packet, expect
	Data string // hexadecimal digits; expect also has * for any digit and $ for the end
	Any  bool   // expect without data: accepts any packets on the port

	Name     string // add, setdefault: table; check_counter, counter_*, register_*, meter_*
	Priority int
	Matches  []Match
	Action   string
	Args     []Arg

	Numbers []string // arguments of the direct commands
	Index   string   // check_counter
	Unit    string   // packets or bytes
	Op      string   // ==, !=, <, <=, >, >=
	Number  string
}

// Match is one name:value of an add.
type Match struct{ Name, Value string }

// Arg is one name:value of an action call.
type Arg struct{ Name, Value string }

// Parse reads a test. Errors name the line.
func Parse(r io.Reader) ([]Statement, error) {
	var list []Statement
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for line := 1; sc.Scan(); line++ {
		text, _, _ := strings.Cut(sc.Text(), "#")
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		s := Statement{Line: line, Port: -1}
		if err := s.parse(text); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		list = append(list, s)
	}
	return list, sc.Err()
}

func (s *Statement) parse(text string) error {
	verb, rest, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
	s.Verb = strings.ToLower(verb)
	v, ok := verbs()[s.Verb]
	if !ok {
		return fmt.Errorf("unknown statement %q", verb)
	}
	return v.parse(s, strings.TrimSpace(rest))
}

func (s *Statement) parseNothing(string) error { return nil }

func (s *Statement) parseRemove(rest string) error {
	if !strings.EqualFold(rest, "all") {
		return fmt.Errorf("remove takes all, not %q", rest)
	}
	return nil
}

// words returns a parser of least or more words. If named is set, the first word is the name of an array.
func words(least int, named bool) func(*Statement, string) error {
	return func(s *Statement, rest string) error {
		list := strings.Fields(rest)
		if len(list) < least {
			return fmt.Errorf("%s takes at least %d words, not %d", s.Verb, least, len(list))
		}
		if named {
			s.Name, list = unquote(list[0]), list[1:]
		}
		s.Numbers = list
		return nil
	}
}

func (s *Statement) parsePacket(rest string) error {
	port, data, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a port number", port)
	}
	s.Port = n
	s.Data = strings.ToUpper(strings.Join(strings.Fields(data), ""))
	digits := s.Data
	if s.Verb == "expect" {
		digits = strings.TrimSuffix(digits, "$")
		digits = strings.ReplaceAll(digits, "*", "0")
		s.Any = s.Data == ""
	} else if len(digits)%2 != 0 || digits == "" {
		return fmt.Errorf("packet has %d digits, want whole bytes", len(digits))
	}
	if i := strings.IndexFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789ABCDEF", r) }); i >= 0 {
		return fmt.Errorf("%q is not a digit of packet data", digits[i:i+1])
	}
	return nil
}

// parseAdd reads TABLE [PRIORITY] [NAME:VALUE ...] ACTION(NAME:VALUE, ...) [= ID].
func (s *Statement) parseAdd(rest string) error {
	head, tail, ok := strings.Cut(rest, "(")
	if !ok {
		return fmt.Errorf("%s lacks an action call", s.Verb)
	}
	args, _, ok := strings.Cut(tail, ")")
	if !ok {
		return fmt.Errorf("the action call lacks its )")
	}
	// Matches may have spaces around their colons.
	for _, gap := range []string{" :", ": "} {
		for strings.Contains(head, gap) {
			head = strings.ReplaceAll(head, gap, ":")
		}
	}
	words := strings.Fields(head)
	if len(words) < 2 {
		return fmt.Errorf("%s takes a table and an action", s.Verb)
	}
	s.Name, s.Action = unquote(words[0]), unquote(words[len(words)-1])
	words = words[1 : len(words)-1]
	if len(words) > 0 && !strings.Contains(words[0], ":") {
		n, err := strconv.Atoi(words[0])
		if err != nil {
			return fmt.Errorf("%q is neither a priority nor a match", words[0])
		}
		s.Priority, words = n, words[1:]
	}
	for _, w := range words {
		name, value, ok := strings.Cut(w, ":")
		if !ok {
			return fmt.Errorf("%q is not a match NAME:VALUE", w)
		}
		s.Matches = append(s.Matches, Match{unquote(name), value})
	}
	for a := range strings.SplitSeq(args, ",") {
		if strings.TrimSpace(a) == "" {
			continue
		}
		name, value, ok := strings.Cut(a, ":")
		if !ok {
			return fmt.Errorf("%q is not an argument NAME:VALUE", a)
		}
		s.Args = append(s.Args, Arg{unquote(strings.TrimSpace(name)), strings.TrimSpace(value)})
	}
	return nil
}

// parseCheck reads COUNTER(INDEX) [packets|bytes OP NUMBER].
func (s *Statement) parseCheck(rest string) error {
	name, tail, ok := strings.Cut(rest, "(")
	index, cond, ok2 := strings.Cut(tail, ")")
	if !ok || !ok2 {
		return fmt.Errorf("check_counter takes NAME(INDEX), not %q", rest)
	}
	s.Name, s.Index = unquote(strings.TrimSpace(name)), strings.TrimSpace(index)
	words := strings.Fields(cond)
	if len(words) == 0 {
		return nil
	}
	if len(words) != 3 {
		return fmt.Errorf("check_counter takes packets or bytes, an operator and a number, not %q", cond)
	}
	s.Unit, s.Op, s.Number = strings.ToLower(words[0]), words[1], words[2]
	if s.Unit != "packets" && s.Unit != "bytes" {
		return fmt.Errorf("check_counter compares packets or bytes, not %q", words[0])
	}
	return nil
}

func unquote(s string) string { return strings.ReplaceAll(s, `"`, "") }
