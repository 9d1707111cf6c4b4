package qos

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/internal/testenv"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/internal/externs"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/units"
)

func TestDesired(t *testing.T) {
	env := testenv.New(t, "../../..", func(s string) string {
		s = strings.Replace(s, "queue_limit: 1MB}", "queue_limit: 2MB}", 1)
		return strings.Replace(s, "kmin: 100KB, kmax: 400KB", "kmin: 64KB, kmax: 128KB", 1)
	}, New(nil))
	lines := testenv.Lines(t, New(nil), env, "spine2")
	for _, want := range []string{
		"ingress.classify.dscp_to_class default → set_class(class=0, queue=0)",
		"ingress.classify.dscp_to_class dscp=48 → set_class(class=6, queue=6)",
		"ingress.admission.queue_limit default → set_queue_limit(bytes=1000000)",
		"ingress.admission.queue_limit egress_port=1 queue=7 → set_queue_limit(bytes=2000000)",
		"egress.ecn.ecn_red curve=1 depth=128000..4294967295 priority 1 → set_mark_probability(p=65536)",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	// Two classes and a default, a limit and 8 exceptions, 16 steps and one above.
	if len(lines) != 3+9+17 {
		t.Errorf("%d entries:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if lines := testenv.Lines(t, New(nil), env, "leaf1"); len(lines) != 3+1+17 {
		t.Errorf("leaf1 has %d entries", len(lines))
	}
}

// TestCurves: the most frequent curve of a queue has the queue's number. Ports with another curve have entries of their
// own, up to the largest buffer.
func TestCurves(t *testing.T) {
	const all = "{queue: 1, kmin: 1MB, kmax: 12MB, pmax: 1}"
	for _, tt := range []struct {
		more, refused string // on a chip; "" if it does as v1model does
		want          []string
	}{
		{"", "", []string{"curve=1 depth=12000000..4294967295"}},
		{", {queue: 1, switch: spine2, port: 2, kmin: 2GB, kmax: 2GB, pmax: 1}", "qos.ecn: has kmax 2GB for queue 1, which the switch \"spine2\" cannot tell from 67.1",
			[]string{"curve=1 depth=12000000..4294967295", "curve=8 depth=2000000000..4294967295", "egress_port=2 queue=1 → set_curve(curve=8)"}},
		{", {queue: 2, switch: spine2, port: 1, kmin: 1KB, kmax: 1KB, pmax: 1}", "", []string{"curve=8 depth=1000..4294967295", "egress_port=1 queue=2 → set_curve(curve=8)"}},
		{", {queue: 2, switch: spine2, kmin: 1KB, kmax: 1KB, pmax: 1}, {queue: 2, switch: spine2, port: 2, kmin: 1KB, kmax: 3KB, pmax: 1}", "",
			[]string{"curve=2 depth=1000..4294967295", "egress_port=2 queue=2 → set_curve(curve=8)"}},
	} {
		with := func(s string) string {
			before, after, _ := strings.Cut(s, "\n  ecn: ")
			_, after, _ = strings.Cut(after, "}\n")
			return before + "\n  ecn: [" + all + tt.more + "]\n" + after
		}
		lines := strings.Join(testenv.Lines(t, New(nil), testenv.New(t, "../../..", with, New(nil)), "spine2"), "\n")
		for _, want := range tt.want {
			if !strings.Contains(lines, want) {
				t.Errorf("%s: no %s in\n%s", tt.more, want, lines)
			}
		}
		if n := strings.Count(lines, "set_curve"); n != len(tt.want)-strings.Count(strings.Join(tt.want, "\n"), "depth") && tt.more != "" {
			t.Errorf("%s: %d ports have a curve of their own:\n%s", tt.more, n, lines)
		}
		if _, err := New(nil).Desired(tofino(t, "\n    bf_runtime: \"127.0.0.1:50052\"", with)); tt.refused == "" && err != nil || tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)) {
			t.Errorf("%s on a chip: %v, want %s", tt.more, err, tt.refused)
		}
	}
}

