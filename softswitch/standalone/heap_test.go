package standalone

import "testing"

// The environment says when to collect, if it says anything.
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
