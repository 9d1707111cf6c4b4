package store

import (
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/tests/lag"
)

// BenchmarkFlows registers as many flows as a registry takes, for an application without a budget.
// It reports the memory per flow, including the store's copy and the audit log.
func BenchmarkFlows(b *testing.B) {
	for b.Loop() {
		before := lag.Heap()
		s, err := Open(filepath.Join(b.TempDir(), "state.db"), Options{})
		if err != nil {
			b.Fatal(err)
		}
		r := weights.New(weights.Options{Keeper: s, Audit: audit.New(audit.Options{})})
		changes := make([]weights.Change, 1024)
		for i := range weights.MaxFlows / len(changes) {
			for j := range changes {
				k, err := weights.NewKey("10.0.0.1", "10.0.0.2", uint32(1+i), uint32(1+j))
				if err != nil {
					b.Fatal(err)
				}
				changes[j] = weights.Change{Key: k, Weight: 1}
			}
			if _, err := r.Set(weights.Caller{}, changes...); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(lag.Heap()-before)/weights.MaxFlows, "B/flow")
		if r.Stats().Flows != weights.MaxFlows {
			b.Fatal(r.Stats())
		}
		_ = s.Close()
	}
}
