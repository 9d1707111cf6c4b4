package symbolic

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
)

// tool makes test cases for a P4 program by symbolic execution.
const tool = "p4testgen"

const sources = "../../p4src"

// edit is a change to a copy of the sources.
type edit struct{ file, old, new string }

// assume makes the tool take only paths on which a condition holds after a line.
func assume(file, line, condition string) edit {
	return edit{file, line, strings.TrimSuffix(line, "\n") + " testgen_assume(" + condition + ");\n"}
}

// edits make the program one that the tool handles well. Lines keep their numbers, which identify nodes.
var edits = []edit{
	{main, "#include <v1model.p4>\n", "#include <v1model.p4>\n#include <testgen.p4>\n"},
	// The tool stops at a truncate. Only PFC frames are truncated. They are clones, and the tool follows no
	// clones.
	{"v1model/pause.p4", "        truncate(PFC_FRAME_BYTES);", ""},
	// The tool takes a dropped packet through egress, which costs most of its time.
	{main, "        bool copy = standard.", "        if (standard.egress_port == 511) { exit; } bool copy = standard."},
	// The tool finds a packet for a checksum by trial, and mostly gives up: see sum.
	{"v1model/parser.p4", `        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
`, "\n\n\n"},
	{"v1model/parser.p4", `        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
`, "\n\n\n"},
	// The tool has no short-circuit evaluation. A field of a missing header makes a whole condition unknown, and
	// with it the path of every frame without a shim. It does follow a conditional expression.
	{"shared/validate.p4", "hdr.udp.isValid() && SHORTER(hdr.udp.length, 8)", "hdr.udp.isValid() ? SHORTER(hdr.udp.length, 8) : false"},
	{"shared/validate.p4", "hdr.maxqd.isValid() && SHORTER(hdr.udp.length, 12)", "hdr.maxqd.isValid() ? SHORTER(hdr.udp.length, 12) : false"},
	{"shared/validate.p4", "hdr.maxqd.isValid() && hdr.maxqd.version != MAXQD_VERSION", "hdr.maxqd.isValid() ? hdr.maxqd.version != MAXQD_VERSION : false"},
	{"v1model/foreign.p4", "if (hdr.udp.isValid() && hdr.udp.dst_port == UDP_PORT_MAXQD &&", "if (!(hdr.udp.isValid() ? hdr.udp.dst_port == UDP_PORT_MAXQD : false) ? false :"},
	{"v1model/foreign.p4", "!(hdr.bth.isValid() && hdr.udp.length", "!(!hdr.bth.isValid() ? false : hdr.udp.length"},
	{"v1model/queue_pair.p4", "hdr.bth.isValid() && meta.target.foreign == 0 && hdr", "!hdr.bth.isValid() ? false : meta.target.foreign == 0 && hdr"},
	{"shared/maxqd.p4", "hdr.maxqd.isValid() && hdr", "!hdr.maxqd.isValid() ? false : hdr"},
	{"shared/ecn.p4", "hdr.ipv4.isValid() && (", "!hdr.ipv4.isValid() ? false : ("},
	// The tool replaces the packet by clones for PFC. On the switches their sessions do not exist.
	{"v1model/pause.p4", "        clone_preserving_field_list(CloneType.I2E,\n            PFC_CLONE_SESSION + (bit<32>)meta.arrival.port, SIGNAL_LIST);\n", "\n\n"},
	{"v1model/buffer.p4", "        clone_preserving_field_list(CloneType.E2E,\n            PFC_CLONE_SESSION + (bit<32>)meta.arrival.port, SIGNAL_LIST);\n", "\n\n"},
	// The tool fails at some shifts whose two sides have different widths.
	{"v1model/policy.p4", "8w1 << meta.bridged.traffic_class", "8w1 << (bit<8>)meta.bridged.traffic_class"},
	{"v1model/buffer.p4", "<< meta.buffer.alpha_up) >> meta.buffer.alpha_down", "<< (bit<48>)meta.buffer.alpha_up) >> (bit<48>)meta.buffer.alpha_down"},
	// Random numbers are unknown, so the entries use values that do not depend on them: never and always.
	{"v1model/ports.p4", "        random(meta.departure.draw, 16w0, 16w0xffff);", "        meta.departure.draw = 0xffff;"},
	assume("shared/ecn.p4", "        meta.mark_always = p[16:16];\n", "p[15:0] == 0"),
	// Only ports of our targets, and different values: the tool prefers 0 for all.
	assume("v1model/routing.p4", "        meta.egress_port = port;\n", "port > 0 && port < 8 && src_mac != 0 && src_mac != dst_mac"),
	assume("shared/classify.p4", "        meta.bridged.queue = queue;\n", "queue != traffic_class"),
	assume("shared/punt.p4", "        hdr.packet_in.reason = reason;\n", "reason != 0"),
}

const (
	main  = "headgate_v1model.p4"
	begin = `        transition select(standard.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
`
)

