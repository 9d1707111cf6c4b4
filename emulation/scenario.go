// Package emulation is `headgate run`: a fabric of embedded switches and hosts in one process,
// the real controller driving them over P4Runtime on loopback, and a script of what operators
// and hosts do to it. Nothing is simulated: switches run the compiled P4 program, and hosts
// send and obey real frames. Package emulation/network has the fabric.
//
// # Scenario, variant, phase
//
// A Scenario is data. It is in scenarios.yaml if it has a fabric of its own. It is played once for each of its
// variants, with the same phases. A variant is a configuration of the scenario's fabric. One recorder takes samples
// and counts, and one report compares the variants.
//
// # Time and rates
//
// A scenario with a fabric of its own uses the units of its paper: bytes, and times and rates at line rate. The
// fabric runs slower by the scale of its file, with the same bytes (see package config), and the measurements are
// converted back. A scenario that plays on the operator's fabric uses that fabric's own times and rates.
//
// # Validity
//
// A play is invalid if the machine disturbed it, if it lost packets that nothing in the scenario drops, or if one of
// its flows never ran. The report then gives the reasons, and no check of the run is judged.
package emulation

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/examples"
	"github.com/headgate/headgate/units"
)

// Scenario is a script for a fabric and its expected result, as data. Its times count from the moment at which
// every switch holds its configuration.
type Scenario struct {
	Name   string // value of --scenario
	Title  string
	Source string // the paper's experiment, and the differences from it
	// Fabric is the fabric file without the sections that the variants add. It is nil for a scenario that plays on
	// the operator's fabric. File is its name in scenarios.yaml.
	Fabric   []byte    `yaml:"-"`
	File     string    `yaml:"fabric"`
	Variants []Variant // one variant or more
	Phases   []Phase
	// On returns the phases for the operator's fabric, or an error that says what the fabric lacks. It is nil for
	// a scenario that sets Phases itself.
	On func(*config.Config) ([]Phase, error) `yaml:"-"`

	// Law is the law of the hosts' flows. Limits names hosts whose flows have no law and send at most the given
	// fraction of line rate.
	Law    Law
	Limits map[string]float64

	Sample units.Time // interval of the samples; 0 derives it from the length
	Over   units.Time // length of the window in which a flow's rate is computed

	// Lossless says that the switches have lossless classes. Drops in these classes are a result; no other drop is
	// allowed. Victim is a flow that causes no congestion, "" for none. Its loss of rate in the second phase is
	// measured.
	Lossless bool
	Victim   string
	// Port has the Queue to record; the zero value records none. Target is the level at which the queue should
	// settle, 0 for none.
	Port   config.Endpoint
	Queue  int
	Target units.Bytes

	// Measures are the numbers to compare. Claims are the claims to check, in the form of an experiment's.
	Measures []Measure
	Claims   yaml.Node
	offers   []string // variants, before Select

	// Table compares the measurements of the variants; Judge adds the checks.
	Table func(io.Writer, *Report) `yaml:"-"`
	Judge func(*Report)            `yaml:"-"`
}

// Variant is one configuration.
type Variant struct {
	Name string // "" for a scenario's only variant
	// Config has whole sections that are added to the fabric file.
	Config string
	// CNPGap, if not 0, makes the receiving hosts DCQCN's notification points. With 0 only switches send CNPs.
	CNPGap units.Time
}

// Law names a congestion law of a scenario's hosts.
type Law string

// The laws.
const (
	Soze     Law = "soze"  // Söze with the parameters of the fabric file; its data carry the maxQD shim
	LineRate Law = "none"  // line rate; only PFC stops the hosts
	DCQCN    Law = "dcqcn" // the parameters of NICs: dcqcn.Vendor
)

// Phase begins with some actions and lasts until the next phase.
type Phase struct {
	Name string
	// For is the length of the phase; 0 means an equal share of the run.
	For units.Time
	// Whole measures the phase from its beginning. Otherwise only its second half counts, when the effect
	// of its actions has settled.
	Whole   bool
	Actions []Action
}

