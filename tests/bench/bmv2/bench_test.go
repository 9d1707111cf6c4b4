// Package bmv2 measures the embedded switch side by side with BMv2's simple_switch_grpc and prints medians. Both
// get the same program, the same entries (through P4Runtime) and the same packets. They run in turns, so that
// both see the same load of the machine. `make bench-bmv2` runs it, as root and with simple_switch_grpc on the
// PATH. Each run has its own network namespace.
package bmv2

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/headgate/headgate/tests/dataplane/bmv2"
)

var (
	headgatePath = flag.String("headgate", "", "headgate binary (built when empty)")
	bmv2Path     = flag.String("bmv2", bmv2.Command, "BMv2 binary")
	programs     = flag.String("programs", "l3,headgate", "programs to run; that of entries is tables")
	scenarios    = flag.String("scenarios", "pcap,veth,latency", "scenarios to run: these, or entries")
	written      = flag.Int("entries", 20000, "entries that each Write of entries inserts, modifies and deletes")
	batches      = flag.String("batches", "1,100,1000", "how many updates of entries one Write has")
	readEntries  = flag.Int("read", 100000, "entries that entries reads from one table, at most 131072")
	runs         = flag.Int("runs", 5, "runs of each scenario, of which the median counts")
	packets      = flag.Int("packets", 500000, "packets of a run from pcap to pcap")
	size         = flag.Int("size", 128, "bytes of a packet, 64 to 1500")
	seconds      = flag.Float64("seconds", 2, "seconds of each rate between veth pairs")
	onlyRate     = flag.Float64("rate", 0, "offer only this many packets per second between veth pairs, to compare processor time")
	driver       = flag.String("port-driver", "both", "port driver of ours between veth pairs: default, which it chooses, afpacket, xdp, or both of the first two in turns")
	senderName   = flag.String("sender", "xdp", "what sends between veth pairs: xdp multiplies frames in the kernel, packet sends each by AF_PACKET")
	only         = flag.String("only", "", "run only ours or bmv2")
	verbose      = flag.Bool("v", false, "print every run")
)

// TestSideBySide runs the measurement.
func TestSideBySide(t *testing.T) {
	if os.Getenv("HEADGATE_BENCH") != "1" {
		t.Skip("measures for a quarter of an hour with HEADGATE_BENCH=1 (make bench-bmv2)")
	}
	if os.Geteuid() != 0 {
		t.Fatal("network namespaces need root")
	}
	switch {
	case *only != "" && *only != "ours" && *only != "bmv2":
		t.Fatalf("-only %q: want ours, bmv2 or nothing", *only)
	case *senderName != "xdp" && *senderName != "packet":
		t.Fatalf("-sender %q: want xdp or packet", *senderName)
	case *runs < 1:
		t.Fatalf("-runs %d: want 1 or more", *runs)
	case *size < 64 || *size > 1500:
		t.Fatalf("-size %d: want 64 to 1500", *size)
	}
	fromRoot(headgatePath, bmv2Path)
	if err := bmv2.Look(*bmv2Path); err != nil && *only != "ours" {
		t.Fatalf("%v; -only ours does without", err)
	}
	if *only != "bmv2" {
		needHeadgate(t)
	}
	for name := range strings.SplitSeq(*programs, ",") {
		p := loadProgram(t, name)
		for s := range strings.SplitSeq(*scenarios, ",") {
			inTurns(t, s, p)
		}
	}
}

// fromRoot converts paths relative to the repository to paths relative to the test's folder, in which it runs.
func fromRoot(paths ...*string) {
	for _, path := range paths {
		if !filepath.IsAbs(*path) && strings.Contains(*path, "/") {
			*path = filepath.Join("../../..", *path)
		}
	}
}