// Without a constraint, the tool mostly takes the CPU port.
var (
	fromPorts = []edit{{"v1model/parser.p4", begin, `        testgen_assume(standard.ingress_port > 0 && standard.ingress_port < 8);
        transition parse_ethernet;


`}}
	fromController = []edit{{"v1model/parser.p4", begin, `        testgen_assume(standard.ingress_port == CPU_PORT);
        transition parse_packet_out;


`}, assume("shared/parser.p4", "    packet.extract(hdr.packet_out);\n", "hdr.packet_out.egress_port > 0 && hdr.packet_out.egress_port < 8")}
)

// The tool continues at random from any branch that it has seen, mostly on the longest paths. Separate searches
// make sure that each protocol, and refused frames, get their share.
const (
	ethernet = "    packet.extract(hdr.ethernet);\n"
	ipv4     = "    packet.extract(hdr.ipv4);\n"
	udp      = "    packet.extract(hdr.udp);\n"
	whole    = "hdr.ipv4.version == 4 && hdr.ipv4.ihl == 5 && hdr.ipv4.more_fragments == 0 && hdr.ipv4.fragment_offset == 0"
)

// accepted continues only with frames that no check refuses.
var accepted = append(fromPorts[:1:1], assume(main, "        pardon.apply(hdr, meta);\n", "meta.drop_reason == DROP_NONE"))

// to directs a search by a condition on the headers that a parser state has extracted.
func to(edits []edit, state, condition string) []edit {
	return append(edits[:len(edits):len(edits)], assume("shared/parser.p4", state, condition))
}

// The tool always takes the default action of a table without a key, so its copy of the program has a policy
// there. It reads 0 from all registers, as in a switch with an empty buffer. So the sizes are such that a frame
// may find any pool, or none. With a period of 0 each frame begins a new period, so no case depends on an earlier
// one.
var (
	sih = []uint64{9, 0x0f, 300, 1000, 200, 0, 64, 80, 0, 0, 1, 10, 0, 0, 0, 0}  // dynamic, victims
	dsh = []uint64{7, 0xf0, 300, 1000, 0, 200, 64, 80, 0, 0, 1, 10, 20, 1, 0, 0} // dynamic, insured, estimate

	buffered = append(to(to(accepted, ethernet, "hdr.ethernet.ether_type == ETHER_TYPE_IPV4"), ipv4, whole+" && hdr.ipv4.protocol == IP_PROTOCOL_TCP"),
		assume("v1model/memory.p4", "        policy.apply(meta);\n", "meta.drop_reason == DROP_NONE && meta.bridged.accounted == 1"))
)

// search is one run of the tool.
type search struct {
	name   string
	seed   int
	edits  []edit
	policy []uint64 // parameters of set_buffer_policy, if there is a policy
}

var searches = []search{
	{"tcp", 1, to(accepted, ipv4, whole+" && hdr.ipv4.protocol == IP_PROTOCOL_TCP"), nil},
	{"udp", 2, to(to(accepted, ipv4, whole+" && hdr.ipv4.protocol == IP_PROTOCOL_UDP"), udp, "hdr.udp.dst_port != UDP_PORT_MAXQD && hdr.udp.dst_port != UDP_PORT_ROCE"), nil},
	{"roce", 3, to(to(accepted, ipv4, whole+" && hdr.ipv4.protocol == IP_PROTOCOL_UDP"), udp, "hdr.udp.dst_port == UDP_PORT_ROCE"), nil},
	{"maxqd", 4, to(to(accepted, ipv4, whole+" && hdr.ipv4.protocol == IP_PROTOCOL_UDP"), udp, "hdr.udp.dst_port == UDP_PORT_MAXQD"), nil},
	{"fragment", 5, to(accepted, ipv4, "hdr.ipv4.more_fragments == 1 || hdr.ipv4.fragment_offset != 0"), nil},
	{"not-ipv4", 6, to(accepted, ethernet, "hdr.ethernet.ether_type != ETHER_TYPE_IPV4"), nil},
	{"refused", 7, append(to(fromPorts, ethernet, "hdr.ethernet.ether_type == ETHER_TYPE_IPV4"), assume(main, "        pardon.apply(hdr, meta);\n", "meta.drop_reason != DROP_NONE && meta.drop_reason != DROP_PARSER")), nil},
	{"malformed", 8, append(fromPorts[:1:1], assume(main, "        pardon.apply(hdr, meta);\n", "meta.drop_reason != DROP_NONE")), nil},
	{"packet-out", 6, fromController, nil},
	{"pfc-out", 9, append(fromController[:2:2], assume("shared/packet_io.p4", "        if (hdr.packet_out.isValid()) {\n", "hdr.packet_out.mode == PACKET_OUT_REFRESH || hdr.packet_out.mode == PACKET_OUT_FORGET")), nil},
	{"sih", 10, buffered, sih},
	{"dsh", 11, buffered, dsh},
}

