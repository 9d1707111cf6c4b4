package weights

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/headgate/headgate/controller/state/outcome"
)

// DefaultApplication is the application of flows that name none.
const DefaultApplication = "default"

// Flow is a flow with its granted weight.
type Flow struct {
	Key         Key    `json:"flow"`
	Weight      Weight `json:"weight_millionths"`
	Application string `json:"application"`
	// Host is set when a host agent registered the flow: it ends when the host stops to
	// report it. Flows that an operator registered stay until they are deleted.
	Host string `json:"host,omitempty"`
}

// Change asks for a weight.
type Change struct {
	Key    Key
	Weight float64
	// Application is the application whose budget the weight counts against. Empty keeps the flow's application; a
	// new flow gets DefaultApplication.
	Application string
}

// Applied is a change that was made.
type Applied struct {
	Previous Weight // 0 when the flow was unknown
	Flow     Flow
}

// Budget is the weight that an application may hand out. If the configuration or an operator's budget
// names any application, applications without a name there get no weight.
type Budget struct {
	Application string `json:"application"`
	Limit       Weight `json:"limit_millionths"`      // largest sum of weights, 0 for no limit
	Configured  Weight `json:"configured_millionths"` // the limit that the configuration last gave, 0 for none
	Used        Weight `json:"-"`                     // sum of the weights of the application's flows
	Flows       int    `json:"-"`
}

// ledger is the pure core: flows, sums and limits, without a lock or a clock. Changes are
// tried on a stage and then applied, so that a refusal, or a failing store, leaves no trace.
type ledger struct {
	flows map[Key]Flow
	hosts map[string]map[Key]struct{} // keys of the flows with that Host
	apps  map[string]Budget           // applications with a limit or a flow
	named int                         // how many of apps are named
}

// stage is a set of changes to a ledger, consistent with it as long as the ledger does not change.
type stage struct {
	ledger *ledger
	below  *stage            // a stage whose changes are applied before these; nil for none
	flows  map[Key]Flow      // new values; a zero Weight means deleted
	apps   map[string]Budget // new values
	grown  int               // flows added less flows deleted
	done   *outcome.Done     // outcome of the request for the changes; nil for none
}

func (l *ledger) stage() *stage {
	return &stage{ledger: l, flows: map[Key]Flow{}, apps: map[string]Budget{}}
}

func (s *stage) flow(k Key) (Flow, bool) {
	f, ok := s.flows[k]
	switch {
	case ok:
	case s.below != nil:
		return s.below.flow(k)
	default:
		f, ok = s.ledger.flows[k]
	}
	return f, ok && f.Weight != 0
}

func (s *stage) app(name string) Budget {
	if a, ok := s.apps[name]; ok {
		return a
	}
	if s.below != nil {
		return s.below.app(name)
	}
	return s.ledger.app(name)
}

func (l *ledger) app(name string) Budget {
	a := l.apps[name]
	a.Application = name
	return a
}

// set tries all changes or none. Only an application whose sum grows can be over budget.
func (s *stage) set(host string, changes []Change) ([]Applied, error) {
	trial := s.ledger.stage()
	trial.below = s
	out := make([]Applied, 0, len(changes))
	for _, c := range changes {
		if c.Key == (Key{}) {
			return nil, &InvalidError{Field: "flow", Value: `""`, Allowed: KeyForm}
		}
		w, err := FromFloat(c.Weight)
		if err != nil {
			return nil, err
		}
		old, known := trial.flow(c.Key)
		f := Flow{Key: c.Key, Weight: w, Application: cmp.Or(c.Application, old.Application, DefaultApplication), Host: host}
		if known {
			f.Host = old.Host
		}
		if err := CheckApplication(f.Application); err != nil {
			return nil, err
		}
		trial.put(f)
		out = append(out, Applied{Previous: old.Weight, Flow: f})
	}
	if trial.grown > 0 && len(s.ledger.flows)+s.grown+trial.grown > MaxFlows {
		return nil, ErrFull
	}
	for _, name := range slices.Sorted(maps.Keys(trial.apps)) {
		switch was, is := s.app(name), trial.app(name); {
		case is.Used <= was.Used:
		case s.ledger.named > 0 && !is.Named():
			return nil, &UnknownApplicationError{Application: name, Named: s.ledger.names()}
		case is.Limit != 0 && is.Used > is.Limit:
			e := &BudgetError{Application: name, Limit: is.Limit, Used: was.Used}
			for k, f := range trial.flows {
				if old, known := s.flow(k); known && old.Application == name {
					e.Before += old.Weight
				}
				if f.Application == name {
					e.After += f.Weight
				}
			}
			return nil, e
		}
	}
	maps.Copy(s.flows, trial.flows)
	maps.Copy(s.apps, trial.apps)
	s.grown += trial.grown
	return out, nil
}