// needHeadgate builds Headgate's binary, unless a flag names one.
func needHeadgate(t *testing.T) {
	t.Helper()
	if *headgatePath != "" {
		return
	}
	*headgatePath = filepath.Join(t.TempDir(), "headgate")
	t.Cleanup(func() { *headgatePath = "" }) // deleted with the folder
	build := exec.Command("go", "build", "-trimpath", "-o", *headgatePath, "../../../cmd/headgate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/headgate: %v\n%s", err, out)
	}
}

// inTurns runs a scenario on each kind of switch in turns, and prints medians.
func inTurns(t *testing.T, scenario string, p *program) {
	measure, ok := map[string]func(*testing.T, kind, *program) sample{"pcap": pcap, "veth": veths, "latency": latency, "entries": entries}[scenario]
	if !ok {
		t.Fatalf("-scenarios %q: want pcap, veth, latency or entries", scenario)
	}
	kinds := kindsFor(t, scenario)
	all := alternate(t, scenario+"/"+p.name, kinds, func(t *testing.T, k kind) sample { return measure(t, k, p) })
	fmt.Printf("%s, %s (medians of %d runs)\n", scenario, p.name, *runs)
	report(kinds, all)
}

// alternate measures kinds in turns.
func alternate(t *testing.T, name string, kinds []kind, measure func(*testing.T, kind) sample) map[kind][]sample {
	all := map[kind][]sample{}
	for range *runs {
		for _, k := range kinds {
			t.Run(fmt.Sprintf("%s/%v", name, k), func(t *testing.T) {
				s := measure(t, k)
				if *verbose {
					fmt.Printf("  %-13v %-15s %v\n", k, name, s)
				}
				all[k] = append(all[k], s)
			})
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	return all
}

// kindsFor returns the switches that run a scenario.
func kindsFor(t *testing.T, scenario string) []kind {
	drivers := map[string][]kind{"default": {ours}, "afpacket": {oursPacket}, "xdp": {oursXDP}, "both": {ours, oursPacket}}
	kinds, ok := drivers[*driver]
	switch {
	case !ok:
		t.Fatalf("-port-driver %q: want default, afpacket, xdp or both", *driver)
	case *only == "bmv2":
		return []kind{reference}
	case scenario == "pcap", scenario == "entries": // they have no interfaces
		kinds = []kind{ours}
	}
	if *only == "" {
		kinds = append(kinds, reference)
	}
	if scenario == "latency" {
		kinds = append(kinds, oursBusy, bridge)
	}
	return kinds
}

// sample is the result of one run.
type sample []value

type value struct {
	name  string // including the unit
	v     float64
	ratio int // of the table: 1 if more is better, −1 if less is better, 0 for neither
}

func (s sample) String() string {
	var parts []string
	for _, v := range s {
		parts = append(parts, fmt.Sprintf("%s %.4g", v.name, v.v))
	}
	return strings.Join(parts, ", ")
}

// median is the median of value i; for an even number of samples, the mean of the middle two.
func median(all []sample, i int) float64 {
	v := make([]float64, len(all))
	for k, s := range all {
		v[k] = s[i].v
	}
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// report prints medians and their ratios to the kernel's bridge, or to BMv2 if the bridge did not run.
func report(kinds []kind, all map[kind][]sample) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	base := bridge
	if all[base] == nil {
		base = reference
	}
	compared := all[base] != nil
	fmt.Fprint(w, "  ")
	for _, k := range kinds {
		fmt.Fprintf(w, "\t%v", k)
		if compared && k != base {
			fmt.Fprint(w, "\tratio")
		}
	}
	for i, v := range all[kinds[0]][0] {
		fmt.Fprintf(w, "\n  %s", v.name)
		for _, k := range kinds {
			m := median(all[k], i)
			fmt.Fprintf(w, "\t%.0f", m)
			if !compared || k == base {
				continue
			}
			switch theirs := median(all[base], i); v.ratio {
			case 1:
				fmt.Fprintf(w, "\t%.1f×", m/theirs)
			case -1:
				fmt.Fprintf(w, "\t%.1f×", theirs/m)
			default:
				fmt.Fprint(w, "\t")
			}
		}
	}
	fmt.Fprintln(w)
}