// all returns the edits of a search, also those of every search.
func (s *search) all() []edit {
	all := append(edits[:len(edits):len(edits)], s.edits...)
	if s.policy != nil {
		words := strings.Fields(strings.Trim(fmt.Sprint(s.policy), "[]"))
		all = append(all, edit{"v1model/policy.p4", "default_action = disable_buffer();", "default_action = set_buffer_policy(" + strings.Join(words, ", ") + ");"})
	}
	return all
}

// program copies the sources to a folder and edits them.
func (s *search) program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"shared", "v1model"} {
		if err := os.CopyFS(filepath.Join(dir, sub), os.DirFS(filepath.Join(sources, sub))); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(sources, main))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, main), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.all() {
		path := filepath.Join(dir, e.file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte(e.old)); n != 1 {
			t.Fatalf("%s has %q %d times, want once: adapt the edits", e.file, e.old, n)
		}
		if err := os.WriteFile(path, bytes.Replace(text, []byte(e.old), []byte(e.new), 1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// nodes are the program's statements, actions and parser states that a search has not reached, without our own
// edits, and the total number of nodes.
type nodes struct {
	left map[string]bool
	all  int
}

var (
	covered = regexp.MustCompile(`Nodes covered: [0-9.]+ \((\d+)/(\d+)\)`)
	node    = regexp.MustCompile(`(?m)^\t(.+\.p4\\\d+: .*)$`)
)

// report reads the tool's list of nodes, which it repeats with each test.
func (s *search) report(log []byte) (n nodes) {
	n.left = map[string]bool{}
	m := covered.FindAllSubmatch(log, -1)
	if len(m) == 0 {
		return n
	}
	n.all, _ = strconv.Atoi(string(m[len(m)-1][2])) // the expression matches only digits
	for _, e := range s.all() {
		n.all -= strings.Count(e.new, "testgen_assume") - strings.Count(e.old, "testgen_assume")
	}
	for _, line := range node.FindAllSubmatch(log[bytes.LastIndex(log, []byte("Not covered program nodes:")):], -1) {
		if !bytes.Contains(line[1], []byte("testgen_assume")) {
			n.left[string(line[1])] = true
		}
	}
	return n
}

// common removes from n the nodes that another search has reached.
func (n *nodes) common(with nodes) {
	switch {
	case with.all == 0:
	case n.all == 0:
		*n = nodes{maps.Clone(with.left), with.all}
	default:
		n.all = max(n.all, with.all) // only packet-outs keep their parser state
		maps.DeleteFunc(n.left, func(k string, _ bool) bool { return !with.left[k] })
	}
}

func (n nodes) String() string { return fmt.Sprintf("%d of %d nodes", n.all-len(n.left), n.all) }

// run makes n attempts at a case, or as many as the time allows, unless the folder already has some.
func (s *search) run(t *testing.T, folder string, attempts int, limit time.Duration) (all []testCase, through nodes) {
	t.Helper()
	out := filepath.Join(folder, s.name)
	if earlier, err := filepath.Glob(filepath.Join(out, "*.txtpb")); err != nil || len(earlier) == 0 {
		s.generate(t, out, attempts, limit)
	}
	log, err := os.ReadFile(filepath.Join(out, "log"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(out, "*.txtpb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseTool(s.name+strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), ".txtpb"), "headgate_v1model"), text)
		if err != nil {
			t.Fatal(err)
		}
		if s.policy != nil {
			e := p4rtmsg.Entry(ids.TableBufferPolicy, 0, p4rtmsg.Do(ids.ActionSetBufferPolicy, s.policy...))
			e.IsDefaultAction = true
			c.Entries = append(c.Entries, compact(p4rtmsg.Entity(e)))
		}
		all = append(all, *c)
	}
	return all, s.report(log)
}

// generate runs the tool, which writes its cases to a folder; its output goes there, too.
func (s *search) generate(t *testing.T, out string, attempts int, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, "--target", "bmv2", "--arch", "v1model", "--std", "p4-16", "--Wdisable",
		"--test-backend", "PROTOBUF", "--track-coverage", "STATEMENTS", "--track-coverage", "ACTIONS", "--track-coverage", "PARSER_STATES", "--print-coverage",
		"--seed", strconv.Itoa(s.seed), "--max-tests", strconv.Itoa(attempts), "--path-selection", "RANDOM_BACKTRACK",
		"--packet-size-range", "480:1600", "--out-dir", out, main)
	cmd.Dir = s.program(t)
	cmd.Env = append(os.Environ(), "GC_INITIAL_HEAP_SIZE=1500000000") // otherwise it spends half of its time in the garbage collector
	log, err := cmd.CombinedOutput()
	if err != nil { // also when its time is over; Z3 4.8.12 crashes at times
		fmt.Printf("%s, search %s, ended early: %v\n", tool, s.name, err)
	}
	if !covered.Match(log) {
		t.Logf("%s", log[max(0, len(log)-2000):])
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "log"), log, 0o644); err != nil {
		t.Fatal(err)
	}
}
