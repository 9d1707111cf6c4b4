package symbolic

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tool makes test cases for a P4 program by symbolic execution.
const tool = "p4testgen"

const sources = "../../p4src"

// edit is a change to a copy of the sources.
type edit struct{ file, old, new string }

// edits make the program one that the tool runs well.
var edits = []edit{
	{main, "#include <v1model.p4>\n", "#include <v1model.p4>\n#include <testgen.p4>\n"},
	// The tool stops at a truncate. Only PFC frames have one, which are clones, and it follows no clones.
	{"v1model/pause.p4", "        truncate(PFC_FRAME_BYTES);\n", ""},
	// It takes a dropped packet through egress, and spends its time there.
	{main, "        bool copy = standard.", "        if (standard.egress_port == 511) {\n            exit;\n        }\n        bool copy = standard."},
	// It finds a packet for a checksum by trial, and mostly gives up: see sum.
	{"v1model/parser.p4", `        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
`, ""},
	{"v1model/parser.p4", `        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
                        IPV4_CHECKSUM_FIELDS(hdr.ipv4), hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
`, ""},
	// Only ports that our targets have, and values that differ: it likes 0 for all.
	{"shared/routing.p4", "        meta.egress_port = port;\n", "        meta.egress_port = port;\n        testgen_assume(port > 0 && port < 8 && src_mac != 0 && src_mac != dst_mac);\n"},
	{"shared/classify.p4", "        meta.bridged.queue = queue;\n", "        meta.bridged.queue = queue;\n        testgen_assume(queue != traffic_class);\n"},
	{"shared/punt.p4", "        hdr.packet_in.reason = reason;\n", "        hdr.packet_in.reason = reason;\n        testgen_assume(reason != 0);\n"},
}

const (
	main  = "headgate_v1model.p4"
	begin = `        transition select(standard.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
`
)

// Left free, the tool takes the CPU port mostly.
var (
	fromPorts = []edit{{"v1model/parser.p4", begin, `        testgen_assume(standard.ingress_port > 0 && standard.ingress_port < 8);
        transition parse_ethernet;
`}}
	fromController = []edit{{"v1model/parser.p4", begin, `        testgen_assume(standard.ingress_port == CPU_PORT);
        transition parse_packet_out;
`}, {"shared/parser.p4", "    packet.extract(hdr.packet_out);\n", `    packet.extract(hdr.packet_out);
    testgen_assume(hdr.packet_out.egress_port > 0 && hdr.packet_out.egress_port < 8);
`}}
)

// search is one run of the tool.
type search struct {
	name   string
	policy string // how it chooses among paths
	seed   int
	edits  []edit
}

var searches = []search{
	{"maxqd", "RANDOM_BACKTRACK", 4, append(fromPorts[:1:1], edit{"shared/parser.p4", "    packet.extract(hdr.udp);\n", "    packet.extract(hdr.udp);\n    testgen_assume(hdr.udp.dst_port == UDP_PORT_MAXQD);\n"})},
	{"random", "RANDOM_BACKTRACK", 4, fromPorts},
	{"greedy", "GREEDY_STATEMENT_SEARCH", 2, fromPorts},
	{"packet-out", "GREEDY_STATEMENT_SEARCH", 6, fromController},
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
	for _, e := range append(edits[:len(edits):len(edits)], s.edits...) {
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

var covered = regexp.MustCompile(`Nodes covered: [0-9.]+ \((\d+)/(\d+)\)`)

// run makes so many attempts at a case, or as many as there is time for, unless the folder has some. nodes says how many
// of the program's statements, actions and parser states they go through, and of how many.
func (s *search) run(t *testing.T, folder string, attempts int, limit time.Duration) (all []testCase, nodes string) {
	t.Helper()
	out := filepath.Join(folder, s.name)
	nodes = "what an earlier search went through"
	if earlier, err := filepath.Glob(filepath.Join(out, "*.txtpb")); err != nil || len(earlier) == 0 {
		nodes = s.generate(t, out, attempts, limit)
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
		all = append(all, *c)
	}
	return all, nodes
}

// generate runs the tool, which writes its cases to a folder.
func (s *search) generate(t *testing.T, out string, attempts int, limit time.Duration) (nodes string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, "--target", "bmv2", "--arch", "v1model", "--std", "p4-16", "--Wdisable",
		"--test-backend", "PROTOBUF", "--track-coverage", "STATEMENTS", "--track-coverage", "ACTIONS", "--track-coverage", "PARSER_STATES",
		"--seed", strconv.Itoa(s.seed), "--max-tests", strconv.Itoa(attempts), "--path-selection", s.policy,
		"--packet-size-range", "480:1600", "--out-dir", out, main)
	cmd.Dir = s.program(t)
	cmd.Env = append(os.Environ(), "GC_INITIAL_HEAP_SIZE=1500000000") // its collector is half of its time otherwise
	log, err := cmd.CombinedOutput()
	if err != nil { // also when its time is over; Z3 4.8.12 crashes at times
		fmt.Printf("%s, search %s, ended early: %v\n", tool, s.name, err)
	}
	m := covered.FindAllSubmatch(log, -1)
	if len(m) == 0 {
		t.Logf("%s", log[max(0, len(log)-2000):])
		return "no nodes"
	}
	return fmt.Sprintf("%s of %s nodes", m[len(m)-1][1], m[len(m)-1][2])
}
