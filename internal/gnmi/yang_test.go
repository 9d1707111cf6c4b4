package gnmi

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
)

// everything is a switch with a value for each leaf.
func everything() *fake {
	known := map[*Leaf]any{
		Type: Ethernet, Description: "h1", AdminStatus: Up, OperStatus: Up, ID: uint32(1), MTU: uint32(1514), Victim: true, PeerPaused: false, Storm: true,
	}
	keys := map[string]string{"port": "1", "queue": "7", "class": "3", "pool": "headroom", "reason": "queue-full"}
	state := State{Target: "leaf1"}
	for _, l := range Leaves {
		v := Value{Leaf: l, Is: known[l]}
		for i, kind := range l.keys {
			v.Of[i] = keys[kind]
		}
		if v.Is == nil {
			v.Is = uint64(1) << 60
		}
		if len(l.keys) == 0 || l.names[len(l.keys)-1] != l {
			state.Values = append(state.Values, v)
		}
	}
	return &fake{states: []State{state}}
}

// TestYANG checks the served leaves against the models: ours, and OpenConfig's. OpenConfig's come from testdata,
// or, with OPENCONFIG, from a checkout of github.com/openconfig/public.
func TestYANG(t *testing.T) {
	lint, err := exec.LookPath("yanglint")
	if err != nil {
		t.Skip("yanglint is not there: install the Debian package libyang-tools")
	}
	dirs := []string{"testdata/yang"}
	if public := os.Getenv("OPENCONFIG"); public != "" {
		dirs = []string{public + "/release/models", public + "/third_party/ietf"}
		files, _ := filepath.Glob(public + "/release/models/*/*.yang")
		for _, f := range files {
			dirs = append(dirs, filepath.Dir(f))
		}
		dirs = slices.Compact(dirs)
	}
	args := []string{"-t", "get", "-f", "json"}
	for _, dir := range append(dirs, "../../api") {
		args = append(args, "-p", dir)
		for _, m := range append([]*gpb.ModelData{{Name: "iana-if-type"}}, models...) {
			if file := filepath.Join(dir, m.GetName()+".yang"); exists(file) {
				args = append(args, file)
			}
		}
	}
	got, err := (&server{source: everything()}).Get(t.Context(), &gpb.GetRequest{Encoding: gpb.Encoding_JSON_IETF})
	if err != nil {
		t.Fatal(err)
	}
	data := got.GetNotification()[0].GetUpdate()[0].GetVal().GetJsonIetfVal()
	const large = "1152921504606846976"
	for name, c := range map[string]struct {
		data  []byte
		valid bool
	}{
		"what is served":     {data, true},
		"a leaf of no model": {bytes.Replace(data, []byte(`"headroom-bytes"`), []byte(`"headroom-byte"`), 1), false},
		"another type":       {bytes.Replace(data, []byte(`"victim":true`), []byte(`"victim":7`), 1), false},
		"a number as text":   {bytes.Replace(data, []byte(`"openconfig-p4rt:id":1`), []byte(`"openconfig-p4rt:id":"1"`), 1), false},
	} {
		file := filepath.Join(t.TempDir(), "data.json")
		if err := os.WriteFile(file, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		text, err := exec.Command(lint, append(args, file)...).CombinedOutput()
		if (err == nil) != c.valid || c.valid && strings.Count(string(text), large) != strings.Count(string(data), large) {
			t.Errorf("%s: %v\n%s\n%s", name, err, c.data, text)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
