package headgatev1

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReasonsAreDocumented: docs/api/grpc.md lists exactly the reasons of reason.go.
func TestReasonsAreDocumented(t *testing.T) {
	all := func(file, pattern string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			words = append(words, m[1])
		}
		return strings.Join(words, " ")
	}
	code, page := all("reason.go", `(?m)^\tReason\w+ += "([A-Z_]+)"$`), all("../../../docs/api/grpc.md", "(?m)^\\| `([A-Z_]+)` \\|")
	if code == "" || code != page {
		t.Errorf("reason.go has %s\ndocs/api/grpc.md has %s", code, page)
	}
}
