package operator

import (
	"bytes"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct{ args, want, fails string }{
		{"links.rate", "links[].rate: a rate, 1bps to 1000000Gbps\ndefault: required\n\n`rate` in this fabric", ""},
		{"links[].rate", "links[].rate: a rate", ""},
		{"controller.cluster", "controller.cluster.lease    2s", ""},
		{"", "controller", ""},
		{"links.rate -o json", `"key": "links[].rate"`, ""},
		{"controller.tls -o yaml", "key: controller.tls.client_ca", ""},
		{"links.colour", "", `"links.colour" is no key: links has no "colour", want one of a, b, rate, delay, mac, name`},
		{"colour", "", `the fabric file has no "colour", want one of name, scale`},
		{"a.b.c", "", `"a.b.c" is no key: want one of name, scale`},
	} {
		root, out := newRoot(), &bytes.Buffer{}
		root.SetOut(out)
		root.SilenceUsage, root.SilenceErrors = true, true
		root.SetArgs(append([]string{"explain"}, strings.Fields(c.args)...))
		err := root.Execute()
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v, want %q", c.args, err, c.fails)
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s:\n%s\nwant %q", c.args, out, c.want)
		}
	}
}
