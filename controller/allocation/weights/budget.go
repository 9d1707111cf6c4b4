package weights

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/yamlnode"
)

// SetBudget changes an application's limit; 0 removes it, and with it the name
// of an application that the configuration does not name. A limit below what is in use is
// refused with a *BudgetError, a value out of range with an *InvalidError.
func (r *Registry) SetBudget(by Caller, application string, limit float64) error {
	r.write.Lock()
	defer r.write.Unlock()
	if by.Request.Again(nil) {
		return nil
	}
	s := r.ledger.stage()
	s.done = by.Request.DoneWith(nil)
	entry := by.entry(audit.Budget, application, Key{}, r.ledger.apps[application].Limit, limit)
	err := CheckApplication(application)
	if err == nil {
		var w Weight
		if w, err = LimitFromFloat(limit); err == nil {
			entry.Value = w.Float()
			_, err = s.limit(application, w)
		}
	}
	return r.finish(s, []audit.Entry{entry}, err)
}

// Check implements controller.Participant: it refuses a budget below the weights in use.
func (r *Registry) Check(cfg *config.Config) error {
	r.write.Lock()
	defer r.write.Unlock()
	_, _, err := r.configured(cfg)
	return err
}

// Changes implements controller.Planner.
func (r *Registry) Changes(cfg *config.Config) []*pb.Change {
	r.write.Lock()
	defer r.write.Unlock()
	s, _, err := r.configured(cfg)
	if err != nil {
		return nil // Check says so
	}
	from, to := map[string]string{}, map[string]string{}
	for name, a := range s.apps {
		if was := r.ledger.app(name).Limit; was != 0 {
			from[name] = was.String()
		}
		if a.Limit != 0 {
			to[name] = a.Limit.String()
		}
	}
	return pb.Diff("budget", from, to)
}

// Configure implements controller.Participant: it takes the budgets of a configuration, all or none. A limit
// changes only if the configuration's value differs from that of the previous configuration. So a SetBudget by an
// operator holds until the configuration itself changes. An application that the configuration no longer names
// loses its limit.
func (r *Registry) Configure(cfg *config.Config) (undo func(), err error) {
	r.write.Lock()
	defer r.write.Unlock()
	s, entries, err := r.configured(cfg)
	if len(entries) > 0 {
		var before []Budget
		for name := range s.apps {
			before = append(before, r.ledger.app(name))
		}
		err = r.finish(s, entries, err)
		undo = func() { r.restore("configuration "+cfg.File+", taken back", before) }
	} else {
		undo = func() {}
	}
	return undo, err
}

// restore puts the limits back, even below the weights in use.
func (r *Registry) restore(peer string, before []Budget) {
	r.write.Lock()
	defer r.write.Unlock()
	s := r.ledger.stage()
	var entries []audit.Entry
	for _, b := range before {
		a := s.app(b.Application)
		entries = append(entries, Caller{Peer: peer}.entry(audit.Budget, b.Application, Key{}, a.Limit, b.Limit.Float()))
		a.Limit, a.Configured = b.Limit, b.Configured
		s.apps[b.Application] = a
	}
	if err := r.finish(s, entries, nil); err != nil {
		r.slog.Error("the budgets of a configuration that was taken back remain", "file", peer, "err", err)
	}
}

// configured stages a configuration's budgets. If a budget is at fault, it returns only that budget's audit entry,
// with a yamlnode.Fault.
func (r *Registry) configured(cfg *config.Config) (*stage, []audit.Entry, error) {
	s := r.ledger.stage()
	var entries []audit.Entry
	named := map[string]bool{}
	set := func(name, field string, value float64) error {
		named[name] = true
		a := s.app(name)
		e := Caller{Peer: "configuration " + cfg.File}.entry(audit.Budget, name, Key{}, a.Limit, value)
		limit, err := LimitFromFloat(value)
		switch {
		case err == nil && a.Configured == limit:
			return nil
		case err == nil:
			_, err = s.limit(name, limit)
		}
		if err != nil {
			entries = []audit.Entry{e}
			return yamlnode.Fault{Field: field, Text: err.Error()}
		}
		a = s.app(name)
		a.Configured = limit
		s.apps[name] = a
		entries = append(entries, e)
		return nil
	}
	for i, a := range cfg.Applications {
		if err := set(a.Name, fmt.Sprintf("applications[%d].budget", i), a.Budget); err != nil {
			return s, entries, err
		}
	}
	for _, a := range r.ledger.budgets() {
		if !named[a.Application] && a.Configured != 0 {
			if err := set(a.Application, "applications", 0); err != nil {
				return s, entries, err
			}
		}
	}
	return s, entries, nil
}

