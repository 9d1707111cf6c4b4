package standalone

import "testing"

// GOGC and GOMEMLIMIT, if set, replace the spare heap.
func TestSpareHeap(t *testing.T) {
	for _, tt := range []struct {
		gogc, limit string
		want        int
	}{{"", "", spareBytes}, {"100", "", 0}, {"", "1GiB", 0}} {
		t.Setenv("GOGC", tt.gogc)
		t.Setenv("GOMEMLIMIT", tt.limit)
		if got := len(spareHeap()); got != tt.want {
			t.Errorf("GOGC=%s GOMEMLIMIT=%s: %d bytes, want %d", tt.gogc, tt.limit, got, tt.want)
		}
	}
}
