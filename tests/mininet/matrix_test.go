// Package mininet runs the five systems on networks of real processes: Mininet's hosts run `headgate host`,
// switches run `headgate switch` or simple_switch_grpc, and mininet/fabric.py starts the controller from a fabric
// file. The plays, their measures and judges, and the rules for a play's validity are those of package emulation.
// Figures come from the controller's API, from the hosts' measurements, and from captures that tshark decodes.
package mininet

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/tests/lag"
)

// switches are the columns of the matrix.
var switches = []string{"headgate", "bmv2"}

// row is a cell of the matrix.
type row struct{ system, kind, result, figure string }

var (
	mu     sync.Mutex
	matrix []row
)

func TestMain(m *testing.M) {
	code := m.Run()
	if len(matrix) > 0 {
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "\nSYSTEM\tSWITCH\tRESULT\tFIGURE")
		for _, r := range matrix {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.system, r.kind, r.result, r.figure)
		}
		w.Flush()
	}
	os.Exit(code)
}

// outcome is a row's result: a figure for the matrix, the reason why it is invalid, or the missed expectation.
type outcome struct {
	figure  string
	invalid []string
	missed  []string
}

// each plays a row on both switches and enters the outcome. A row that the machine disturbed proves nothing and
// is invalid.
func each(t *testing.T, system string, once func(t *testing.T, kind string) outcome) {
	if os.Getenv("HEADGATE_MININET") != "1" {
		t.Skip("plays on networks in Mininet, for minutes, with HEADGATE_MININET=1 (make test-mininet)")
	}
	for _, kind := range switches {
		t.Run(kind, func(t *testing.T) {
			r := row{system, kind, "not run", ""}
			defer func() {
				if r.result == "not run" && t.Failed() {
					r.result, r.figure = "FAILED", "see the log"
				}
				mu.Lock()
				defer mu.Unlock()
				matrix = append(matrix, r)
			}()
			if r.figure = missing(kind); r.figure != "" {
				t.Skip(r.figure)
			}
			o := once(t, kind)
			r.figure = o.figure
			switch {
			case len(o.invalid) > 0:
				r.result, r.figure = "invalid", strings.Join(o.invalid, "; ")
				t.Skipf("%s. Nothing follows from what was measured: %s", r.figure, o.figure)
			case len(o.missed) > 0:
				r.result = "FAILED"
				t.Errorf("%s on %s: %s", system, kind, strings.Join(o.missed, "; "))
			default:
				r.result = "passed"
			}
		})
	}
}

// versions plays a row with IPv4 and with IPv6.
func versions(t *testing.T, system string, once func(t *testing.T, kind string, version int) outcome) {
	for _, version := range []int{4, 6} {
		name := fmt.Sprintf("IPv%d", version)
		t.Run(name, func(t *testing.T) {
			each(t, system+", "+name, func(t *testing.T, kind string) outcome { return once(t, kind, version) })
		})
	}
}

// missing returns the reason why a row cannot run here; "" if it can.
func missing(kind string) string {
	if os.Geteuid() != 0 {
		return "Mininet makes network namespaces, which needs root"
	}
	packages := map[string]string{"tshark": "tshark", "nsenter": "util-linux", python: "python3", "iperf3": "iperf3"}
	for _, tool := range slices.Sorted(maps.Keys(packages)) {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Sprintf("%s is missing: it is in Debian's package %s", tool, packages[tool])
		}
	}
	// The network itself reports missing parts.
	if out, err := exec.Command(python, repository+"/mininet/fabric.py", "--switch", kind, "--check").CombinedOutput(); err != nil {
		return strings.Join(strings.Fields(string(out)), " ")
	}
	return ""
}

// plays is the maximum number of tries of a play that the machine disturbs: two, or one after the first quarter
// of the tests' time, so that each row gets a try.
func plays(t *testing.T) int {
	if deadline, ok := t.Deadline(); ok && time.Until(deadline) < 3*deadline.Sub(began)/4 {
		return 1
	}
	return 2
}

var began = time.Now()

// again repeats a row that the machine disturbed.
func again(once func(t *testing.T, kind string) outcome) func(t *testing.T, kind string) outcome {
	return func(t *testing.T, kind string) (o outcome) {
		lag.Repeat(t, plays(t), func() string {
			if o = once(t, kind); len(o.invalid) == 0 {
				return ""
			}
			return fmt.Sprintf("%q; %s", o.invalid, o.figure)
		})
		return o
	}
}

// bear makes a row invalid if the machine's delay exceeds what a buffer or timer tolerates.
func (o *outcome) bear(late, most time.Duration, what string) {
	if late > most {
		o.invalid = append(o.invalid, fmt.Sprintf("the machine was %v late, where %s room for %v", late.Round(time.Millisecond), what, most))
	}
}

// judged returns the outcome of a report, with the checks' figures.
func judged(r *emulation.Report) (o outcome) {
	for _, v := range r.Variants {
		o.invalid = append(o.invalid, v.Invalid...)
	}
	var figures []string
	for _, c := range r.Checks {
		figures = append(figures, c.What+": "+c.Measured)
		if !c.OK {
			o.missed = append(o.missed, c.What+": "+c.Measured)
		}
	}
	o.figure = strings.Join(figures, "; ")
	return o
}
