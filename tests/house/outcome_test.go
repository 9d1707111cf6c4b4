package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// notMade are words that claim that a change was not made.
var notMade = regexp.MustCompile(`(?i)nothing (was|is|has been) (changed|made|applied|confirmed|kept|saved|stored|replaced|done)|\bstays as it is\b|\bunchanged\b|\b(was|were) not (made|changed|applied|kept|saved|stored|replaced|set)\b`)

// certain are the texts that know this for another reason than the state store's answer.
var certain = map[string]string{
	"controller/state/outcome/request.go": "FromStore, which has checked whether that is known",
}

// claims returns the texts in a file that claim that a change was not made.
func claims(t *testing.T, name string, text any) (out []string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && notMade.MatchString(l.Value) {
			out = append(out, fmt.Sprintf("%v: %s", set.Position(l.Pos()), l.Value))
		}
		return true
	})
	return out
}

// TestWhoSaysThatNothingChanged: a change with an unknown outcome may have been made. So only outcome.FromStore may claim
// that a change that the store did not acknowledge was not made.
func TestWhoSaysThatNothingChanged(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "controller/*.go", "hosts/*.go", "internal/*.go", "cli/*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		list := claims(t, "../../"+name, nil)
		if certain[name] != "" {
			found[name] = len(list) > 0
			continue
		}
		for _, c := range list {
			t.Errorf("%s: let outcome.FromStore say that", c)
		}
	}
	for name := range certain {
		if !found[name] {
			t.Errorf("%s says nothing of that kind: take it out of the list", name)
		}
	}
}

func TestClaimsBite(t *testing.T) {
	for text, want := range map[string]int{`"nothing was changed: %w"`: 1, `"the link %s stays as it is"`: 1, `"member %s was not replaced"`: 1, `"the outcome is unknown"`: 0} {
		if got := claims(t, "x.go", "package x\nvar v = "+text); len(got) != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
