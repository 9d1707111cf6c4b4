package faults

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

//go:embed paused.sh
var pausedScript string

// TestFlapWhilePaused: the cable between two lossless switches fails ten times while one switch has paused the
// other. Within a minute the flows have their rate again. The port that came back does not know of its pause;
// drops for lack of room because of that are reported.
func TestFlapWhilePaused(t *testing.T) {
	text, log, late := execute(t, pausedScript, "embedded", "awk")
	number := func(name string) (values [2]float64) {
		t.Helper()
		line := regexp.MustCompile(`(?m)^` + name + ` (.*)$`).FindStringSubmatch(text)
		if line == nil {
			t.Fatalf("%s is missing:\n%s", name, text)
		}
		_, _ = fmt.Sscan(line[1], &values[0], &values[1]) // a second one if there is one
		return values
	}
	before, after, calm, dropped := number("before")[0], number("after")[0], number("dropped-before"), number("dropped")
	t.Logf("%.2f Mb/s before, %.2f after, %v s after the last flap; leaf1 dropped %v lossless packets, leaf2 %v; PAUSE frames %v",
		before*8/3e6, after*8/3e6, number("recovered")[0], dropped[0], dropped[1], number("pauses"))
	if calm != [2]float64{} && late < 20*time.Millisecond {
		t.Errorf("%v lossless packets were dropped before the first flap", calm)
	}
	if before == 0 || after < before/2 {
		t.Errorf("the flows have not recovered:\n%s", text)
	}
	if dropped != [2]float64{} && !strings.Contains(log, "event=buffer.lossless_drop") {
		t.Error("lossless packets were dropped, and nobody said so")
	}
}
