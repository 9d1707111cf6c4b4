package weights

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/state/outcome"
	"github.com/headgate/headgate/internal/yamlnode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(n int) Key {
	k, err := NewKey("10.0.0.1", "10.0.0.2", uint32(1000+n), 50151)
	if err != nil {
		panic(err)
	}
	return k
}

var clock = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t testing.TB, k Keeper) *Registry {
	t.Helper()
	r := New(Options{Keeper: k, Audit: audit.New(audit.Options{Now: func() time.Time { return clock }})})
	return r
}

func mustSet(t testing.TB, r *Registry, n int, app string, w float64) {
	t.Helper()
	if _, err := r.Set(Caller{Peer: "test"}, Change{key(n), w, app}); err != nil {
		t.Fatal(err)
	}
}

func TestSetRefuses(t *testing.T) {
	full := func(t *testing.T) *Registry {
		r := open(t, nil)
		mustSet(t, r, 1, "shuffle", 6)
		mustSet(t, r, 2, "shuffle", 1.5)
		if err := r.SetBudget(Caller{Peer: "test"}, "shuffle", 10); err != nil {
			t.Fatal(err)
		}
		return r
	}
	one := func(c Change) []Change { return []Change{c} }
	tests := []struct {
		name    string
		changes []Change
		want    string
	}{
		{"zero", one(Change{key(3), 0, ""}), "weight: 0 is not allowed: want a finite number from 0.000001 to 1000000"},
		{"negative", one(Change{key(3), -1, ""}), "weight: -1 is"},
		{"NaN", one(Change{key(3), math.NaN(), ""}), "weight: NaN is"},
		{"infinite", one(Change{key(3), math.Inf(1), ""}), "weight: +Inf is"},
		{"minus infinite", one(Change{key(3), math.Inf(-1), ""}), "weight: -Inf is"},
		{"too small", one(Change{key(3), 1e-7, ""}), "weight: 1e-07 is"},
		{"too large", one(Change{key(3), 1e7, ""}), "weight: 1e+07 is"},
		{"application's name", one(Change{key(3), 1, "a b"}), `application: "a b" is not allowed`},
		{"no flow", one(Change{Key{}, 1, ""}), `flow: "" is not allowed`},
		{"over budget", one(Change{key(3), 3, "shuffle"}),
			`application "shuffle" is over its budget: in use 7.5 - before 0 + asked 3 = 10.5 > limit 10; at most 2.5 can be asked`},
		{"own weight counts once", one(Change{key(1), 8.6, ""}),
			`in use 7.5 - before 6 + asked 8.6 = 10.1 > limit 10; at most 8.5 can be asked`},
		{"all or nothing", []Change{{key(2), 1, ""}, {key(3), 3.1, "shuffle"}}, "in use 7.5 - before 1.5 + asked 4.1 = 10.1"},
		{"one flow twice", []Change{{key(3), 1, "shuffle"}, {key(3), 3, ""}}, "asked 3 = 10.5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := full(t)
			before := r.Flows("")
			_, err := r.Set(Caller{Peer: "10.9.9.9:1"}, tt.changes...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error = %v, want %q", err, tt.want)
			}
			if after := r.Flows(""); len(after) != len(before) || after[0] != before[0] || after[1] != before[1] {
				t.Errorf("flows changed from %v to %v", before, after)
			}
			entries := r.audit.List("", 100)
			e := entries[len(entries)-1]
			if e.Refused != err.Error() || e.Peer != "10.9.9.9:1" || !e.Time.Equal(clock) || e.What != audit.Weight {
				t.Errorf("audit = %+v", e)
			}
			if e.Flow != tt.changes[0].Key.String() {
				t.Errorf("audit names flow %v", e.Flow)
			}
		})
	}
}

func TestBudgetsAreExact(t *testing.T) {
	r := open(t, nil)
	if err := r.SetBudget(Caller{Peer: "test"}, "a", 0.3); err != nil {
		t.Fatal(err)
	}
	mustSet(t, r, 1, "a", 0.1)
	mustSet(t, r, 2, "a", 0.2) // 0.1 + 0.2 > 0.3 in binary floating point
	if b := r.Budgets()[0]; b.Used != b.Limit || b.Flows != 2 {
		t.Errorf("budget = %+v", b)
	}
	// Weight moves between an application's flows in one step, in any order.
	if _, err := r.Set(Caller{Peer: "test"}, Change{key(1), 0.25, ""}, Change{key(2), 0.05, ""}); err != nil {
		t.Error(err)
	}
}

