// Package compare plays the same traffic under several configurations of one small fabric,
// one after the other, and puts what it measured side by side. The fabric is in this
// process, but nothing of it is a model: switches run the compiled P4 program, the
// controller configures them over P4Runtime, and hosts send and obey real frames.
//
// # Time and rates
//
// A scenario is written in the paper's terms: bytes, and times and rates at line rate. The
// fabric runs slower by the scale of its fabric file, with the same bytes (see package
// config). What was measured is converted back, so that a report reads like the paper.
package compare

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

// Scenario is a comparison as data. All times are at line rate and count from the moment
// when the fabric of a variant is ready.
type Scenario struct {
	Name   string // of --scenario
	Title  string
	Source string // what it is taken from, and what differs
	// Fabric is the fabric file without the sections that the variants add.
	Fabric   []byte
	Variants []Variant

	Flows  []Flow
	Bursts []Burst
	// Law is what hosts' flows follow. Limits has the hosts whose flows send at most that
	// fraction of line rate instead.
	Law    Law
	Limits map[string]float64

	// Before and During are the windows of the measurement; the burst begins with During.
	Before, During Window
	End            units.Time
	Sample         units.Time // interval of the series
	Victim         string     // flow that has no part in the congestion; "" for none
	Port           config.Endpoint
	Queue          int // of Port, recorded
	// Target is what the queue should settle at; 0 when there is no such level.
	Target units.Bytes
	// checks judges what was measured.
	checks func(*Report) []Check
}

// Variant is one configuration.
type Variant struct {
	Name string
	// Config is added to the fabric file: whole sections of it.
	Config string
	// CNPGap makes the receiving hosts DCQCN's notification points; 0 leaves that to the
	// switches.
	CNPGap units.Time
}

// Law names a congestion law of a scenario's hosts.
type Law string

// The laws.
const (
	LineRate Law = "none"  // line rate, which PFC alone stops
	DCQCN    Law = "dcqcn" // as NICs have it: dcqcn.Vendor
)

// Flow is a flow that lasts for the whole of a variant.
type Flow struct{ Name, From, To string }

// Burst is some hosts that begin to send to another at once.
type Burst struct {
	Name   string
	From   []string
	To     string
	At     units.Time
	Size   units.Bytes // of each flow
	Rounds int         // flows of each host, each when the last could have left at line rate
}

// Window is a part of a variant's time.
type Window struct{ From, To units.Time }

// All returns the comparisons that there are.
func All() []Scenario { return []Scenario{dshScenario(), spfcScenario(), paccScenario()} }

// Find returns the comparison of a name.
func Find(name string) (Scenario, bool) {
	for _, s := range All() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// Select leaves a scenario only the named variants, in the order given; all when there are
// no names.
func (s Scenario) Select(names []string) (Scenario, error) {
	if len(names) == 0 {
		return s, nil
	}
	var chosen []Variant
	var known []string
	for _, v := range s.Variants {
		known = append(known, v.Name)
	}
	for _, name := range names {
		found := false
		for _, v := range s.Variants {
			if v.Name == name {
				chosen, found = append(chosen, v), true
			}
		}
		if !found {
			return s, fmt.Errorf("variant %q of scenario %s: want one of %s", name, s.Name, strings.Join(known, ", "))
		}
	}
	s.Variants = chosen
	return s, nil
}

// configure returns the fabric file of a variant.
func (s *Scenario) configure(v Variant) (*config.Config, error) {
	text := append(append([]byte(nil), s.Fabric...), "\n"+v.Config+"\n"...)
	c, err := config.Reparse("built-in "+s.Name+".yaml, "+v.Name, text, nil)
	if err != nil {
		return nil, fmt.Errorf("variant %s: %w", v.Name, err)
	}
	return c, s.check(c)
}

// check finds what the fabric does not have.
func (s *Scenario) check(c *config.Config) error {
	host := func(what, name string) error {
		if c.Host(name) == nil {
			return fmt.Errorf("scenario %s: %s: no host %q in its fabric", s.Name, what, name)
		}
		return nil
	}
	for _, f := range s.Flows {
		for _, h := range []string{f.From, f.To} {
			if err := host("flow "+f.Name, h); err != nil {
				return err
			}
		}
	}
	for _, b := range s.Bursts {
		for _, h := range append([]string{b.To}, b.From...) {
			if err := host("burst "+b.Name, h); err != nil {
				return err
			}
		}
	}
	for h := range s.Limits {
		if err := host("limit", h); err != nil {
			return err
		}
	}
	if c.Switch(s.Port.Node) == nil {
		return fmt.Errorf("scenario %s: port %v: no such switch in its fabric", s.Name, s.Port)
	}
	return nil
}

// hosts returns n names, prefix followed by first, first + 1, ….
func hosts(prefix string, first, n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("%s%d", prefix, first+i))
	}
	return names
}
