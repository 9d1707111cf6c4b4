package authz

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/confine"
)

// read loads a policy from a text, in a folder with a token file.
func read(t *testing.T, text string) (*policy, error) {
	t.Helper()
	dir := t.TempDir()
	for name, f := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"policy.yaml": {text, 0o644}, "tokens": {"# lab\nci aaaaaaaaaaaaaaaaaaaa\n\nops bbbbbbbbbbbbbbbbbbbbbbb\n", 0o600},
		"open": {"ci aaaaaaaaaaaaaaaaaaaa\n", 0o644}, "short": {"ci aaa\n", 0o600}, "twice": {"ci aaaaaaaaaaaaaaaaaaaa\nci bbbbbbbbbbbbbbbbbbbbbbb\n", 0o600},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(f.text), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	dirs, err := confine.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return load(&config.Config{Controller: config.Controller{Policy: "policy.yaml"}}, dirs)
}

func TestPolicyFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "is empty"},
		{"grant: []", "unknown key"},
		{"grants: [{role: admin}]", "grants[0].who: is missing"},
		{"grants: [{who: alice, role: admin}]", `grants[0].who: is "alice", want spiffe://`},
		{"grants: [{who: 'cn:a*b', role: viewer}]", "with at most one * at its end"},
		{"grants: [{who: 'uid:*', role: viewer}]", "with at most one * at its end"},
		{"grants: [{who: 'cn:alice', role: king}]", `grants[0].role: is "king"`},
		{"grants: [{who: 'cn:*', role: admin}]", "want a path before the *"},
		{"grants: [{who: 'cn:web', role: application}]", "grants[0].applications: is missing"},
		{"grants: [{who: 'cn:web', role: viewer, applications: [web]}]", "is for the roles application and host"},
		{"grants: [{who: 'cn:web', role: viewer, hosts: [h1]}]", "is for the role host"},
		{"grants: [{who: 'uid:7', role: host}]", "grants[0].hosts: is missing"},
		{"grants: []\ntokens: open", "has mode 0644, want 0600"},
		{"grants: []\ntokens: short", "short:1: want a name of its own and a token of at least 20 characters"},
		{"grants: []\ntokens: twice", "twice:2"},
		{"grants: []\ntokens: /etc/passwd", "is not in "},
		{"grants: []\noidc: {issuer: 'http://id', audience: headgate}", "want a URL with https"},
		{"grants: []\nlimits: {rate: 0}", "limits.rate"},
		{"grants: []\nlimits: {streams: 0}", "limits.streams"},
	} {
		_, err := read(t, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "controller.policy") {
			t.Errorf("%s: %v, want a fault of controller.policy with %q", c.text, err, c.want)
		}
	}
}

func TestRights(t *testing.T) {
	p, err := read(t, `
grants:
  - {who: "spiffe://lab/ops/*", role: operator}
  - {who: "spiffe://lab/host/*", role: host}
  - {who: "cn:h7.lab", role: host, hosts: [h7]}
  - {who: "cn:web", role: application, applications: [web, shop]}
  - {who: "cn:web", role: viewer}
  - {who: "uid:1001", role: viewer}
  - {who: "gid:50", role: operator}
  - {who: "cn:*", role: viewer}
tokens: tokens
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id           Identity
		roles        string
		applications string
		hosts        string
	}{
		{Identity{}, "", "", ""},
		{Identity{Name: "spiffe://lab/ops/alice"}, "operator", "", ""},
		{Identity{Name: "spiffe://lab/ops/"}, "", "", ""},
		{Identity{Name: "spiffe://lab/ops/a/b"}, "", "", ""},
		{Identity{Name: "spiffe://lab.evil/ops/alice"}, "", "", ""},
		{Identity{Name: "spiffe://lab/host/h3"}, "host", "", "h3"},
		{Identity{Name: "cn:h7.lab"}, "host viewer", "", "h7"},
		{Identity{Name: "cn:web"}, "application viewer viewer", "web shop", ""},
		{Identity{Name: "uid:1001", Group: "gid:50"}, "viewer operator", "", ""},
		{Identity{Name: "uid:1002", Group: "gid:1001"}, "", "", ""},
		{Identity{Name: "uid:1001", Owner: true}, "admin", "", ""},
		{Identity{Name: "token:web"}, "", "", ""},
	} {
		r := p.rights(c.id)
		if got := strings.ReplaceAll(names(r.roles), ",", ""); got != c.roles || strings.Join(r.applications, " ") != c.applications || strings.Join(r.hosts, " ") != c.hosts {
			t.Errorf("%v: %+v, want %q for %q as %q", c.id, r, c.roles, c.applications, c.hosts)
		}
	}
	for word, want := range map[string]string{"aaaaaaaaaaaaaaaaaaaa": "token:ci", "bbbbbbbbbbbbbbbbbbbbbbb": "token:ops", "aaaaaaaaaaaaaaaaaaa": "", "": ""} {
		if id, ok := p.static(word); id.Name != want || ok != (want != "") {
			t.Errorf("token %q is %v, %v, want %q", word, id, ok, want)
		}
	}
	if text := strings.Join(p.lines, "\n"); !slices.IsSorted(p.lines) || strings.Contains(text, "aaaa") || !strings.Contains(text, "token of ci, with fingerprint ") {
		t.Errorf("the policy's lines:\n%s", text)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add("grants: [{who: 'cn:a', role: host}]\nlimits: {rate: 1}")
	f.Add("oidc: {issuer: 'https://x', audience: y, claim: z}")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := read(t, text)
		if (p == nil) == (err == nil) {
			t.Fatalf("%v, %v", p, err)
		}
		if p != nil {
			p.rights(Identity{Name: "cn:a", Group: "gid:1"})
		}
	})
}
