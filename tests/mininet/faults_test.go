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
	"github.com/headgate/headgate/scenario"
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

// TestFaults kills a switch, cuts a link and kills the controller while two flows share the second hop of
// a line of switches by weight. After each the fabric must be right, and the shares too.
func TestFaults(t *testing.T) {
	each(t, "faults", func(t *testing.T, kind string) outcome {
		phase := func(name string, seconds int, actions ...scenario.Action) scenario.Phase {
			return scenario.Phase{Name: name, For: units.Time(seconds) * 100 * units.Microsecond, Actions: actions}
		}
		start := func(name, from, to string, port uint16, weight float64) scenario.Action {
			return scenario.Action{Start: &scenario.Flow{Name: name, From: []string{from}, To: to, SrcPort: port, Weight: weight}}
		}
		s := scenario.Shares("faults", "faults beside two flows with weights 1 and 3",
			phase("before", 8, start("A", "h1", "h7", 20001, 1), start("D", "h4", "h8", 20004, 3)),
			phase("s2 is killed", 3), phase("s2 is started", 16),
			phase("the link s1–s2 is cut", 3), phase("the link is back", 16),
			phase("the controller is killed", 5), phase("the controller is started", 10),
		)
		s.Fabric = fabric(t, "line.yaml")
		s.Sample, s.Over, s.Judge = 10*units.Microsecond, 100*units.Microsecond, judgeFaults
		do := func(command ...string) func(n *network) { return func(n *network) { n.do(command...) } }
		after := func(command ...string) func(n *network) {
			return func(n *network) {
				n.right() // what the fault before left
				n.do(command...)
			}
		}
		return judged(play(t, s, kind, extra{end: (*network).right, faults: map[int]func(n *network){
			1: do("kill", "s2"), 2: do("start", "s2"),
			3: after("link", "s1", "s2", "down"), 4: do("link", "s1", "s2", "up"),
			5: after("kill", "controller"), 6: do("start", "controller"),
		}}))
	})
}

// judgeFaults wants the shares within 10 % in the phases that follow a fault's end.
func judgeFaults(r *scenario.Report) {
	for _, v := range r.Variants {
		if len(v.Invalid) > 0 {
			return
		}
		worst, where := 0.0, "none ran"
		for i := 0; i < len(v.Phases); i += 2 {
			p := v.Phases[i]
			for _, f := range p.Flows {
				if e := math.Abs(f.Error); e >= worst {
					worst, where = e, f.Name+" when "+p.Name
				}
			}
		}
		r.Checks = append(r.Checks, scenario.Check{
			What:     "after switch, link and controller were lost and are back, plans are empty and shares within 10 %",
			Measured: fmt.Sprintf("at most %.1f %% away (%s); %d packets were lost, %d sent again", worst, where, v.Losses.Switches, v.Losses.Retransmits), OK: worst <= 10 && where != "none ran",
		})
	}
}
