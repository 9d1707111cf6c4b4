package bmv2

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/tests/dataplane/bmv2"
)

// swxIO is the packet I/O of a port of DPDK's pipeline: from file to file, or from a loop in memory to nowhere,
// which measures the pipeline alone.
type swxIO struct{ device, ethdev, in, out string }

var (
	swxFiles  = swxIO{"--vdev=net_pcap%[1]d,rx_pcap=p%[1]d_in.pcap,tx_pcap=p%[1]d_out.pcap", "ethdev net_pcap%d rxq 1 128 MEMPOOL txq 1 512 promiscuous off\n", "ethdev net_pcap%d rxq 0 bsz 32", "ethdev net_pcap%d txq 0 bsz 32"}
	swxMemory = swxIO{in: "source mempool MEMPOOL file p%d_in.pcap loop 0 packets 64", out: "sink file none"}
)

// each repeats a format for each port.
func each(format string) []string {
	var all []string
	for port := 1; port <= ports && format != ""; port++ {
		all = append(all, fmt.Sprintf(format, port))
	}
	return all
}

// swxCommand is DPDK's example application "pipeline": without huge pages, with files as its only devices, with
// one core that polls and one that reads commands.
func swxCommand(io swxIO, address string) []string {
	host, port, _ := net.SplitHostPort(address)
	command := strings.Fields(*swxPath + " --no-huge -m 1024 --no-pci --no-shconf --no-telemetry -l 0-1")
	command = append(command, each(io.device)...)
	return append(command, "--", "-s", "l3.cli", "-h", host, "-p", port)
}

// startSWX runs the plain router on DPDK's pipeline until the test ends. Its last command lets the packets in, so
// files need not be held back. It returns the address for commands.
func startSWX(t *testing.T, io swxIO, dir string) (*bmv2.Process, string) {
	t.Helper()
	spec, err := filepath.Abs("testdata/l3_psa.spec")
	must(t, err)
	var config strings.Builder
	for i, in := range each(io.in) {
		fmt.Fprintf(&config, "port in %d %s\n", i, in)
	}
	for i := range ports {
		out := io.out
		if strings.Contains(out, "%d") {
			out = fmt.Sprintf(out, i+1)
		}
		fmt.Fprintf(&config, "port out %d %s\n", i, out)
	}
	write := func(name, text string) { must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) }
	write("l3.io", config.String())
	tables := map[string]*strings.Builder{"routes": {}, "next_hops": {}}
	l3Rows(func(table, match, action string) { fmt.Fprintf(tables[table], "match %s action %s\n", match, action) })
	for name, rows := range tables {
		write(name+".txt", rows.String())
	}
	write("l3.cli", fmt.Sprintf(`pipeline codegen %s l3.c
pipeline libbuild l3.c ./l3.so
mempool MEMPOOL buffer 2304 pool 32K cache 256 cpu 0
%spipeline P build lib ./l3.so io l3.io numa 0
pipeline P table routes add routes.txt
pipeline P table next_hops add next_hops.txt
pipeline P commit
thread 1 pipeline P enable
`, spec, strings.Join(each(io.ethdev), "")))
	address, err := bmv2.FreeAddress()
	must(t, err)
	s, err := bmv2.Exec(dir, swxCommand(io, address)...)
	must(t, err)
	t.Cleanup(s.Stop)
	for _, name := range []string{"l3.so", "l3.c"} { // it continues after a failed command, without a message
		if !appears(filepath.Join(dir, name), 20*time.Second) {
			text, _ := os.ReadFile(filepath.Join(dir, "l3.log"))
			t.Fatal(s.Explain(fmt.Errorf("DPDK's pipeline did not make %s\n%s", name, text)))
		}
	}
	return s, address
}

func appears(path string, patience time.Duration) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// l3Rows calls add with the entries of l3Entries in the form of DPDK's table files.
func l3Rows(add func(table, match, action string)) {
	for i := range hops {
		add("next_hops", fmt.Sprint(i), fmt.Sprintf("forward port %d src %#x dst %#x", i%ports, macNumber(1, i), macNumber(2, i)))
	}
	for i := range routes {
		dst := prefix(i).Addr().As4()
		add("routes", fmt.Sprintf("0x%x/0xffffff00", dst), fmt.Sprintf("set_next_hop id %d", i%hops))
	}
}

// l3Files takes packets from files to files.
func l3Files(t *testing.T, k kind) sample { return pcap(t, k, loadProgram(t, "l3")) }

