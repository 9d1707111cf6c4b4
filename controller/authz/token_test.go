package authz

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/confine"
)

// FuzzTokens: a token file is either refused, or each of its tokens identifies exactly its own
// name.
func FuzzTokens(f *testing.F) {
	for _, s := range []string{"alice 0123456789abcdef0123\n", "# none\n\nbob 0123456789abcdef0123\nbob 0123456789abcdef0124", "x y", "a\x00b 0123456789abcdef0123"} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	dirs, err := confine.New(dir)
	if err != nil {
		f.Fatal(err)
	}
	name := filepath.Join(dir, "tokens")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := readTokens(dirs, name)
		if err != nil {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		p := &policy{tokens: list}
		if _, ok := p.static(""); ok {
			t.Error("no token is somebody")
		}
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); len(words) == 2 && !strings.HasPrefix(words[0], "#") {
				if id, ok := p.static(words[1]); !ok || !strings.HasPrefix(id.Name, "token:") {
					t.Errorf("%q: %v, %v", line, id, ok)
				}
			}
		}
	})
}
