package reference

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/keydoc"
)

var update = flag.Bool("update", false, "rewrite keys.json and docs/reference/keys.md")

const docs = "../../../docs/reference/"

// The committed files equal those generated from the sources.
func TestCommitted(t *testing.T) {
	keys, err := Keys()
	if err != nil {
		t.Fatal(err)
	}
	texts, faults := descriptions(keys)
	for _, f := range faults {
		t.Error(f)
	}
	for i, k := range keys {
		keys[i].Description = texts[keydoc.Plain(k.Path)] // it may be missing in keys.json
	}
	for name, text := range map[string]string{
		"keys.json": encode(t, texts), docs + "keys.md": draw(keys),
		docs + "fabric.schema.json": encode(t, Schema(keys, "")), docs + "policy.schema.json": encode(t, Schema(keys, Policy)),
	} {
		if *update {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := os.ReadFile(name); err != nil || string(is) != text {
			t.Errorf("%s is not what the configuration's types say (%v): go test ./controller/config/reference -update", name, err)
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The schema has each key at the same place as the files.
func TestSchema(t *testing.T) {
	keys, err := Keys()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		path, below := strings.CutPrefix(k.Path, Policy+".")
		if k.Path == Policy {
			continue
		}
		s := Schema(keys, map[bool]string{true: Policy}[below])
		at := &s
		for name := range strings.SplitSeq(path, ".") {
			name, list := strings.CutSuffix(name, "[]")
			if at = at.Properties[name]; at == nil {
				t.Fatalf("%s: not in the schema", k.Path)
			}
			if list {
				at = at.Items
			}
		}
		if at.Description == "" && !k.Holds || at.Type == nil && at.Enum == nil {
			t.Errorf("%s: %+v", k.Path, at)
		}
	}
}

// A key without a comment is an error, and so is a computed default that its comment does not
// mention.
func TestDescribedBites(t *testing.T) {
	_, faults := descriptions([]keydoc.Key{
		{Path: "scale"}, {Path: "colour"}, {Path: "links[].colour"}, {Path: "soze.colour"}, {Path: "nothing", Holds: true},
		{Path: "switches[].device_id", Default: keydoc.Computed},
	})
	if got, want := fmt.Sprint(faults), "[colour links[].colour soze.colour switches[].device_id]"; firstWords(faults) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func firstWords(errs []error) string {
	var words []string
	for _, err := range errs {
		word, _, _ := strings.Cut(err.Error(), ":")
		words = append(words, word)
	}
	return fmt.Sprint(words)
}

func TestKeys(t *testing.T) {
	keys, err := Keys()
	if err != nil || len(keys) < 100 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, want := range []keydoc.Key{
		{Path: "name", Default: keydoc.Required, Allowed: "a word"},
		{Path: "scale", Default: "1", Allowed: "an integer from 1 to 1000000"},
		{Path: "controller.poll_interval", Default: "100ms", Allowed: "a time, off, or 1ms to 3600s"},
		{Path: "controller.probe_timeout", Default: keydoc.Computed, Allowed: "a time"},
		{Path: "controller.state", Default: keydoc.None, Allowed: "a text"},
		{Path: "controller.cluster.members[].raft", Default: keydoc.None, Allowed: "host:port"},
		{Path: "switches[].cpu_port", Default: keydoc.Computed},
		{Path: "switches[].target", Default: "bmv2", Allowed: "one of bmv2, embedded"},
		{Path: "soze.shift", Default: keydoc.Computed, Allowed: "an integer from 0"},
		{Path: "buffer.lossless", Default: keydoc.None, Allowed: "a list, of each an integer from 0 to 7"},
		{Path: "buffer.watchdog.storm", Default: keydoc.Computed},
		{Path: "prioplus.base_rtt", Default: keydoc.Required},
		{Path: "qos.classes[].queue", Default: keydoc.Computed},
		{Path: "policy.grants[].who", Default: keydoc.Required, Allowed: "spiffe://"},
		{Path: "policy.grants[].role", Default: keydoc.Required, Allowed: "one of viewer"},
		{Path: "policy.limits.rate", Default: "2000"},
		{Path: "policy.oidc.claim", Default: "sub"},
		{Path: "switches[].buffer.dsh.window", Default: "that of buffer.dsh.window", Allowed: "a time"},
	} {
		got, _, ok := keydoc.Find(keys, want.Path)
		if !ok || got.Default != want.Default || !strings.HasPrefix(got.Allowed, want.Allowed) || got.Description == "" {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for path, want := range map[string]int{"source_check": 1, "links": 6, "controller.cluster.tls": 3, "scale": 0, "policy.oidc": 4, "nothing": 0} {
		if _, below, _ := keydoc.Find(keys, path); len(below) != want {
			t.Errorf("%s: %d keys below, want %d", path, len(below), want)
		}
	}
}