// put replaces a flow and moves its weight between the sums.
func (s *stage) put(f Flow) {
	if old, known := s.flow(f.Key); known {
		s.account(old.Application, -old.Weight, -1)
		s.grown--
	}
	s.flows[f.Key] = f
	s.account(f.Application, f.Weight, 1)
	s.grown++
}

func (s *stage) delete(k Key) (Flow, error) {
	old, known := s.flow(k)
	if !known {
		return Flow{}, fmt.Errorf("%w: %v", ErrUnknownFlow, k)
	}
	s.account(old.Application, -old.Weight, -1)
	s.flows[k] = Flow{Key: k}
	s.grown--
	return old, nil
}

func (s *stage) account(name string, w Weight, flows int) {
	a := s.app(name)
	a.Used += w
	a.Flows += flows
	s.apps[name] = a
}

// limit changes a budget; it refuses a limit below the weights in use.
func (s *stage) limit(name string, limit Weight) (previous Weight, err error) {
	a := s.app(name)
	if limit != 0 && limit < a.Used {
		return a.Limit, &BudgetError{Application: name, Limit: a.Limit, Used: a.Used, LowersLimit: true, Asked: limit}
	}
	previous, a.Limit = a.Limit, limit
	s.apps[name] = a
	return previous, nil
}

// apply makes the stage's changes. It cannot fail.
func (l *ledger) apply(s *stage) {
	for k, f := range s.flows {
		if old, ok := l.flows[k]; ok && old.Host != "" {
			delete(l.hosts[old.Host], k)
			if len(l.hosts[old.Host]) == 0 {
				delete(l.hosts, old.Host)
			}
		}
		if f.Weight == 0 {
			delete(l.flows, k)
			continue
		}
		l.flows[k] = f
		if f.Host != "" {
			if l.hosts[f.Host] == nil {
				l.hosts[f.Host] = map[Key]struct{}{}
			}
			l.hosts[f.Host][k] = struct{}{}
		}
	}
	for name, a := range s.apps {
		if l.apps[name].Named() {
			l.named--
		}
		if a.Named() {
			l.named++
		}
		if a.empty() {
			delete(l.apps, name)
			continue
		}
		l.apps[name] = a
	}
}

func (a Budget) empty() bool { return !a.Named() && a.Flows == 0 }

// Named reports whether the configuration or an operator set a budget for the application.
func (a Budget) Named() bool { return a.Limit != 0 || a.Configured != 0 }

func (l *ledger) names() []string {
	var names []string
	for name, a := range l.apps {
		if a.Named() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var applicationForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$`)

// CheckApplication refuses names that would not survive logs, labels and command lines.
func CheckApplication(name string) error {
	if !applicationForm.MatchString(name) {
		return &InvalidError{Field: "application", Value: fmt.Sprintf("%q", name),
			Allowed: "1 to 64 letters, digits, dots, dashes, slashes and underscores, the first a letter or digit"}
	}
	return nil
}
