package config

import (
	"strings"
	"testing"
	"time"
)

func TestCluster(t *testing.T) {
	const fabric = "name: f\nswitches: [{name: s1, device_id: 1, address: \"127.0.0.1:9559\"}]\nhosts: [{name: h1, ipv4: 10.0.0.1}]\nlinks: [{a: \"s1:1\", b: h1, rate: 1Gbps}]\n"
	const one, two, three = `{name: a, raft: "h:1", relay: "h:2"}`, `{name: b, raft: "h:3", relay: "h:4"}`, `{name: c, raft: "h:5", relay: "h:6"}`
	for _, c := range []struct{ controller, want string }{
		{`state: d, cluster: {members: [` + one + `, ` + two + `, ` + three + `], lease: 3s, tls: {ca: a, cert: b, key: c}}`, ""},
		{`cluster: {members: [{name: a, relay: "h:2"}], etcd: ["https://h:2379"]}`, ""},
		{`cluster: {members: [` + one + `]}`, "controller.state: is missing: want the folder"},
		{`state: d, cluster: {}`, "controller.cluster.members: is missing"},
		{`state: d, cluster: {members: [` + one + `, ` + two + `]}`, "has 2, want 1, 3, 5 or 7"},
		{`state: d, cluster: {members: [` + one + `, ` + one + `, ` + three + `]}`, `has "a" twice`},
		{`state: d, cluster: {members: [{name: a, relay: "h:2"}]}`, "controller.cluster.members[0].raft: is missing"},
		{`state: d, cluster: {members: [` + one + `], lease: 1s}`, "controller.cluster.lease: is"},
		{`state: d, cluster: {members: [` + one + `], lease: 2500ms}`, "is 2.5s, want whole seconds"},
		{`state: d, cluster: {members: [` + one + `], tls: {ca: a}}`, "controller.cluster.tls.cert: is missing"},
	} {
		cfg, err := Parse("f.yaml", []byte(fabric+"controller: {"+c.controller+"}\n"), nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.controller, err, c.want)
		}
		if err != nil {
			continue
		}
		if m, ok := cfg.Controller.Cluster.Member("a"); !ok || m.Relay != "h:2" || cfg.Controller.Cluster.Lease < 2*time.Second {
			t.Errorf("%s: %+v", c.controller, cfg.Controller.Cluster)
		}
	}
}