// Answer is the registry's answer about one flow that a host reported.
type Answer struct {
	Flow    Flow  // the flow as registered; only its Key is set when Refused is not nil
	Refused error // *InvalidError, *BudgetError, *UnknownApplicationError, *ForeignError or ErrFull
}

// Report takes the list of all flows that start at a host. Known flows keep the weight they have, whatever the host
// says; unknown ones are registered with the weight the host asks for, each on its own; flows that the host
// registered before and that are gone now are deleted. Answers come in the order of flows. A flow that is refused
// repeatedly for the same request is in the audit log once.
func (r *Registry) Report(by Caller, host string, flows []Change) ([]Answer, error) {
	if answers, done := r.known(host, flows); done {
		return answers, nil
	}
	r.write.Lock()
	defer r.write.Unlock()
	s := r.ledger.stage()
	var entries []audit.Entry
	log := func(e audit.Entry, err error) {
		entries = append(entries, e)
		r.audit.Stamp(entries[len(entries)-1:], err)
	}

	// Ended flows go first, so that their weight is free for new flows.
	reported := make(map[Key]struct{}, len(flows))
	for _, c := range flows {
		reported[c.Key] = struct{}{}
	}
	gone := make([]Key, 0)
	for k := range r.ledger.hosts[host] {
		if _, ok := reported[k]; !ok {
			gone = append(gone, k)
		}
	}
	slices.SortFunc(gone, Key.Compare)
	for _, k := range gone {
		old, err := s.delete(k)
		log(by.entry(audit.Delete, old.Application, k, old.Weight, 0), err)
	}

	answers := make([]Answer, len(flows))
	refused := map[Key]Change{}
	for i, c := range flows {
		if f, ok := s.flow(c.Key); ok {
			answers[i].Flow = f
			continue
		}
		e := by.entry(audit.Weight, cmp.Or(c.Application, DefaultApplication), c.Key, 0, c.Weight)
		var applied []Applied
		var err error = &ForeignError{Flow: c.Key, Owner: e.Application}
		if by.May(e.Application) {
			applied, err = s.set(host, []Change{c})
		}
		if err != nil {
			answers[i] = Answer{Flow: Flow{Key: c.Key}, Refused: err}
			refused[c.Key] = c
			if before, again := r.refused[host][c.Key]; !again || !same(before, c) {
				log(e, err)
			}
			continue
		}
		answers[i].Flow = applied[0].Flow
		e.Value = applied[0].Flow.Weight.Float()
		log(e, nil)
	}
	if len(s.flows) > 0 || len(entries) > 0 {
		if err := r.commit(s, entries); err != nil {
			return nil, err
		}
	}
	if len(refused) > 0 {
		r.refused[host] = refused
	} else {
		delete(r.refused, host)
	}
	return answers, nil
}

// known answers the usual report, in which nothing is new, under the readers' lock.
func (r *Registry) known(host string, flows []Change) ([]Answer, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	answers := make([]Answer, len(flows))
	left := maps.Clone(r.ledger.hosts[host])
	for i, c := range flows {
		f, ok := r.ledger.flows[c.Key]
		if !ok {
			return nil, false
		}
		delete(left, c.Key)
		answers[i].Flow = f
	}
	return answers, len(left) == 0
}

// same compares requests; two NaN weights are the same request.
func same(a, b Change) bool {
	return a.Application == b.Application && (a.Weight == b.Weight || a.Weight != a.Weight && b.Weight != b.Weight)
}
