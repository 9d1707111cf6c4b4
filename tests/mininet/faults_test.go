package mininet

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/emulation"
	"github.com/headgate/headgate/units"
)

// right waits until every switch is ready and a plan of the network's own file is empty.
func (n *network) right() {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, "fabric.yaml"))
	if err != nil {
		n.t.Fatal(err)
	}
	why := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		list, err := n.admin.ListSwitches(n.t.Context(), &pb.ListSwitchesRequest{})
		if err == nil && !slices.ContainsFunc(list.GetSwitches(), func(s *pb.SwitchStatus) bool { return s.GetState() != pb.SwitchStatus_STATE_READY }) {
			var plan *pb.PlanConfigResponse
			if plan, err = n.admin.PlanConfig(n.t.Context(), &pb.PlanConfigRequest{Config: string(text), File: "fabric.yaml"}); err == nil {
				why = ""
				for _, s := range plan.GetSwitches() {
					if s.GetUnreachable() != "" || len(s.GetChanges()) > 0 {
						why += fmt.Sprintf("%s: %s %v; ", s.GetName(), s.GetUnreachable(), s.GetChanges())
					}
				}
				if why == "" {
					return
				}
				continue
			}
		}
		why = fmt.Sprint(list.GetSwitches(), err)
	}
	n.t.Errorf("the fabric is not right again: %s", why)
}

// TestFaults causes faults and repairs them while two flows share the second hop of a line of switches by weight.
// Afterwards the fabric and the shares must be right again.
func TestFaults(t *testing.T) {
	tests := []struct {
		name       string
		fail, mend []string // commands of nodes.Served
		forwards   bool     // nothing may be lost meanwhile
	}{
		{"a switch is killed and started", []string{"kill", "s2"}, []string{"start", "s2"}, false},
		{"a link is cut and mended", []string{"link", "s1", "s2", "down"}, []string{"link", "s1", "s2", "up"}, false},
		{"the controller is killed and started", []string{"kill", "controller"}, []string{"start", "controller"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			each(t, tt.name, func(t *testing.T, kind string) outcome {
				phase := func(name string, seconds int, actions ...emulation.Action) emulation.Phase {
					return emulation.Phase{Name: name, For: units.Time(seconds) * 100 * units.Microsecond, Actions: actions}
				}
				start := func(name, from, to string, port uint16, weight float64) emulation.Action {
					return emulation.Action{Start: &emulation.Flow{Name: name, From: []string{from}, To: to, SrcPort: port, Weight: weight}}
				}
				s := emulation.Shares("faults", "a fault beside two flows with weights 1 and 3",
					phase("before", 8, start("A", "h1", "h7", 20001, 1), start("D", "h4", "h8", 20004, 3)),
					// A sender tries again after 4 s at most, and then needs up to 10 s to find its rate. So only
					// the second half of a phase counts.
					phase("the fault", 4), phase("after it", 36),
				)
				s.Fabric = fabric(t, "line.yaml")
				s.Sample, s.Over = 10*units.Microsecond, 100*units.Microsecond
				s.Judge = func(r *emulation.Report) { judgeFault(r, tt.forwards) }
				do := func(command []string) func(n *network) { return func(n *network) { n.do(command...) } }
				return judged(play(t, s, kind, extra{end: (*network).right, faults: map[int]func(n *network){1: do(tt.fail), 2: do(tt.mend)}}))
			})
		})
	}
}

// judgeFault requires shares within 10 % before and after a fault, and reports the fault's cost.
func judgeFault(r *emulation.Report, forwards bool) {
	for _, v := range r.Variants {
		worst, where := 0.0, "none ran"
		for _, p := range []emulation.PhaseResult{v.Phases[0], v.Phases[2]} {
			for _, f := range p.Flows {
				if e := math.Abs(f.Error); e >= worst {
					worst, where = e, f.Name+" "+p.Name
				}
			}
		}
		lost := v.Losses.Switches
		r.Checks = append(r.Checks, emulation.Check{
			What:     "the plan is empty and the shares are within 10 %",
			Measured: fmt.Sprintf("at most %.1f %% away (%s); %d packets lost, %d sent again", worst, where, lost, v.Losses.Retransmits),
			OK:       worst <= 10 && where != "none ran" && (lost == 0 || !forwards),
		})
	}
}
