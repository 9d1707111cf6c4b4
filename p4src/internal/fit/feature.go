package fit

import (
	"slices"
	"strings"
)

// feature is a row of the report: its name for operators, and the controls, source files, counters and
// registers of the program that belong to it.
type feature struct {
	name  string
	parts []string
}

// features lists the features. A table of none of them is shown under its own name.
func features() []feature {
	return []feature{
		{"ports, packet I/O", []string{"ports", "arrival", "departure", "enqueue", "packet_io", "controller", "drops", "headgate_tna"}},
		{"validation", []string{"validate"}},
		{"sources", []string{"source_check"}},
		{"classes", []string{"classify"}},
		{"gateway", []string{"gateway", "ingresshdr.icmp"}},
		{"punting", []string{"punt"}},
		{"routing", []string{"routing", "flow_hash", "next_hop"}},
		{"PACC", []string{"pacc", "pacc_congestion"}},
		{"ECN", []string{"ecn", "red_depth", "ecn_marks", "count_marks"}},
		{"maxQD", []string{"maxqd", "scale", "egresshdr.tcp"}},
		{"telemetry", []string{"statistics", "poll", "last_delay", "ingress_departures"}},
		{"conditions", []string{"cond-"}},
	}
}

// rank orders rows: ingress before egress, features as listed.
func rank(name string) int {
	half, own, _ := strings.Cut(name, " ")
	n := slices.IndexFunc(features(), func(f feature) bool { return f.name == own })
	if n < 0 {
		n = len(features())
	}
	if half == "ingress" {
		return n
	}
	return n + 1 + len(features())
}

// contextReport is the part of the assembler's context.json that is used here.
type contextReport struct {
	Tables []struct {
		Name      string `json:"name"`
		Direction string `json:"direction"` // the half: ingress or egress
	} `json:"tables"`
}

// featureNames maps the names of tables, counters and registers to their halves of the pipeline.
type featureNames map[string]string

func (c contextReport) features() featureNames {
	half := featureNames{}
	for _, t := range c.Tables {
		half[t.Name] = t.Direction
		// Users of the crossbar are written in two other ways.
		if _, name, ok := strings.Cut(t.Name, "."); ok {
			half[strings.ReplaceAll(name, ".", "_")] = t.Direction
			half["_"+strings.ReplaceAll(t.Name, ".", "_")] = t.Direction
		}
	}
	return half
}

// of returns half and feature, "ingress routing". The half is where the compiler placed the table, which is not
// always the one that its name begins with. An object that the program names is called
// ingress.routing.ipv4_lpm. A table that the compiler makes from statements is called tbl_routing45 (file and
// line) or tbl_punt_tell_queue (control and action). A condition is called cond-12.
func (f featureNames) of(name string) string {
	half := f[name]
	name, _, _ = strings.Cut(name, "$") // ipv4_lpm$action: the table's memory of action data
	name = strings.TrimPrefix(strings.TrimSuffix(name, "-gateway"), "_")
	if half == "" {
		half = f[name]
	}
	for _, h := range []string{"ingress", "egress"} {
		if begins(name, h) && len(name) > len(h) {
			name = name[len(h)+1:]
			if half == "" {
				half = h
			}
		}
	}
	if half == "" {
		half = "either half:"
	}
	name = strings.TrimPrefix(name, "tbl_")
	own, longest := strings.Split(name, ".")[0], 0
	for _, f := range features() {
		for _, part := range f.parts {
			if len(part) > longest && begins(name, part) {
				own, longest = f.name, len(part)
			}
		}
	}
	return half + " " + own
}

// begins reports whether a name begins with a part of the program, and no letter follows it.
func begins(name, part string) bool {
	rest, ok := strings.CutPrefix(name, part)
	return ok && (rest == "" || strings.IndexByte("._0123456789", rest[0]) >= 0)
}
