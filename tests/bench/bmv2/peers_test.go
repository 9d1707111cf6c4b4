package bmv2

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

var (
	peerNames = flag.String("peers", "swx,swx-memory,htsim,ns3", "peers to run")
	swxPath   = flag.String("swx", "dpdk-pipeline", "DPDK's example application pipeline, with RTE_INSTALL_DIR set to DPDK's sources")
	htsimPath = flag.String("htsim", "htsim_roce", "htsim's program")
	ns3Path   = flag.String("ns3", "rdma-simulator", "PrioPlus' program")
)

// peer is another project's program with the same task as one of Headgate's.
type peer struct {
	name     string // of -peers
	kind     kind
	program  *string
	from     string // its source
	scenario string
	measure  func(*testing.T, kind) sample
	command  func(kind) []string
}

const fromDPDK = "examples/pipeline of Debian's source package dpdk, built with libdpdk-dev; it needs gcc"

var peers = []peer{
	{"swx", swx, swxPath, fromDPDK, "L3 from pcap to pcap", l3Files, filesCommand},
	{"swx-memory", swx, swxPath, fromDPDK, "L3 in memory", l3Memory, memoryCommand},
	{"htsim", htsim, htsimPath, "github.com/Broadcom/csg-htsim, see docs/research/simulator.md", "permutation, 128 hosts", simulate, simulateCommand},
	{"ns3", ns3, ns3Path, "github.com/blueroaring/PrioPlus, see docs/research/simulator.md", "permutation, 128 hosts", simulate, simulateCommand},
}

// missing returns the reason why a peer cannot run, or "".
func (p peer) missing() string {
	if _, err := exec.LookPath(*p.program); err != nil {
		return fmt.Sprintf("%s is not on the PATH: %s", *p.program, p.from)
	}
	if p.kind == swx && os.Getenv("RTE_INSTALL_DIR") == "" {
		return "RTE_INSTALL_DIR does not name DPDK's sources, against which its pipeline compiles the program"
	}
	return ""
}

// TestPeers measures the available peers beside Headgate's programs, in turns, and prints one table.
func TestPeers(t *testing.T) {
	if os.Getenv("HEADGATE_PEERS") != "1" {
		t.Skip("measures for some minutes with HEADGATE_PEERS=1 (make bench-peers)")
	}
	fromRoot(headgatePath, swxPath, htsimPath, ns3Path)
	names := strings.Split(*peerNames, ",")
	for _, name := range names {
		if !slices.ContainsFunc(peers, func(p peer) bool { return p.name == name }) {
			t.Fatalf("-peers: no peer is called %q", name)
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "peer\tscenario\tmedian of\ttheirs\tours\tratio\tcommands")
	for _, p := range peers {
		if !slices.Contains(names, p.name) {
			continue
		}
		if why := p.missing(); why != "" {
			fmt.Printf("skipped: %v: %s\n", p.kind, why)
			continue
		}
		needHeadgate(t)
		all := alternate(t, p.name, []kind{ours, p.kind}, p.measure)
		p.rows(w, all)
	}
	w.Flush()
}

// rows are the rows of one peer; with a ratio above one, Headgate is better.
func (p peer) rows(w *tabwriter.Writer, all map[kind][]sample) {
	commands := []string{strings.Join(p.command(p.kind), " "), strings.Join(p.command(ours), " ")}
	values := all[ours][0]
	for i, v := range values {
		theirs, mine, ratio := median(all[p.kind], i), median(all[ours], i), ""
		switch v.ratio {
		case 1:
			ratio = fmt.Sprintf("%.2f×", mine/theirs)
		case -1:
			ratio = fmt.Sprintf("%.2f×", theirs/mine)
		}
		command := ""
		if i < len(commands) {
			command = commands[i]
		}
		fmt.Fprintf(w, "%v\t%s\t%s\t%.4g\t%.4g\t%s\t%s\n", p.kind, p.scenario, v.name, theirs, mine, ratio, command)
	}
	for _, command := range commands[min(len(values), len(commands)):] {
		fmt.Fprintf(w, "\t\t\t\t\t\t%s\n", command)
	}
}
