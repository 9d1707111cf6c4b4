package symbolic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/tests/race"
)

// mutant is a program with one fault: in the smallest node of its JSON that contains all given texts, one text
// replaces another.
type mutant struct {
	name     string
	has      []string
	old, new string
	swap     bool // the two texts are swapped
}

// lastLine returns the number of a file's last line with a text, 0 without one.
func lastLine(file, with string) (last int) {
	text, _ := os.ReadFile(file) // without it the fault has no place; the test then fails
	for i, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, with) {
			last = i + 1
		}
	}
	return last
}

// inverted is the fault that a condition takes the other branch.
func inverted(name, condition string) mutant {
	return mutant{name, []string{`"source_fragment":"` + condition}, `"true_next"`, `"false_next"`, true}
}

// constant is the fault that a statement has another constant.
func constant(name, statement, old, new string) mutant {
	return mutant{name, []string{`"source_fragment":"` + statement, `"parameters"`}, old, new, false}
}

// mutants are faults in conditions, actions, tables, the selector, the parser and the deparser.
var mutants = []mutant{
	inverted("TTL 1 goes on, and no other", "hdr.ipv4.ttl <= 1"),
	inverted("a frame that is long enough counts as too short", "meta.arrival.beyond_frame == 1"),
	inverted("IPv4 options are taken, and nothing else", "hdr.ipv4.ihl != 5"),
	inverted("routed is what is punted", "meta.drop_reason == DROP_NONE && meta.decided == 0"),
	inverted("what finds a pool is refused, and nothing else", "meta.buffer.pool == POOL_NONE"),
	constant("a refresh leaves a class paused", "(meta.bridged.refresh == 1) ? 8w0xff", `"0xff"`, `"0x7f"`),
	constant("the TTL falls by two", "hdr.ipv4.ttl = hdr.ipv4.ttl - 1", `"0xff"`, `"0xfe"`),
	// The compiler names an assignment by its line; IPv6 has another, above.
	{"no route of IPv4 counts as not IPv4", []string{fmt.Sprintf(`"name":"routing%d"`, lastLine("../../p4src/v1model/routing.p4", "DROP_NO_ROUTE")), `"metadata_t._drop_reason`, `"source_fragment":"8; ..."`}, `"0x08"`, `"0x07"`, false},
	{"a next hop's MAC addresses are swapped", []string{`"name":"ingress.routing.set_next_hop"`}, `"src_addr"`, `"dst_addr"`, true},
	{"a class takes the place of its queue", []string{`"name":"ingress.classify.set_class"`}, `"metadata_t._bridged_queue2"`, `"metadata_t._bridged_traffic_class1"`, true},
	{"punted is what does not match", []string{`"name":"ingress.punt.punt_table"`}, `"__HIT__"`, `"__MISS__"`, true},
	{"a group chooses by another hash", []string{`"algo"`, `"metadata_t._l4_src_port`}, `"crc32"`, `"crc16"`, false},
	{"the parser takes ARP for IPv4", []string{`"next_state":"parse_ipv4"`}, `"0x0800"`, `"0x0806"`, false},
	{"frames leave with UDP in front of IPv4", []string{`"order"`}, `"udp"`, `"ipv4"`, true},
}

// program returns Headgate's program with the fault.
func (m *mutant) program(t *testing.T) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(p4src.JSON()))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		t.Fatal(err)
	}
	text, done := m.plant(root)
	if !done {
		t.Fatalf("%s: the program has no such place", m.name)
	}
	return []byte(text)
}

// plant returns a node as text, with the fault if the node contains its place.
func (m *mutant) plant(node any) (text string, done bool) {
	var b strings.Builder
	switch x := node.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			v, planted := x[k], ""
			if !done {
				planted, done = m.plant(v)
			} else {
				planted = encode(v)
			}
			b.WriteString(map[bool]string{true: "{", false: ","}[b.Len() == 0] + encode(k) + ":" + planted)
		}
		if b.Len() == 0 {
			b.WriteString("{")
		}
		b.WriteString("}")
	case []any:
		for _, v := range x {
			planted := ""
			if !done {
				planted, done = m.plant(v)
			} else {
				planted = encode(v)
			}
			b.WriteString(map[bool]string{true: "[", false: ","}[b.Len() == 0] + planted)
		}
		if b.Len() == 0 {
			b.WriteString("[")
		}
		b.WriteString("]")
	default:
		return encode(node), false
	}
	text = b.String()
	for _, h := range append(m.has[:len(m.has):len(m.has)], m.old) {
		if done || !strings.Contains(text, h) {
			return text, done
		}
	}
	if m.swap {
		return strings.NewReplacer(m.old, m.new, m.new, m.old).Replace(text), true
	}
	return strings.Replace(text, m.old, m.new, 1), true
}

// encode writes JSON without escapes that BMv2 might not know.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // it was decoded before
	}
	return strings.TrimSpace(b.String())
}

// TestSelection plays the cases that are kept.
func TestSelection(t *testing.T) {
	race.SkipSequential(t)
	r := embeddedRig(t, p4src.JSON())
	for _, c := range selection(t) {
		o, err := r.play(&c)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if diff := c.check(o); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
	}
}

// TestMutants proves that the kept cases can fail: for each fault in the program, at least one case fails.
func TestMutants(t *testing.T) {
	race.SkipSequential(t)
	all := selection(t)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r := embeddedRig(t, m.program(t))
			r.patience = 0
			for _, c := range all {
				o, err := r.play(&c)
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				if diff := c.check(o); diff != "" {
					t.Logf("found by %s: %s", c.Name, diff)
					return
				}
			}
			t.Error("no case finds it")
		})
	}
}

func selection(t *testing.T) []testCase {
	t.Helper()
	f, err := os.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := read(f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
