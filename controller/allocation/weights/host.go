package weights

import (
	"cmp"
	"maps"
	"slices"

	"github.com/headgate/headgate/controller/authz/audit"
)

// Answer is the registry's answer about one flow that a host reported.
type Answer struct {
	Flow    Flow  // as registered; only its Key is set when Refused is not nil
	Refused error // *InvalidError, *BudgetError, *UnknownApplicationError, *ForeignError or ErrFull
}

// Report takes the list of all flows that start at a host. Known flows keep the weight they
// have, whatever the host says; unknown ones are registered with the weight the host asks
// for, each on its own; flows that the host registered before and that are gone now are
// deleted. Answers come in the order of flows. A flow that is refused again and again for
// the same request is in the audit log once.
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
