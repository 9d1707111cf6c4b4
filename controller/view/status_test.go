package view

import (
	"testing"
	"time"

	"github.com/headgate/headgate/units"
)

func TestText(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct {
		value any
		want  string
	}{
		{nil, ""}, {"x", "x"}, {true, "yes"}, {false, "no"}, {uint64(8), "8"}, {1.5, "1.5"}, {1500 * units.Byte, "1.5KB"},
		{4 * time.Millisecond, "4ms"}, {time.Unix(990, 0), "10s ago"}, {now.Add(time.Hour), "0s ago"},
	} {
		if got := Text(tt.value, now); got != tt.want {
			t.Errorf("Text(%v) = %q, want %q", tt.value, got, tt.want)
		}
	}
}