// Action is one action of an operator or a host. Exactly one field is set.
type Action struct {
	Start  *Flow       // hosts begin to send
	Stop   string      // a host stops the flow of that name
	Weight *Weight     // the operator changes a weight, through the API
	Link   *LinkChange // the operator takes a link out of the routes or puts it back, through the API
}

// Flow is a flow, or a burst: several hosts begin to send to another host at the same time.
type Flow struct {
	Name    string
	From    []string // hosts; exactly one for an endless flow
	To      string
	SrcPort uint16  // UDP source port, the flow's entropy for ECMP; 0 for any
	Weight  float64 // weight under Söze; 0 means 1
	// Size is the size of each host's flow in a burst, 0 for an endless flow. Rounds is the number of
	// flows of each host, one after another at line rate; 0 means 1.
	Size   units.Bytes
	Rounds int
}

// count returns the number of flows.
func (f *Flow) count() int { return len(f.From) * max(f.Rounds, 1) }

// Weight is a new weight for a flow.
type Weight struct {
	Flow  string
	Value float64
}

// LinkChange takes a link between two switches out of service or puts it back.
type LinkChange struct {
	A, B string
	Up   bool
}

func (a Action) String() string {
	switch {
	case a.Start != nil && a.Start.Size > 0:
		f := a.Start
		return fmt.Sprintf("%s: %d hosts send %d × %.0f KB each to %s", f.Name, len(f.From), max(f.Rounds, 1), float64(f.Size)/1e3, f.To)
	case a.Start != nil && a.Start.Weight > 0:
		return fmt.Sprintf("%s joins: %s → %s, weight %g", a.Start.Name, a.Start.From[0], a.Start.To, a.Start.Weight)
	case a.Start != nil:
		return fmt.Sprintf("%s joins: %s → %s", a.Start.Name, a.Start.From[0], a.Start.To)
	case a.Stop != "":
		return a.Stop + " leaves"
	case a.Weight != nil:
		return fmt.Sprintf("%s's weight becomes %g", a.Weight.Flow, a.Weight.Value)
	case a.Link != nil && a.Link.Up:
		return fmt.Sprintf("%s–%s returns to the routes", a.Link.A, a.Link.B)
	case a.Link != nil:
		return fmt.Sprintf("%s–%s is taken out of the routes", a.Link.A, a.Link.B)
	}
	return "nothing"
}

//go:embed scenarios.yaml fabrics
var files embed.FS

// All returns the scenarios, the default one first.
func All() []Scenario {
	list := []Scenario{sozeScenario()}
	text, err := files.ReadFile("scenarios.yaml")
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var own []Scenario
	if err := cmp.Or(err, d.Decode(&own)); err != nil {
		panic(err) // it is built in
	}
	for _, s := range own {
		s.Table, s.Judge, s.Fabric, s.offers = measuresTable, judgePolicies, examples.LeafSpine, s.VariantNames()
		if text, err := files.ReadFile("fabrics/" + s.File); err == nil {
			s.Fabric = text
		}
		list = append(list, s)
	}
	return list
}

