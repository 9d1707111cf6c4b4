package stf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/softswitch/engine"
)

func TestParse(t *testing.T) {
	text := `
# comment
packet 0 01 02 AbCd  # data
expect 1 01**02$
expect 5
no_packet
wait
add C.t 10 hdr.h$0.f:0x1* g : 0b1*1 C.a(x:1, y:0x2) = id
add t k:1/8 a()
setdefault "C.t" C.a(x:3)
check_counter cnt(2) packets >= 3
mirroring_add 5 6
mc_node_create 10 1 2 3
register_write C.r 1 0xff
remove all
`
	got, err := Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Statement{
		{Line: 3, Verb: "packet", Port: 0, Data: "0102ABCD"},
		{Line: 4, Verb: "expect", Port: 1, Data: "01**02$"},
		{Line: 5, Verb: "expect", Port: 5, Any: true},
		{Line: 6, Verb: "no_packet", Port: -1},
		{Line: 7, Verb: "wait", Port: -1},
		{Line: 8, Verb: "add", Port: -1, Name: "C.t", Priority: 10, Matches: []Match{{"hdr.h$0.f", "0x1*"}, {"g", "0b1*1"}}, Action: "C.a", Args: []Arg{{"x", "1"}, {"y", "0x2"}}},
		{Line: 9, Verb: "add", Port: -1, Name: "t", Matches: []Match{{"k", "1/8"}}, Action: "a"},
		{Line: 10, Verb: "setdefault", Port: -1, Name: "C.t", Action: "C.a", Args: []Arg{{"x", "3"}}},
		{Line: 11, Verb: "check_counter", Port: -1, Name: "cnt", Index: "2", Unit: "packets", Op: ">=", Number: "3"},
		{Line: 12, Verb: "mirroring_add", Port: -1, Numbers: []string{"5", "6"}},
		{Line: 13, Verb: "mc_node_create", Port: -1, Numbers: []string{"10", "1", "2", "3"}},
		{Line: 14, Verb: "register_write", Port: -1, Name: "C.r", Numbers: []string{"1", "0xff"}},
		{Line: 15, Verb: "remove", Port: -1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseErrors(t *testing.T) {
	for _, line := range []string{
		"fly 1", "packet x 00", "packet 1 0", "packet 1 0g", "add t a", "add t a(", "add t x a(1)", "add a()", "check_counter c", "check_counter c(1) hits == 2",
		"mirroring_add 1", "remove one", "expect 1 0z",
	} {
		if _, err := Parse(strings.NewReader(line)); err == nil || !strings.HasPrefix(err.Error(), "line 1: ") {
			t.Errorf("%q: got %v, want an error that names line 1", line, err)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		text string
		kind engine.MatchKind
		bits int
		want engine.Match
	}{
		{"0x0800", engine.Exact, 16, engine.Match{Value: []byte{8, 0}}},
		{"10.0.0.1", engine.Exact, 32, engine.Match{Value: []byte{10, 0, 0, 1}}},
		{"00:11:22:33:44:55", engine.Exact, 48, engine.Match{Value: []byte{0x11, 0x22, 0x33, 0x44, 0x55}}},
		{"0x8*", engine.Ternary, 16, engine.Match{Value: []byte{0x80}, Mask: []byte{0xf0}}},
		{"0b1*1", engine.Ternary, 3, engine.Match{Value: []byte{5}, Mask: []byte{5}}},
		{"0x1&&&0x3", engine.Ternary, 8, engine.Match{Value: []byte{1}, Mask: []byte{3}}},
		{"0x0a000000/8", engine.LPM, 32, engine.Match{Value: []byte{10, 0, 0, 0}, Prefix: 8}},
		{"0x0a01****", engine.LPM, 32, engine.Match{Value: []byte{10, 1, 0, 0}, Prefix: 16}},
		{"1->0x10", engine.Range, 8, engine.Match{Value: []byte{1}, Mask: []byte{16}}},
	} {
		got, err := match(c.text, engine.KeyField{Kind: c.kind, Bits: c.bits})
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q: %s", c.text, d)
		}
	}
	for _, c := range []struct {
		text string
		kind engine.MatchKind
	}{{"300", engine.Exact}, {"x", engine.Exact}, {"12", engine.Ternary}, {"0x1g", engine.Ternary}, {"0xfff", engine.Ternary}, {"1/9", engine.LPM}, {"-1", engine.Exact}} {
		if m, err := match(c.text, engine.KeyField{Kind: c.kind, Bits: 8}); err == nil {
			t.Errorf("%q is taken as %v", c.text, m)
		}
	}
}

// TestFailures checks that wrong expectations are found.
func TestFailures(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "engine", "testdata", "dynvalid.json"))
	if err != nil {
		t.Fatal(err)
	}
	prog, err := engine.Load(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ test, want string }{
		{"packet 0 0000\nexpect 1 ff00$", ""},
		{"packet 0 0000\nexpect 1 f*", ""},
		{"packet 0 0000\nexpect 1", ""},
		{"packet 0 0000", "port 1: want 0 packets, got 1"},
		{"packet 0 0000\nexpect 1 ff01", "digit 3 differs"},
		{"packet 0 000001\nexpect 1 ff00$", "lengths differ"},
		{"packet 0 0000\nexpect 1 ff00\nexpect 2 00", "port 2: want 1 packets, got 0"},
		{"expect 1", "port 1: want packets, got none"},
		{"add nope k:1 a()", `line 1: add: there is no table "nope"`},
	} {
		err := Run(prog, strings.NewReader(c.test), engine.Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: got %v, want %q", c.test, err, c.want)
		}
	}
}

// A frame whose priority names a queue that ports do not have is dropped.
func TestQueues(t *testing.T) {
	prog, err := engine.Load(p4src.JSON())
	if err != nil {
		t.Fatal(err)
	}
	// IPv4 with DSCP 6, which the entries give to queue 7 and to the controller.
	const text = "add dscp_to_class dscp:6 set_class(class:1, queue:7)\nadd punt_table 1 ether_type:0x0800 punt_to_cpu(reason:2)\n" +
		"packet 1 ffffffffffff 020000000001 0800 4518001400000000 01fda4d3 0a000001 0a000002\nexpect 510"
	for queues, want := range map[int]string{0: "port 510: want packets, got none", 7: "port 510: want packets, got none", 8: ""} {
		err := Run(prog, strings.NewReader(text), engine.Options{Queues: queues})
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%d queues: got %v, want %q", queues, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("packet 0 01\nexpect 1 *$\nadd t 1 k:0x1* a(x:1)\nwait")
	f.Fuzz(func(_ *testing.T, text string) {
		list, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for i := range list {
			for _, m := range list[i].Matches {
				for kind := engine.Exact; kind <= engine.Optional; kind++ {
					_, _ = match(m.Value, engine.KeyField{Kind: kind, Bits: 32})
				}
			}
		}
	})
}
