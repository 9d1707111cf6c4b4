package bmv2

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The permutation: each host of a fat-tree with k = 8 sends this many bytes to the host half-way round.
const (
	simHosts = 128
	simBytes = 4000000
)

// simulateCommand is a simulator's command line, without its input files.
func simulateCommand(k kind) []string {
	switch k {
	case htsim:
		return strings.Fields(*htsimPath + " -nodes 128 -tm shift64.cm -linkspeed 100000 -mtu 1000 -hop_latency 1" +
			" -strat ecmp_host -paths 256 -q 1000 -queue_type lossless_input -pfc_thresholds 80 100 -end 4000 -seed 1 -o /dev/null")
	case ns3:
		return []string{*ns3Path, "shift64.json"}
	}
	return strings.Fields("headgate sim run shift64.yaml --jobs 1 --cores 1")
}

// simulate runs the permutation to its end and returns the processor time of the whole process.
func simulate(t *testing.T, k kind) sample {
	dir := t.TempDir()
	write := func(name string, b []byte) { must(t, os.WriteFile(filepath.Join(dir, name), b, 0o644)) }
	var ended *regexp.Regexp // its output per completed flow, or for all flows
	flows := simHosts
	switch k {
	case htsim:
		write("shift64.cm", htsimFlows())
		ended = regexp.MustCompile(` finished at .* total bytes 4000000\n`)
	case ns3:
		config, topology := ns3Input(t)
		write("shift64.json", config)
		write("fat8.txt", topology)
		ended = regexp.MustCompile(`"fctNs"`)
	default:
		ended, flows = regexp.MustCompile(` flows +128 +128 `), 1
		file, err := os.ReadFile("testdata/shift64.yaml")
		must(t, err)
		write("shift64.yaml", file)
	}
	command := simulateCommand(k)
	if k == ours {
		command[0] = *headgatePath
	}
	c := exec.Command(command[0], command[1:]...)
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out[max(0, len(out)-2000):])
	}
	if k == ns3 {
		out, err = os.ReadFile(filepath.Join(dir, "out", "flows.json"))
		must(t, err)
	}
	if n := len(ended.FindAll(out, -1)); n != flows {
		t.Fatalf("%s: %q matches %d times, want %d\n%s", strings.Join(command, " "), ended, n, flows, out[max(0, len(out)-2000):])
	}
	cpu := (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	peak := float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024 // getrusage(2): in KiB
	return sample{{"CPU seconds", cpu, -1}, {"MB of memory at most", peak, 0}}
}

// htsimFlows is a connection matrix (its -tm).
func htsimFlows() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Nodes %d\nConnections %d\n", simHosts, simHosts)
	for i := range simHosts {
		fmt.Fprintf(&b, "%d->%d id %d start 0 size %d\n", i, (i+simHosts/2)%simHosts, i+1, simBytes)
	}
	return b.Bytes()
}

// ns3Input returns a configuration of PrioPlus' simulator, and its topology.
func ns3Input(t *testing.T) (config, topology []byte) {
	type m = map[string]any
	port := m{"EnableIngressControl": true, "EnableEgressControl": true, "EnableVec": 255}
	var apps []m
	for i := range simHosts {
		apps = append(apps, m{
			"appType": "ns3::DcbTrafficGenApplication", "nodes": fmt.Sprintf("[%d]", i), "protocolGroup": "RoCEv2", "startTime": "0s",
			"socketConfig": m{"InnerPriority": 0},
			"applicationConfig": m{
				"CongestionType": "ns3::RoCEv2Nocc", "SendEnabled": true, "TrafficPattern": "SendOnce",
				"TrafficSizeBytes": simBytes, "DestFixed": true, "DestinationNode": (i + simHosts/2) % simHosts,
			},
		})
	}
	config, err := json.MarshalIndent(m{
		"inputFile":     m{"topo": "fat8.txt"},
		"outputFile":    m{"resultFile": "out/flows.json"},
		"runtimeConfig": m{"seed": 1, "stopTime": "10ms"},
		"defaultConfig": m{"RoCEv2Socket": m{"RetxMode": "GBN"}},
		"globalConfig": m{
			"detailedSenderStats": false, "detailedRetxStats": false, "detailedQlengthStats": false,
			"qlengthRecordInterval": "10us", "detailedThroughputStats": false, "deviceThroughputRecordInterval": "10us",
		},
		"topologyConfig": m{
			"flowControlConfig": []m{
				{
					"nodes": "host", "trafficControlLayer": "ns3::TrafficControlLayer", "trafficControlLayerConfig": m{},
					"flowControlPort": "ns3::DcbPfcPort", "flowControlPortConfig": port,
					"outerQueueDisc": "ns3::PausableQueueDisc", "outerQueueDiscConfig": m{"FcEnabled": true},
					"innerQueueDisc": "ns3::FifoQueueDiscEcn", "innerQueueDiscConfig": m{"MaxSize": "10MiB"},
				},
				{
					"nodes": "switch", "bufferSize": "16MB", "numQueuePerPort": 8, "numLosslessQueue": 1,
					"trafficControlLayer": "ns3::DcbTrafficControl", "trafficControlLayerConfig": m{},
					"flowControlPort": "ns3::DcbPfcPort", "flowControlPortConfig": port,
					"flowControlMmuQueue":       "ns3::DcbPfcMmuQueue",
					"flowControlMmuQueueConfig": m{"ReserveSize": "4KiB", "ResumeOffset": "3KiB", "IsDynamicThreshold": true, "DtShift": 4},
					"outerQueueDisc":            "ns3::PausableQueueDisc", "outerQueueDiscConfig": m{"FcEnabled": true},
					"innerQueueDisc": "ns3::FifoQueueDiscEcn", "innerQueueDiscConfig": m{"EcnKMin": "400KiB", "EcnKMax": "1600KiB", "EcnPMax": 0.2},
				},
			},
			"linkConfig": []m{{"links": "0", "rate": "100Gbps", "delay": "1us"}},
		},
		"applicationConfig": apps,
	}, "", " ")
	must(t, err)
	return config, fatTree()
}

// fatTree lists the links of the fat-tree of k = 8 as PrioPlus' simulator reads them: hosts,
// then edge switches, aggregation switches and cores.
func fatTree() []byte {
	const k, edge, aggregation, core, nodes = 8, simHosts, simHosts + 32, simHosts + 64, simHosts + 80
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %d %d\n", nodes, nodes-simHosts, 3*simHosts)
	for i := edge; i < nodes; i++ {
		fmt.Fprintf(&b, "%d ", i)
	}
	fmt.Fprintln(&b)
	for h := range simHosts {
		fmt.Fprintf(&b, "%d %d 0\n", h, edge+h/(k/2))
	}
	for s := range 32 {
		for j := range k / 2 {
			fmt.Fprintf(&b, "%d %d 0\n", edge+s, aggregation+s/(k/2)*(k/2)+j)
			fmt.Fprintf(&b, "%d %d 0\n", aggregation+s, core+s%(k/2)*(k/2)+j)
		}
	}
	return b.Bytes()
}
