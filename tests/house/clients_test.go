package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unlimited are the files that open addresses under another listener's limit, with the reason.
var unlimited = map[string]string{
	"cli/operator/doctor/doctor.go": "it closes the address at once",
	"internal/service/service.go":   "its callers limit the listener",
	"hosts/nic/nic.go":              "a UDP socket has no connections",
}

// TestServersAreLimited: listeners limit their connections, and gRPC and HTTP servers bound the time that a client may
// take to begin, with package clients.
func TestServersAreLimited(t *testing.T) {
	servers := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "tests" || name == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), strings.Contains(name, "test/"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		has := func(words ...string) bool {
			for _, w := range words {
				if strings.Contains(string(text), w) {
					return true
				}
			}
			return false
		}
		if has("net.Listen(", "net.ListenTCP(", "net.ListenConfig{", "service.ListenUnix(") && unlimited[name] == "" {
			if servers++; !has("clients.Limit(") {
				t.Errorf("%s listens without clients.Limit", name)
			}
		}
		if has("grpc.NewServer(") && !has("clients.ServerOptions(", "p4rt.ServerOptions(clients.") {
			t.Errorf("%s serves gRPC without clients.ServerOptions", name)
		}
		if has("http.Server{") && !has("ReadHeaderTimeout") {
			t.Errorf("%s serves HTTP without a ReadHeaderTimeout", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if servers < 4 {
		t.Errorf("%d files listen: the test looks at the wrong place", servers)
	}
}
