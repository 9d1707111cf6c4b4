// Package symbolic compares switches with P4's semantics. It replays test cases that p4testgen
// makes from Headgate's P4 program by symbolic execution, without any switch: entries, a frame,
// and the expected result. TestSymbolic (make test-symbolic) makes new cases and plays them on the
// embedded switch and on BMv2. TestSelection plays the cases kept in testdata.
package symbolic

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/embedded"
	"github.com/headgate/headgate/tests/dataplane/target"
)

var (
	tests  = flag.Int("tests", 40, "attempts of each search; the tool may give up some")
	limit  = flag.Duration("limit", 5*time.Minute, "time that each search may take")
	files  = flag.String("files", "", "folder for what the searches write; what it has of an earlier time is replayed")
	only   = flag.String("search", "", "the searches to make, with commas between; all without it")
	update = flag.Int("update", 0, "put a selection of so many of the new cases into testdata, in place of those of the same searches")
)

const kept = "testdata/cases.jsonl"

// incomparable returns the reason why a case cannot be compared, "" if it can.
func (c *testCase) incomparable() string {
	has := func(start, part string) bool {
		return slices.ContainsFunc(c.trace, func(t string) bool { return strings.HasPrefix(t, start) && strings.Contains(t, part) })
	}
	switch {
	case has("[MethodCall]: clone", ""):
		return "clone" // the tool does not follow it
	case has("[If Statement]", "TaintedExpression"):
		return "random" // the path depends on values that no model knows
	case c.Port == ids.CPUPort && len(c.Frame) < 2*controllerBytes:
		return "short packet-out" // P4Runtime has none
	case c.quiet() && !has("[MethodCall]: mark_to_drop", ""):
		return "no drop reason" // the tool drops frames that have left ingress
	case c.Port == ids.CPUPort || c.Port > 0 && c.Port < target.Ports:
		return ""
	}
	return "port"
}

// embeddedRig starts the embedded switch with a program.
func embeddedRig(t testing.TB, program []byte) *rig {
	t.Helper()
	s, err := embedded.StartPaused()
	if err != nil {
		t.Fatal(err)
	}
	return newRig(t, s, program)
}

func TestSymbolic(t *testing.T) {
	if os.Getenv("HEADGATE_SYMBOLIC") != "1" {
		t.Skip("runs with HEADGATE_SYMBOLIC=1 (make test-symbolic), where p4testgen is on the PATH")
	}
	if _, err := exec.LookPath(tool); err != nil {
		t.Fatalf("%v: build p4c with its tools, -DENABLE_TEST_TOOLS=ON", err)
	}
	folder := *files
	if folder == "" {
		folder = t.TempDir()
	}
	var all []testCase
	skipped, fresh := map[string]int{}, map[string]bool{}
	var together nodes
	for i := range searches {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), searches[i].name) {
			continue
		}
		fresh[searches[i].name] = true
		made, through := searches[i].run(t, folder, *tests, *limit)
		together.common(through)
		fmt.Printf("search %s, seed %d: %d cases through %v, together %v\n", searches[i].name, searches[i].seed, len(made), through, together)
		for _, c := range made {
			if why := c.incomparable(); why != "" {
				skipped[why]++
				continue
			}
			all = append(all, c)
			s, ok, err := spread(c)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				all = append(all, s)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("the searches made no case")
	}
	targets := map[string]*rig{"embedded switch": embeddedRig(t, p4src.JSON())}
	if err := bmv2.Look(bmv2.Command); err == nil {
		targets["BMv2"] = newRig(t, bmv2.Start(t), p4src.JSON())
	} else {
		fmt.Println(err)
	}
	good := map[string]int{}
	var keep []testCase
	for i := range all {
		c := &all[i]
		wrong := 0
		for name, r := range targets {
			o, err := r.play(c)
			if err != nil {
				t.Fatalf("%s, %s: %v", c.Name, name, err)
			}
			if diff := c.check(o); diff != "" {
				wrong++
				t.Errorf("%s, %s: %s", c.Name, name, diff)
			} else {
				good[name]++
			}
		}
		if wrong == 0 {
			keep = append(keep, *c)
		}
	}
	fmt.Printf("%d cases replayed, as the tool says: %v; not comparable: %v\n", len(all), good, skipped)
	if *update > 0 {
		rest := slices.DeleteFunc(selection(t), func(c testCase) bool {
			name, _, _ := strings.Cut(c.Name, "_")
			return fresh[name]
		})
		if err := write(kept, append(rest, choose(keep, *update)...)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestIncomparable(t *testing.T) {
	for _, c := range []struct {
		testCase
		want string
	}{
		{testCase{Port: 1, Drop: "ttl"}, ""},
		{testCase{Port: 1}, "no drop reason"},
		{testCase{Port: 1, trace: []string{"[MethodCall]: mark_to_drop(standard);"}}, ""},
		{testCase{Port: target.Ports, Drop: "ttl"}, "port"},
		{testCase{Port: ids.CPUPort, Frame: "00", Drop: "packet_out"}, "short packet-out"},
		{testCase{Port: 1, Drop: "ttl", trace: []string{"[MethodCall]: clone(1, 254);"}}, "clone"},
		{testCase{Port: 1, Drop: "ttl", trace: []string{"[If Statement]: a < b Condition: TaintedExpression(bit<1>); Result: true"}}, "random"},
	} {
		if got := c.incomparable(); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.testCase, got, c.want)
		}
	}
}
