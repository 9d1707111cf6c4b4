package controller

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/p4src"
)

var update = flag.Bool("update", false, "rewrite golden files")

// chipFabric is a fabric with one Tofino; keys are added to the switch, sections to the file.
func chipFabric(keys, sections string) []byte {
	return fmt.Appendf(nil, `
name: one
scale: 1000
switches:
  - {name: s1, device_id: 1, address: "127.0.0.1:1", target: embedded}
  - {name: tof, device_id: 2, address: "127.0.0.1:2", target: tofino1%s}
hosts: [{name: h1, ipv4: 10.0.0.1}, {name: h2, ipv4: 10.0.0.2}]
links:
  - {a: "s1:1", b: "tof:1", rate: 100Mbps}
  - {a: "s1:2", b: h1, rate: 100Mbps}
  - {a: "tof:2", b: h2, rate: 100Mbps}
%s
`, keys, sections)
}

// TestRefused: planning a configuration reports a feature that the target lacks at the field that
// asks for it. Without such a field there is no error.
func TestRefused(t *testing.T) {
	const runtime = `, bf_runtime: "127.0.0.1:3"`
	const notified = "qos: {classes: [{dscp: 48, class: 6}]}\n"
	const lossless = "qos: {classes: [{dscp: 26, class: 3}]}\n"
	const elsewhere = "qos: {classes: [{dscp: 26, class: 3, queue: 4}]}\nbuffer: {allow_class_change: true"
	const off, sih = ", buffer: {policy: \"off\"}", ", policy: sih, size: 4MB, lossless: [3]"
	tests := []struct {
		name, keys, sections string
		field, text          string // of the only fault; "" for none
	}{
		{"nothing asked", "", "", "", ""},
		{"limit", "", "qos: {queue_limit: 1MB}", "qos.queue_limit",
			`is 1MB, which the switch "tof" cannot do: the program for tofino1 has no table ingress.admission.queue_limit; set switches[1].bf_runtime so that the traffic manager holds the limit`},
		{"limit of a port", ", ports: [{number: 2, queue_limit: 1MB}]", "", "switches[1].ports[0].queue_limit",
			`is 1MB, which the switch "tof" cannot do: the program for tofino1 has no table ingress.admission.queue_limit; set switches[1].bf_runtime`},
		{"limit by the traffic manager", runtime, "qos: {queue_limit: 1MB}", "", ""},
		{"policy", "", lossless + "buffer: {policy: dsh, size: 4MB, lossless: [3]}", "buffer.policy",
			`is "dsh", which the switch "tof" cannot do: the program for tofino1 has no table ingress.buffer.buffer_policy, no table ingress.buffer.buffer_port, no counter ingress.lossless_drops; set switches[1].bf_runtime so that the traffic manager holds the pools, thresholds and headroom`},
		{"policy by the traffic manager", runtime, lossless + "buffer: {policy: dsh, size: 4MB, lossless: [3]}", "", ""},
		{"victims", "", lossless + "buffer: {policy: spfc, size: 4MB, lossless: [3]}", "buffer.policy",
			`is "spfc", which the switch "tof" cannot do: the program for tofino1 has no table ingress.buffer.buffer_policy`},
		{"victims by the traffic manager", runtime, lossless + "buffer: {policy: spfc, size: 4MB, lossless: [3]}", "", ""},
		{"victims under DSH", runtime, lossless + "buffer: {policy: dsh+spfc, size: 4MB, lossless: [3]}", "", ""},
		{"policy of the switch", `, buffer: {policy: spfc, size: 4MB, lossless: [3]}`, lossless + "buffer: {allow_class_change: true}", "switches[1].buffer.policy", `is "spfc"`},
		{"size beyond the chip", runtime, lossless + "buffer: {policy: sih, size: 1GB, lossless: [3]}", "buffer.size", `makes buffer 1000000000 B for the traffic manager of the switch "tof"`},
		{"class in another queue", runtime + ", buffer: {policy: sih, size: 4MB, lossless: [3]}", elsewhere + "}", "qos.classes[0].queue",
			"its queues obey PFC for the class of their number, want queue 3"},
		{"class in another queue of the embedded switch", off, elsewhere + sih + "}", "", ""},
		{"class in the queue of PFC frames", off, strings.Replace(elsewhere, "queue: 4", "queue: 7", 1) + sih + "}", "qos.classes[0].queue",
			`is 7 for class 3, which is lossless on the switch "s1": PFC frames leave by that queue, and must not be paused, want another`},
		{"two classes in a queue", off, strings.Replace(elsewhere, "queue: 4}", "queue: 4}, {dscp: 27, class: 4}", 1) + strings.Replace(sih, "[3]", "[3, 4]", 1) + "}", "qos.classes[1].queue",
			`is 4 for class 4, which is lossless on the switch "s1": class 3 is lossless and has that queue, too`},
		{"lossless by port", runtime + ", ports: [{number: 2, lossless: [3]}]", lossless + "buffer: {policy: sih, size: 4MB, lossless: [3]}", "", ""},
		{"port maps", "", lossless[:len(lossless)-2] + ", port_maps: [{switch: tof, port: 2, dscp: 26, class: 0}]}", "", ""},
		{"gateway", "", "gateway: {proxy: true}", "gateway",
			`is set, which the switch "tof" cannot do: the program for tofino1 has no table ingress.gateway.gateway_ipv4, no table ingress.gateway.gateway_ipv6: its ingress has no stages left`},
		{"gateway of the switch", ", gateway: {proxy: false}", "", "switches[1].gateway", `is set, which the switch "tof" cannot do`},
		{"sources", "", "source_check: {edge_ports: true}", "", ""},
		{"curve deeper than a chip counts", "", "qos: {ecn: [{queue: 0, kmin: 1MB, kmax: 68MB, pmax: 1}]}", "qos.ecn",
			`has kmax 68MB for queue 0, which the switch "tof" cannot tell from 67.109MB`},
		{"weights", "", "qos: {weights: [{queue: 0, weight: 3}]}", "qos.weights",
			`is a list of 1, which the switch "tof" cannot do: P4Runtime has no scheduler; set switches[1].bf_runtime so that the traffic manager shares a port by DWRR`},
		{"weights by the traffic manager", runtime, "qos: {weights: [{queue: 0, weight: 3}]}", "", ""},
		{"soze", "", "soze: {dscp: 0}", "soze", "it must be configured through BF Runtime; set switches[1].bf_runtime so that the traffic manager sets the time constant of the filter"},
		{"soze by the traffic manager", runtime, "soze: {dscp: 0}", "", ""},
		{"UDP port", "", "soze: {udp_port: 4000}", "soze.udp_port",
			`is 4000, but the switch "tof" of target tofino1 runs a program that was compiled for 50151, and a chip's binary cannot be changed; want 50151`},
		{"pacc", "", notified + "pacc: {enabled: true}", "", ""},
		{"no file", `, device_config: /nowhere/tofino.bin`, "", "switches[1].device_config", `is "/nowhere/tofino.bin" on the switch "tof", want a file that can be read: open /nowhere/tofino.bin: no such file or directory`},
	}
	c, err := New(options())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := c.Apply(context.Background(), "f.yaml", chipFabric(tt.keys, tt.sections))
			if tt.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var faults *yamlnode.Error
			if !errors.As(err, &faults) || len(faults.Faults) != 1 {
				t.Fatalf("error %v, want one fault of %s", err, tt.field)
			}
			if f := faults.Faults[0]; f.Field != tt.field || f.Line == 0 || !strings.Contains(f.Text, tt.text) {
				t.Errorf("fault %+v, want %s with a line: %s", f, tt.field, tt.text)
			}
			if _, err := c.Plan(context.Background(), "f.yaml", chipFabric(tt.keys, tt.sections), 0); !errors.As(err, &faults) {
				t.Errorf("plan: error %v", err)
			}
		})
	}
}

