package symbolic

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/headgate/headgate/tests/race"
)

// fault is a change of the chip's program.
type fault struct{ name, file, old, new string }

// faults are in parts that the symbolic cases do not reach: registers, polls, ECN, maxQD, PACC's counters,
// unwritten places.
var faults = []fault{
	{"a sum carries from positive to negative", "tna/statistics.p4", "if (value < 0 && value >= (int<32>)minus)", "if (value >= 0 && value < (int<32>)minus)"},
	{"a sum forgets its carry", "tna/statistics.p4", "value = value + carry;", "value = value + 0;"},
	{"the controller's header counts as bytes that departed", "tna/statistics.p4", "negate(FCS_BYTES + PACKET_OUT_BYTES);", "negate(FCS_BYTES);"},
	{"a queue's depth is what its packet found", "tna/statistics.p4", "value = meta.departure.queue_bytes;", "value = meta.queue_bytes;"},
	{"every packet has left the first queue", "tna/statistics.p4", "meta.bridged.queue == queue", "queue == 0"},
	{"the last delay is by how much it has grown", "tna/statistics.p4", "value = meta.hop_qd;", "value = meta.growth_qd;"},
	{"polls count as departures", "tna/statistics.p4", "if (meta.bridged.poll == 0) {\n            ingress_departures", "if (meta.bridged.poll >= 0) {\n            ingress_departures"},
	{"a long wait wraps", "tna/departure.p4", "meta.target.waited[31:18] != 0", "meta.target.waited[31:18] == 0x3fff"},
	{"known flows are learned", "tna/ports.p4", "meta.learn == 1", "meta.learn == 0"},
	{"a mark's bytes are with Ethernet's checksum", "tna/target.p4", "(sizeInBytes(meta.bridged) + FCS_BYTES)", "sizeInBytes(meta.bridged)"},
	{"12 bits are shifted as 16", "tna/scale.p4", "3 : shift_12();", "3 : shift_16();"},
	{"echoes are stamped, and nothing else", "shared/maxqd.p4", "hdr.maxqd.echo == 0", "hdr.maxqd.echo == 1"},
	{"a smaller delay is stamped", "shared/maxqd.p4", "meta.hop_qd |-| hdr.maxqd.max_qd", "hdr.maxqd.max_qd |-| meta.hop_qd"},
	{"a deep queue is marked less", "shared/ecn.p4", "meta.mark_probability |-| meta.departure.draw", "meta.departure.draw |-| meta.mark_probability"},
	{"depths are in twice the cells", "tna/departure.p4", ">> DEPTH_CELL_SHIFT", ">> 5"},
	{"PACC counts below its threshold", "shared/pacc.p4", "meta.queue_bytes |-| meta.bridged.pacc_threshold", "meta.bridged.pacc_threshold |-| meta.queue_bytes"},
	{"PACC looks at what a packet leaves behind", "tna/departure.p4", "found.apply(intrinsic.enq_qdepth", "found.apply(intrinsic.deq_qdepth"},
	{"cells are shifted by one bit less", "tna/departure.p4", "hash_16.get({9w0, cells, 4w0})", "hash_16.get({10w0, cells, 3w0})"},
	{"a mark is not cleared at first", "tna/parser.p4", "meta.marked = 0;", ""},
	{"a refused source goes on", "tna/target.p4", "meta.target.refused_source = 1", "meta.target.refused_source = 0"},
	{"a port's curve is ignored", "shared/ecn.p4", "meta.target.curve = curve;", ""},
	{"link-local sources are forwarded", "tna/routing.p4", "} else if (hdr.ipv6.src_addr[127:118] == LINK_LOCAL) {", "} else if (hdr.ipv6.src_addr[127:118] == 0) {"},
	{"the option's old delay stays in TCP's checksum", "tna/parse_tcp.p4", "tcp_checksum.subtract({hdr.tcp_maxqd.max_qd});", ""},
	{"an option in Ethernet's padding is stamped", "tna/maxqd_tcp.p4", "meta.target.missing_len == 0", "meta.target.missing_len >= 0"},
	{"a register is read and written by one packet", "tna/statistics.p4", "report = read.execute(port);\n        } else {", "report = read.execute(port);\n        }\n        {"},
}

// with returns the sources with the fault.
func (f *fault) with(t testing.TB) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for _, pattern := range []string{"*.p4", "*/*.p4"} {
		names, err := fs.Glob(os.DirFS(p4), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(os.DirFS(p4), name)
			if err != nil {
				t.Fatal(err)
			}
			if name == f.file {
				if !strings.Contains(string(text), f.old) {
					t.Fatalf("%s: %s has no %q", f.name, name, f.old)
				}
				text = []byte(strings.Replace(string(text), f.old, f.new, 1))
			}
			files[name] = &fstest.MapFile{Data: text}
		}
	}
	return files
}

// TestFaults proves that the comparison can fail.
func TestFaults(t *testing.T) {
	race.SkipSequential(t)
	program := compiled(t)
	for _, f := range faults {
		chip := load(t, f.with(t), profiles[0].name)
		found := ""
		for seed := uint64(0); seed < 24 && found == ""; seed++ {
			b := newBoth(t, chip, profiles[0], program, seed)
			b.setUp(t)
			diff, err := b.play(t, 600)
			if err != nil {
				diff = err.Error()
			}
			found = diff
		}
		if found == "" {
			t.Errorf("%s: not found", f.name)
		} else {
			t.Logf("%s: %.100s", f.name, found)
		}
	}
}