func filesCommand(k kind) []string {
	if k == swx {
		return swxCommand(swxFiles, "127.0.0.1:8086")
	}
	return append([]string{"headgate", "switch"}, fileFlags()...)
}

// TestSWX: DPDK's pipeline treats frames as Headgate's does. It sends each frame at once, because it never sends
// an incomplete burst.
func TestSWX(t *testing.T) {
	if os.Getenv("HEADGATE_PEERS") != "1" {
		t.Skip("needs DPDK, with HEADGATE_PEERS=1 (make bench-peers)")
	}
	if why := peers[0].missing(); why != "" {
		t.Skip(why)
	}
	needHeadgate(t)
	defer func(n int) { *packets = n }(*packets)
	*packets = 20000
	p := loadProgram(t, "l3")
	single := swxFiles
	single.out = strings.Replace(single.out, "bsz 32", "bsz 1", 1)
	_, want := throughFiles(t, p, func(dir string) *bmv2.Process { return startFiles(t, ours, p, dir) })
	_, got := throughFiles(t, p, func(dir string) *bmv2.Process { s, _ := startSWX(t, single, dir); return s })
	if want.frames != *packets || got.frames != want.frames || got.sum != want.sum {
		t.Errorf("of %d frames %d came out with sum %x, from ours %d with sum %x", *packets, got.frames, got.sum, want.frames, want.sum)
	}
}

// l3Memory feeds each pipeline the same few frames in a loop and drops the output. For Headgate it is the
// engine's benchmark.
func l3Memory(t *testing.T, k kind) sample {
	dir := t.TempDir()
	if k == swx {
		return swxRate(t, dir)
	}
	binary := filepath.Join(dir, "engine.test")
	build := exec.Command("go", "test", "-c", "-pgo=../../../"+profile, "-o", binary, "../../../softswitch/engine")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.Command(binary, memoryCommand(ours)[4:]...)
	c.Dir = "../../../softswitch/engine"
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return sample{{"user CPU ns per packet", float64(c.ProcessState.SysUsage().(*syscall.Rusage).Utime.Nano()) / memoryPackets, -1}}
}

const memoryPackets = 5000000

// profile is what the compiler optimises headgate by, so that the engine is measured as it is delivered.
const profile = "cmd/headgate/default.pgo"

func memoryCommand(k kind) []string {
	if k == swx {
		return swxCommand(swxMemory, "127.0.0.1:8086")
	}
	return []string{"go", "test", "-pgo=" + profile, "./softswitch/engine", "-test.run=^$", "-test.bench=BenchmarkPorts/l3/ports=1$",
		fmt.Sprintf("-test.benchtime=%dx", memoryPackets), "-test.cpu=1"}
}

// swxRouted returns the number of packets with a next hop.
var swxRouted = regexp.MustCompile(`Table next_hops:\s+Hit \(packets\): (\d+)`)

// swxRate returns the processor time per packet of DPDK's pipeline, whose core polls all the time.
func swxRate(t *testing.T, dir string) sample {
	p := loadProgram(t, "l3")
	for port := 1; port <= ports; port++ {
		inputFile(t, p, dir, port)
	}
	s, address := startSWX(t, swxMemory, dir)
	var conn net.Conn
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if conn, err = net.Dial("tcp", address); err == nil {
			break // it accepts connections after its script has ended
		}
	}
	must(t, s.Explain(err))
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	r := bufio.NewReader(conn)
	packets := func() float64 {
		fmt.Fprint(conn, "pipeline P stats\n")
		var answer strings.Builder
		for !strings.Contains(answer.String(), "Learner tables:") {
			line, err := r.ReadString('\n')
			must(t, s.Explain(err))
			answer.WriteString(line)
		}
		m := swxRouted.FindStringSubmatch(answer.String())
		if m == nil {
			t.Fatalf("no next hops in %s", answer.String())
		}
		n, err := strconv.ParseFloat(m[1], 64)
		must(t, err)
		return n
	}
	n0 := packets()
	u0, _ := cpu(t, s)
	time.Sleep(2 * time.Second)
	n1 := packets()
	u1, _ := cpu(t, s)
	if n1 == n0 {
		t.Fatal(s.Explain(fmt.Errorf("no packet found a next hop in DPDK's pipeline")))
	}
	return sample{{"user CPU ns per packet", float64(u1-u0) / (n1 - n0), -1}}
}