// TestUnknownApplication: once one application has a budget, applications without one get no more
// weight.
func TestUnknownApplication(t *testing.T) {
	r := open(t, nil)
	mustSet(t, r, 1, "early", 2)
	if _, err := r.Configure(budgets(map[string]float64{"a": 10, "b": 5})); err != nil {
		t.Fatal(err)
	}
	var unknown *UnknownApplicationError
	for _, app := range []string{"nosuch", "early", ""} {
		_, err := r.Set(Caller{Peer: "test"}, Change{Key: key(2), Weight: 50000, Application: app})
		if !errors.As(err, &unknown) || unknown.Application != cmp.Or(app, "default") || !strings.Contains(err.Error(), "one of a, b") {
			t.Errorf("%q: %v", app, err)
		}
	}
	mustSet(t, r, 1, "early", 1) // existing weight may fall
	mustSet(t, r, 2, "a", 3)
	if answers, err := r.Report(Caller{Peer: "peer"}, "h1", []Change{{Key: key(3), Weight: 1, Application: "nosuch"}}); err != nil || !errors.As(answers[0].Refused, &unknown) {
		t.Errorf("a host's report: %+v, %v", answers, err)
	}
	if err := r.SetBudget(Caller{Peer: "operator"}, "nosuch", 7); err != nil {
		t.Fatal(err)
	}
	mustSet(t, r, 3, "nosuch", 7)
	if _, err := r.Configure(budgets(nil)); err != nil {
		t.Fatal(err)
	}
	if err := r.SetBudget(Caller{Peer: "operator"}, "nosuch", 0); err != nil {
		t.Fatal(err)
	}
	mustSet(t, r, 4, "anything", 7) // no application has a budget any more
}

func TestApplicationAndDelete(t *testing.T) {
	r := open(t, nil)
	mustSet(t, r, 1, "", 2)
	mustSet(t, r, 1, "a", 3)
	mustSet(t, r, 1, "", 4)
	if f, ok := r.Flow(key(1)); !ok || f.Application != "a" || f.Weight != 4*One {
		t.Errorf("flow = %+v", f)
	}
	if b := r.Budgets(); len(b) != 1 || b[0].Used != 4*One {
		t.Errorf("budgets = %+v", b)
	}
	if err := r.Delete(Caller{Peer: "test"}, key(1)); err != nil {
		t.Error(err)
	}
	if err := r.Delete(Caller{Peer: "test"}, key(1)); !errors.Is(err, ErrUnknownFlow) {
		t.Errorf("error = %v", err)
	}
	if b := r.Budgets(); len(b) != 0 {
		t.Errorf("budgets = %+v", b)
	}
	if e := r.audit.List("a", 2); len(e) != 2 || e[1].What != audit.Delete || e[1].Previous != 4 || e[0].Value != 4 {
		t.Errorf("audit = %+v", e)
	}
}

func TestSetBudget(t *testing.T) {
	r := open(t, nil)
	mustSet(t, r, 1, "a", 5)
	for _, tt := range []struct {
		limit float64
		want  string
	}{
		{4, `application "a": a budget of 4 is below the 5 in use`},
		{-1, "limit: -1 is not allowed"}, {math.NaN(), "limit: NaN"}, {math.Inf(1), "limit: +Inf"}, {2e9, "limit: 2e+09"},
		{5, ""}, {0, ""},
	} {
		err := r.SetBudget(Caller{Peer: "test"}, "a", tt.limit)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("limit %v: error = %v, want %q", tt.limit, err, tt.want)
		}
	}
	if err := r.SetBudget(Caller{Peer: "test"}, "", 1); err == nil {
		t.Error("a budget without an application was accepted")
	}
	if got := r.Stats(); got.Changes != 3 || got.Refusals != 6 {
		t.Errorf("stats = %+v", got)
	}
}

// budgets returns a configuration with these applications, ordered by name.
func budgets(limits map[string]float64) *config.Config {
	c := &config.Config{File: "fabric.yaml"}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		c.Applications = append(c.Applications, config.Application{Name: name, Budget: limits[name]})
	}
	return c
}