// tofino returns the environment of spine2 as a Tofino.
func tofino(t *testing.T, keys string, edit func(string) string) *feature.Env {
	env := testenv.New(t, "../../..", func(s string) string {
		s = strings.Replace(s, "    target: embedded        # bmv2 |", "    target: tofino1"+keys+" # bmv2 |", 1)
		s = strings.Replace(s, "    cpu_port: 510\n", "", 1)
		return edit(s)
	}, New(nil))
	return testenv.AtSwitch(testenv.WithPipeline(env, testenv.Tofino(t, "tofino1")), "spine2")
}

// TestTofino: the program has classes and marking, the traffic manager has the limits.
func TestTofino(t *testing.T) {
	const runtime = "\n    bf_runtime: \"127.0.0.1:50052\""
	plain := func(s string) string { return strings.Replace(s, "queue_limit: 1MB}", "queue_limit: 2MB}", 1) }
	env := tofino(t, runtime, plain)
	lines := testenv.Lines(t, New(nil), env, "spine2")
	if len(lines) != 3+17 || slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "queue_limit") }) {
		t.Errorf("%d entries:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	c := trafficmanager.Config{Ports: []trafficmanager.Port{{Number: 1}, {Number: 2}}}
	if err := shape(env, &c); err != nil || len(c.QueueLimits) != 16 {
		t.Fatalf("%+v, %v", c.QueueLimits, err)
	}
	for i, want := range map[int]trafficmanager.QueueLimit{
		0: {Port: 1, Queue: 0, Bytes: 2 * units.MB}, 15: {Port: 2, Queue: 7, Bytes: units.MB},
	} {
		if c.QueueLimits[i] != want {
			t.Errorf("limit %d is %+v, want %+v", i, c.QueueLimits[i], want)
		}
	}
	var refused yamlnode.Fault
	if _, err := New(nil).Desired(tofino(t, "", plain)); !errors.As(err, &refused) || refused.Field != "qos.queue_limit" {
		t.Errorf("a limit that nobody holds: %v", err)
	}
	own := func(s string) string { return strings.Replace(s, "  queue_limit: 1MB ", "  # ", 1) }
	if _, err := New(nil).Desired(tofino(t, "", own)); !errors.As(err, &refused) || refused.Field != "switches[5].ports[0].queue_limit" {
		t.Errorf("a port's limit that nobody holds: %v", err)
	}
}

// TestWeights: the embedded switch and a chip's traffic manager support weights; BMv2 refuses them.
func TestWeights(t *testing.T) {
	with := func(target string) *feature.Env {
		return testenv.New(t, "../../..", func(s string) string {
			s = strings.Replace(s, "\n  ecn: ", "\n  weights: [{queue: 0, weight: 3}, {queue: 1, weight: 1}]\n  ecn: ", 1)
			return strings.ReplaceAll(s, "target: embedded", "target: "+target)
		}, New(nil))
	}
	env := with("embedded")
	list, err := New(nil).Desired(env)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := externs.ReadWeights(list[len(list)-1].GetExternEntry(), 8); err != nil || w != (externs.Weights{3, 1}) {
		t.Errorf("the switch gets %v, %v", w, err)
	}
	var c trafficmanager.Config
	if err := shape(env, &c); err != nil || c.Weights != (externs.Weights{3, 1}) {
		t.Errorf("the traffic manager gets %v, %v", c.Weights, err)
	}
	var refused yamlnode.Fault
	const want = "simple_switch serves queues by strict priority alone"
	if _, err := New(nil).Desired(with("bmv2")); !errors.As(err, &refused) || refused.Field != "qos.weights" || !strings.Contains(refused.Text, want) {
		t.Errorf("weights on BMv2: %v, want %s", err, want)
	}
	for text, want := range map[string]string{
		"[{queue: 0, weight: 0}]":                        `qos.weights[0].weight: is "0", want an integer from 1 to 1000`,
		"[{queue: 0}]":                                   "qos.weights[0].weight: is missing",
		"[{queue: 8, weight: 1}]":                        `qos.weights[0].queue: is "8", want an integer from 0 to 7`,
		"[{queue: 1, weight: 1}, {queue: 1, weight: 2}]": "qos.weights[1].queue: is 1, which qos.weights[0].queue in line 3 already is",
	} {
		text = "name: f\nswitches: [{name: s, device_id: 1, address: \"h:1\"}]\nqos: {weights: " + text + "}\n"
		if _, err := config.Parse("f", []byte(text), nil, New(nil).Section); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestPortMaps: a port's own classes use the queues of qos.classes, and only on the port's switch.
func TestPortMaps(t *testing.T) {
	with := func(s string) string {
		return strings.Replace(s, "\n  ecn: ", "\n  port_maps: [{switch: leaf1, port: 2, dscp: 0, class: 6}, {switch: spine2, port: 1, dscp: 48, class: 0}]\n  ecn: ", 1)
	}
	env := testenv.New(t, "../../..", with, New(nil))
	for sw, want := range map[string][]string{
		"leaf1":  {"ingress.classify.class_by_port ingress_port=2 dscp=0 → set_class(class=6, queue=6)"},
		"leaf2":  nil,
		"spine2": {"ingress.classify.class_by_port ingress_port=1 dscp=48 → set_class(class=0, queue=0)"},
	} {
		var got []string
		for _, line := range testenv.Lines(t, New(nil), env, sw) {
			if strings.Contains(line, "class_by_port") {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", sw, got, want)
		}
	}
	if _, err := New(nil).Desired(tofino(t, "\n    bf_runtime: \"127.0.0.1:50052\"", with)); err != nil {
		t.Errorf("a port's map on a chip: %v", err)
	}
	const classes = "classes: [{dscp: 26, class: 3}, {dscp: 27, class: 3, queue: 4}, {dscp: 1, class: 1}]"
	for text, want := range map[string]string{
		"{switch: s, port: 1, dscp: 5, class: 1}":                                          "",
		"{switch: s, port: 1, dscp: 5, class: 0}":                                          "",
		"{switch: s, port: 1, dscp: 5}":                                                    "qos.port_maps[0].class: is missing",
		"{switch: s, port: 1, dscp: 5, class: 8}":                                          `qos.port_maps[0].class: is "8", want an integer from 0 to 7`,
		"{switch: s, port: 1, dscp: 5, class: 2}":                                          "qos.port_maps[0].class: is 2, want 0 or a class of qos.classes, in whose queue these packets are",
		"{switch: s, port: 1, dscp: 5, class: 3}":                                          "qos.port_maps[0].class: is 3, which qos.classes has in the queues [3 4]: want a class with one queue",
		"{switch: x, port: 1, dscp: 5, class: 1}":                                          `qos.port_maps[0].switch: is "x", want the name of a switch`,
		"{switch: s, port: 9, dscp: 5, class: 1}":                                          "qos.port_maps[0].port: is 9, want a port of s that has a link",
		"{switch: s, port: 1, dscp: 5, class: 1}, {switch: s, port: 1, dscp: 5, class: 0}": "qos.port_maps[1].dscp: is 5, which qos.port_maps[0].dscp in line 5 already is",
	} {
		text = "name: f\nswitches: [{name: s, device_id: 1, address: \"h:1\"}]\nhosts: [{name: h, ipv4: 10.0.0.1}]\nlinks: [{a: \"s:1\", b: h, rate: 1Gbps}]\n" +
			"qos: {" + classes + ", port_maps: [" + text + "]}\n"
		if _, err := config.Parse("f", []byte(text), nil, New(nil).Section); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