// running is a controller with another P4Info for the program of switch "tof".
func running(t *testing.T, info *p4configv1.P4Info) *Controller {
	t.Helper()
	o := options()
	programs, err := newPrograms(nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Pipelines = func(cfg *config.Config, s config.Switch) (*pipeline.Pipeline, error) {
		if s.Name == "tof" {
			return pipeline.New(info, nil)
		}
		return programs.of(cfg, s)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPartsOfAProgram: only the P4Info decides which features are refused.
func TestPartsOfAProgram(t *testing.T) {
	info := chipInfo(t)
	without := proto.Clone(info).(*p4configv1.P4Info)
	for i, table := range without.Tables {
		if table.Preamble.Name == "ingress.pacc.congested_flow" {
			without.Tables = append(without.Tables[:i], without.Tables[i+1:]...)
			break
		}
	}
	_, _, err := running(t, without).Apply(context.Background(), "f.yaml", chipFabric("", "qos: {classes: [{dscp: 48, class: 6}]}\npacc: {enabled: true}"))
	if err == nil || !strings.Contains(err.Error(), `pacc.enabled: is true, which the switch "tof" cannot do: the program for tofino1 has no table ingress.pacc.congested_flow`) {
		t.Errorf("error %v with %d tables of %d", err, len(without.Tables), len(info.Tables))
	}
}

// TestVictimsNeedDepartures: victims need pauses from the traffic manager and departures from the
// program.
func TestVictimsNeedDepartures(t *testing.T) {
	info := chipInfo(t)
	info.Counters = slices.DeleteFunc(info.Counters, func(c *p4configv1.Counter) bool { return c.Preamble.Name == "egress.ingress_departures" })
	const sections = "qos: {classes: [{dscp: 26, class: 3}]}\nbuffer: {policy: spfc, size: 4MB, lossless: [3]}"
	_, _, err := running(t, info).Apply(context.Background(), "f.yaml", chipFabric(`, bf_runtime: "127.0.0.1:3"`, sections))
	if err == nil || !strings.Contains(err.Error(), `buffer.policy: is "spfc", which the switch "tof" cannot do: the program for tofino1 has no counter egress.ingress_departures`) {
		t.Errorf("error %v", err)
	}
}

// TestMatrix: the capabilities of each target, derived from the real programs. Update with go test
// -run Matrix -update.
func TestMatrix(t *testing.T) {
	targets := []string{"bmv2", `bmv2, thrift: "127.0.0.1:5"`, "embedded", "tofino1", `tofino1, bf_runtime: "127.0.0.1:3"`, "tofino2", `tofino2, bf_runtime: "127.0.0.1:4"`}
	var b strings.Builder
	b.WriteString("name: all\nswitches:\n")
	for i, target := range targets {
		fmt.Fprintf(&b, "  - {name: s%d, device_id: %d, address: \"127.0.0.1:%d\", target: %s}\n", i, i+1, 100+i, target)
	}
	b.WriteString("hosts: [{name: h1, ipv4: 10.0.0.1}]\nlinks:\n  - {a: \"s0:9\", b: h1, rate: 1Gbps}\n")
	for i := 1; i < len(targets); i++ {
		fmt.Fprintf(&b, "  - {a: \"s0:%d\", b: \"s%d:1\", rate: 1Gbps}\n", i, i)
	}
	c, err := New(options())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Apply(context.Background(), "f.yaml", []byte(b.String())); err != nil {
		t.Fatal(err)
	}
	var names []string
	cells := map[string][]string{}
	for i, s := range c.Switches() {
		for _, k := range s.Capabilities {
			if cells[k.Name] == nil {
				names = append(names, k.Name)
				cells[k.Name] = slices.Repeat([]string{"-"}, len(targets))
			}
			cells[k.Name][i] = map[bool]string{true: k.By, false: "no"}[k.Supported]
		}
	}
	var got strings.Builder
	w := tabwriter.NewWriter(&got, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\tbmv2\tand Thrift\tembedded\ttofino1\tand BF Runtime\ttofino2\tand BF Runtime\n")
	for _, n := range names {
		fmt.Fprintf(w, "%s\t%s\n", n, strings.Join(cells[n], "\t"))
	}
	w.Flush()
	golden := filepath.Join("testdata", "matrix.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}

// chipInfo returns the P4Info of the program for tofino1.
func chipInfo(t *testing.T) *p4configv1.P4Info {
	t.Helper()
	program, err := p4src.Tofino("tofino1")
	if err != nil {
		t.Fatal(err)
	}
	info := &p4configv1.P4Info{}
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(program.P4Info, info); err != nil {
		t.Fatal(err)
	}
	return info
}