func TestConfigure(t *testing.T) {
	r := open(t, nil)
	limits := func() map[string]float64 {
		out := map[string]float64{}
		for _, b := range r.Budgets() {
			out[b.Application] = b.Limit.Float()
		}
		return out
	}
	step := func(name string, config map[string]float64, want map[string]float64) (undo func()) {
		t.Helper()
		if err := r.Check(budgets(config)); err != nil {
			t.Fatalf("%s: check: %v", name, err)
		}
		undo, err := r.Configure(budgets(config))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := limits(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: limits = %v, want %v", name, got, want)
		}
		return undo
	}
	type m = map[string]float64
	step("first", m{"a": 10, "b": 5}, m{"a": 10, "b": 5})
	if err := r.SetBudget(Caller{Peer: "operator"}, "a", 12); err != nil {
		t.Fatal(err)
	}
	step("a live change stands", m{"a": 10, "b": 5}, m{"a": 12, "b": 5})
	step("not applied", m{"a": 20, "c": 1}, m{"a": 20, "c": 1})()
	step("so all is as it was", m{"a": 10, "b": 5}, m{"a": 12, "b": 5})
	step("until the configuration changes", m{"a": 11, "b": 5}, m{"a": 11, "b": 5})
	step("an application that is gone loses its limit", m{"a": 11}, m{"a": 11})
	mustSet(t, r, 1, "a", 9)
	var fault yamlnode.Fault
	for _, bad := range []m{{"a": 8, "c": 1}, {"a": math.NaN(), "d": 1}} {
		audited := len(r.audit.List("", 100))
		if r.Check(budgets(bad)) == nil || len(r.audit.List("", 100)) != audited {
			t.Errorf("%v: Check took it, or left a trace", bad)
		}
		if _, err := r.Configure(budgets(bad)); !errors.As(err, &fault) || fault.Field != "applications[0].budget" || len(limits()) != 1 || limits()["a"] != 11 {
			t.Errorf("%v: error = %v, limits = %v", bad, err, limits())
		}
	}
}

func TestReport(t *testing.T) {
	r := open(t, nil)
	if err := r.SetBudget(Caller{Peer: "test"}, "a", 3); err != nil {
		t.Fatal(err)
	}
	report := func(flows ...Change) []Answer {
		t.Helper()
		a, err := r.Report(Caller{Peer: "peer"}, "h1", flows)
		if err != nil || len(a) != len(flows) {
			t.Fatalf("answers = %v, %v", a, err)
		}
		return a
	}
	mustSet(t, r, 1, "a", 1)
	a := report(Change{key(1), 9, "b"}, Change{key(2), 2, "a"}, Change{key(3), 1, "a"}, Change{key(4), math.NaN(), "a"})
	if a[0].Refused != nil || a[0].Flow.Weight != One || a[0].Flow.Application != "a" || a[0].Flow.Host != "" {
		t.Errorf("known flow: %+v", a[0])
	}
	if a[1].Refused != nil || a[1].Flow.Weight != 2*One || a[1].Flow.Host != "h1" {
		t.Errorf("new flow: %+v", a[1])
	}
	var budget *BudgetError
	var invalid *InvalidError
	if !errors.As(a[2].Refused, &budget) || !errors.As(a[3].Refused, &invalid) {
		t.Errorf("refused: %v, %v", a[2].Refused, a[3].Refused)
	}
	audited := len(r.audit.List("", 100))
	report(Change{key(1), 9, "b"}, Change{key(2), 2, "a"}, Change{key(3), 1, "a"}, Change{key(4), math.NaN(), "a"})
	if n := len(r.audit.List("", 100)); n != audited {
		t.Errorf("the same refusals were logged again: %d entries, then %d", audited, n)
	}
	// Flow 2 ends and its weight goes to flow 3. Flow 1 was set by the operator and stays.
	a = report(Change{key(3), 1, "a"})
	if a[0].Refused != nil {
		t.Errorf("after flow 2 ended: %v", a[0].Refused)
	}
	if got := r.Flows(""); len(got) != 2 || got[0].Key != key(1) || got[1].Key != key(3) {
		t.Errorf("flows = %v", got)
	}
	// A host's flow stays the host's after an operator changes it.
	mustSet(t, r, 3, "", 2)
	if got := report(Change{key(3), 1, "a"}); got[0].Flow.Weight != 2*One {
		t.Errorf("answer = %+v", got[0])
	}
	report()
	if got := r.Flows(""); len(got) != 1 {
		t.Errorf("flows = %v", got)
	}
}

type failing struct{ err error }

func (f *failing) LoadWeights() State         { return State{} }
func (f *failing) CommitWeights(Commit) error { return f.err }

func TestNothingChangesWhenTheKeeperFails(t *testing.T) {
	k := &failing{}
	r := open(t, k)
	mustSet(t, r, 1, "a", 1)
	k.err = errors.New("disk full")
	var keep *outcome.NotMadeError
	if _, err := r.Set(Caller{Peer: "test"}, Change{key(2), 1, "a"}); !errors.As(err, &keep) || !errors.Is(err, k.err) {
		t.Errorf("Set: %v", err)
	}
	if _, err := r.Report(Caller{Peer: "test"}, "h", []Change{{key(2), 1, "a"}}); !errors.As(err, &keep) {
		t.Errorf("Report: %v", err)
	}
	if err := r.Delete(Caller{Peer: "test"}, key(1)); !errors.As(err, &keep) {
		t.Errorf("Delete: %v", err)
	}
	if err := r.SetBudget(Caller{Peer: "test"}, "a", 7); !errors.As(err, &keep) {
		t.Errorf("SetBudget: %v", err)
	}
	if f := r.Flows(""); len(f) != 1 || r.Budgets()[0].Limit != 0 || len(r.audit.List("", 9)) != 1 {
		t.Errorf("flows = %v, budgets = %v", f, r.Budgets())
	}
}