// predictable returns the names of the scenarios with a burst and a victim flow.
func predictable() string {
	var names []string
	for _, s := range All() {
		if s.Victim != "" {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Names returns the values of --scenario, the default first.
func Names() (names []string) {
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}

// Find returns the scenario with a name.
func Find(name string) (Scenario, error) {
	all := All()
	if i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name }); i >= 0 {
		return all[i], nil
	}
	return Scenario{}, fmt.Errorf("--scenario %q: want one of %s", name, strings.Join(Names(), ", "))
}

// Select restricts a scenario to the named variants, in the order given. No names mean all.
func (s Scenario) Select(names []string) (Scenario, error) {
	if len(names) == 0 {
		return s, nil
	}
	if s.Variants[0].Name == "" {
		return s, fmt.Errorf("--variant %s: scenario %s has no variants", strings.Join(names, ","), s.Name)
	}
	var chosen []Variant
	for _, name := range names {
		i := slices.IndexFunc(s.Variants, func(v Variant) bool { return v.Name == name })
		if i < 0 {
			return s, fmt.Errorf("--variant: variant %q of scenario %s: want one of %s", name, s.Name, strings.Join(s.VariantNames(), ", "))
		}
		chosen = append(chosen, s.Variants[i])
	}
	s.Variants = chosen
	return s, nil
}

// VariantNames returns the names of the variants.
func (s *Scenario) VariantNames() (names []string) {
	for _, v := range s.Variants {
		names = append(names, v.Name)
	}
	return names
}

// Configure returns the configuration of a variant's own fabric.
func (s *Scenario) Configure(v Variant) (*config.Config, error) {
	text := append(slices.Clone(s.Fabric), "\n"+v.Config+"\n"...)
	c, err := config.Parse("built-in "+s.Name+".yaml, "+v.Name, text, nil, controller.Sections()...)
	if err != nil {
		return nil, fmt.Errorf("variant %s: %w", v.Name, err)
	}
	return c, nil
}

// Flows returns the flows and bursts in the order in which the scenario names them.
func (s *Scenario) Flows() (list []*Flow) {
	for _, p := range s.Phases {
		for _, a := range p.Actions {
			if a.Start != nil {
				list = append(list, a.Start)
			}
		}
	}
	return list
}

// flow returns the flow or burst with a name.
func (s *Scenario) flow(name string) *Flow {
	list := s.Flows()
	return list[slices.IndexFunc(list, func(f *Flow) bool { return f.Name == name })]
}

// setBurst sets the size of each host's flow in the scenario's bursts, for every round. An empty text changes
// nothing.
func (s *Scenario) setBurst(text string) error {
	if text == "" {
		return nil
	}
	size, err := units.ParseBytes(text)
	if err != nil || size < 1 || size > maxBurst {
		return fmt.Errorf("--burst %q: want an amount from 1B to %v, such as 64KB", text, maxBurst)
	}
	for _, f := range s.Flows() {
		if f.Size > 0 {
			f.Size = size
		}
	}
	return nil
}

// maxBurst bounds the size of a host's flow in a burst.
const maxBurst = units.MB

// check returns an error that names the parts that a fabric lacks.
func (s *Scenario) check(c *config.Config) error {
	host := func(what string, names ...string) error {
		for _, name := range names {
			if c.Host(name) == nil {
				return fmt.Errorf("scenario %s: %s: no host %q in %s", s.Name, what, name, c.File)
			}
		}
		return nil
	}
	flows := map[string]bool{}
	for _, p := range s.Phases {
		for _, a := range p.Actions {
			var err error
			switch {
			case a.Start != nil:
				flows[a.Start.Name] = true
				err = host("flow "+a.Start.Name, append([]string{a.Start.To}, a.Start.From...)...)
			case a.Stop != "" && !flows[a.Stop]:
				err = fmt.Errorf("scenario %s: %s: no such flow has begun", s.Name, a)
			case a.Weight != nil && !flows[a.Weight.Flow]:
				err = fmt.Errorf("scenario %s: %s: no such flow has begun", s.Name, a)
			}
			if err != nil {
				return err
			}
		}
	}
	for h := range s.Limits {
		if err := host("limit", h); err != nil {
			return err
		}
	}
	if s.Port != (config.Endpoint{}) && c.Switch(s.Port.Node) == nil {
		return fmt.Errorf("scenario %s: port %v: no such switch in %s", s.Name, s.Port, c.File)
	}
	return nil
}

// Times returns the start of each phase and, last, the end of the run. Phases without a length share the rest of
// total equally.
func (s *Scenario) Times(total units.Time) []units.Time {
	shares := 0
	for _, p := range s.Phases {
		if p.For == 0 {
			shares++
		}
		total -= p.For
	}
	at := []units.Time{0}
	for _, p := range s.Phases {
		length := p.For
		if length == 0 {
			length = total / units.Time(shares)
		}
		at = append(at, at[len(at)-1]+length)
	}
	return at
}
