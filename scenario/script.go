package scenario

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Script is a scenario as data: what happens to a fabric, in phases.
type Script struct {
	Name   string
	Title  string
	Phases []Phase
}

// Phase begins with some actions and then lets the fabric settle for its share of the run.
type Phase struct {
	Name    string
	Actions []Action
}

// Action is one thing that an operator or a host does. Exactly one field is set.
type Action struct {
	Start  *Flow       // a host begins to send
	Weight *Weight     // the operator changes a weight, through the API
	Stop   string      // the host stops the flow of that name
	Link   *LinkChange // the operator takes a link out of the routes or puts it back, through the API
}

// Flow is one flow of a script.
type Flow struct {
	Name     string
	From, To string // hosts
	SrcPort  uint16 // UDP source port: the flow's entropy for ECMP
	Weight   float64
}

// Weight is a new weight for a flow.
type Weight struct {
	Flow  string
	Value float64
}

// LinkChange puts a link between two switches in or out of use.
type LinkChange struct {
	A, B string
	Up   bool
}

func (a Action) String() string {
	switch {
	case a.Start != nil:
		return fmt.Sprintf("%s joins: %s → %s, weight %g", a.Start.Name, a.Start.From, a.Start.To, a.Start.Weight)
	case a.Weight != nil:
		return fmt.Sprintf("%s's weight becomes %g", a.Weight.Flow, a.Weight.Value)
	case a.Stop != "":
		return a.Stop + " leaves"
	case a.Link != nil && a.Link.Up:
		return fmt.Sprintf("%s–%s returns to the routes", a.Link.A, a.Link.B)
	case a.Link != nil:
		return fmt.Sprintf("%s–%s is taken out of the routes", a.Link.A, a.Link.B)
	}
	return "nothing"
}

// Scripts returns the scenarios that `headgate run` knows, the default one first.
func Scripts() []Script { return []Script{sozeScript()} }

// sozeScript shares a leaf-spine fabric by weight. In the last phase two flows of leaf1 have only
// one uplink left, so that A's bottleneck moves from its receiver's port to leaf1's.
func sozeScript() Script {
	return Script{
		Name:  "soze",
		Title: "Söze: weighted max-min shares from one telemetry value",
		Phases: []Phase{
			{"two flows, weights 1:2", []Action{
				{Start: &Flow{"A", "h1", "h8", 20001, 1}},
				{Start: &Flow{"B", "h3", "h8", 20002, 2}},
			}},
			{"a third joins, 1:2:4", []Action{
				{Start: &Flow{"C", "h5", "h8", 20003, 4}},
			}},
			{"a weight changes, 4:2:4", []Action{
				{Weight: &Weight{"A", 4}},
			}},
			{"a flow leaves, 4:2", []Action{
				{Stop: "C"},
			}},
			{"the bottleneck moves", []Action{
				{Link: &LinkChange{"leaf1", "spine2", false}},
				{Start: &Flow{"D", "h2", "h6", 20004, 8}},
			}},
		},
	}
}

// tolerance is how far from its share a flow may be and still count as there.
const tolerance = 0.05

// settleWindow is how long a rate is averaged to judge whether a flow has settled, in
// multiples of the largest target round-trip time of the fabric.
const settleWindow = 4

// sampleEvery returns the sampling interval for a run: fine enough to see a phase.
func sampleEvery(total units.Time) units.Time {
	return min(max(total/400, 10*units.Millisecond), 100*units.Millisecond)
}