// model is the simplest implementation of the registry's contract.
type model struct {
	flows  map[int]Flow
	limits map[string]Weight
}

func (m *model) sum(app string) (sum Weight) {
	for _, f := range m.flows {
		if f.Application == app {
			sum += f.Weight
		}
	}
	return sum
}

func (m *model) named() bool {
	for _, l := range m.limits {
		if l != 0 {
			return true
		}
	}
	return false
}

// After any sequence of operations the registry agrees with the model, and no sum is over its budget.
func TestRegistryAgainstModel(t *testing.T) {
	apps := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		r := New(Options{})
		m := &model{flows: map[int]Flow{}, limits: map[string]Weight{}}
		tenths := func(name string) float64 { return float64(rapid.IntRange(-1, 30).Draw(t, name)) / 10 }
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				n, app, v := rapid.IntRange(0, 5).Draw(t, "flow"), rapid.SampledFrom(apps).Draw(t, "app"), tenths("weight")
				w := Weight(math.RoundToEven(v * float64(One)))
				old := m.flows[n]
				want := w > 0
				if before, after := m.sum(app), m.sum(app)+w; want && m.named() {
					if old.Application == app {
						after -= old.Weight
					}
					want = m.limits[app] != 0 && after <= m.limits[app] || after <= before
				}
				_, err := r.Set(Caller{Peer: "test"}, Change{key(n), v, app})
				if want != (err == nil) {
					t.Fatalf("Set: %v, want success %v", err, want)
				}
				if want {
					m.flows[n] = Flow{Key: key(n), Weight: w, Application: app}
				}
			},
			"delete": func(t *rapid.T) {
				n := rapid.IntRange(0, 5).Draw(t, "flow")
				_, known := m.flows[n]
				if err := r.Delete(Caller{Peer: "test"}, key(n)); known != (err == nil) {
					t.Fatalf("Delete: %v, known %v", err, known)
				}
				delete(m.flows, n)
			},
			"budget": func(t *rapid.T) {
				app, v := rapid.SampledFrom(apps).Draw(t, "app"), tenths("limit")
				w := Weight(math.RoundToEven(v * float64(One)))
				want := w == 0 || w >= max(m.sum(app), 1)
				if err := r.SetBudget(Caller{Peer: "test"}, app, v); want != (err == nil) {
					t.Fatalf("SetBudget: %v, want success %v", err, want)
				}
				if want {
					m.limits[app] = w
				}
			},
			"": func(t *rapid.T) {
				if got := r.Flows(""); len(got) != len(m.flows) {
					t.Fatalf("%d flows, want %d", len(got), len(m.flows))
				}
				for n, f := range m.flows {
					if got, _ := r.Flow(key(n)); got != f {
						t.Fatalf("flow %d = %v, want %v", n, got, f)
					}
				}
				for _, b := range r.Budgets() {
					if b.Used != m.sum(b.Application) || b.Limit != m.limits[b.Application] || b.Limit != 0 && b.Used > b.Limit {
						t.Fatalf("budget %+v, want use %v, limit %v", b, m.sum(b.Application), m.limits[b.Application])
					}
				}
			},
		})
	})
}

// For any order of changes and limits, no reader ever sees a sum above its budget.
func TestBudgetHoldsUnderConcurrency(t *testing.T) {
	r := open(t, nil)
	if err := r.SetBudget(Caller{Peer: "test"}, "a", 20); err != nil {
		t.Fatal(err)
	}
	var changes, readers sync.WaitGroup
	for g := range 4 {
		changes.Go(func() {
			for i := range 300 {
				switch i % 5 {
				case 4:
					_ = r.Delete(Caller{Peer: "test"}, key(i%7))
				case 3:
					_ = r.SetBudget(Caller{Peer: "test"}, "a", float64(10+(i*g)%20))
				default:
					_, _ = r.Set(Caller{Peer: "test"}, Change{key((i + g) % 7), float64(1+(i*7+g)%9) / 2, "a"})
				}
			}
		})
	}
	stop := make(chan struct{})
	readers.Go(func() {
		for {
			for _, b := range r.Budgets() {
				if b.Limit == 0 || b.Used > b.Limit {
					t.Errorf("budget %+v", b)
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	changes.Wait()
	close(stop)
	readers.Wait()
	sum := Weight(0)
	for _, f := range r.Flows("a") {
		sum += f.Weight
	}
	if b := r.Budgets()[0]; b.Used != sum {
		t.Errorf("use is %v, the flows add up to %v", b.Used, sum)
	}
}
