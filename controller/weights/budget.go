package weights

import (
	"fmt"
	"maps"
	"slices"
)

// SetBudget changes an application's limit; 0 removes it. A limit below what is in use is
// refused with a *BudgetError, a value out of range with an *InvalidError.
func (r *Registry) SetBudget(peer, application string, limit float64) error {
	r.write.Lock()
	defer r.write.Unlock()
	s := r.book.stage()
	entry := Entry{Peer: peer, Application: application, Value: limit, What: WhatBudget,
		Previous: r.book.apps[application].Limit.Float()}
	err := CheckApplication(application)
	if err == nil {
		var w Weight
		if w, err = LimitFromFloat(limit); err == nil {
			entry.Value = w.Float()
			_, err = s.limit(application, w)
		}
	}
	return r.finish(s, []Entry{entry}, err)
}

// Configure takes the budgets of a configuration, all or none. A limit is changed when the
// configuration's value differs from the one it gave before, so a live SetBudget stands until
// the configuration itself changes; an application that the configuration no longer names
// loses its limit. source, such as "configuration fabric.yaml", is the peer in the audit log.
func (r *Registry) Configure(source string, limits map[string]float64) error {
	r.write.Lock()
	defer r.write.Unlock()
	s, entries, err := r.configured(source, limits)
	if len(entries) == 0 {
		return err
	}
	return r.finish(s, entries, err)
}

// CheckBudgets returns the error that Configure would give now, and changes nothing.
func (r *Registry) CheckBudgets(limits map[string]float64) error {
	r.write.Lock()
	defer r.write.Unlock()
	_, _, err := r.configured("", limits)
	return err
}

// configured stages a configuration's budgets. On a fault it returns the entry of that one.
func (r *Registry) configured(source string, limits map[string]float64) (*stage, []Entry, error) {
	s := r.book.stage()
	var entries []Entry
	set := func(name string, limit Weight) error {
		a := s.app(name)
		if a.Configured == limit {
			return nil
		}
		e := Entry{Peer: source, Application: name, Previous: a.Limit.Float(), Value: limit.Float(), What: WhatBudget}
		if _, err := s.limit(name, limit); err != nil {
			entries = []Entry{e}
			return err
		}
		a = s.app(name)
		a.Configured = limit
		s.apps[name] = a
		entries = append(entries, e)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		err := CheckApplication(name)
		var w Weight
		if err == nil {
			w, err = LimitFromFloat(limits[name])
		}
		if err != nil {
			e := Entry{Peer: source, Application: name, Value: limits[name], What: WhatBudget}
			return s, []Entry{e}, fmt.Errorf("budget of application %q: %w", name, err)
		}
		if err := set(name, w); err != nil {
			return s, entries, err
		}
	}
	for _, a := range r.book.budgets() {
		if _, named := limits[a.Application]; !named && a.Configured != 0 {
			if err := set(a.Application, 0); err != nil {
				return s, entries, err
			}
		}
	}
	return s, entries, nil
}
