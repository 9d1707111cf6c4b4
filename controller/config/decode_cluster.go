package config

import (
	"slices"
	"time"

	"github.com/headgate/headgate/internal/yamlnode"
)

func readCluster(m *yamlnode.Map) Cluster {
	m.Need("members")
	v := Cluster{Etcd: m.Texts("etcd"), Lease: m.Wall("lease", MinLease, MinLease, time.Minute)}
	v.Members = yamlnode.List(m, "members", func(m *yamlnode.Map) Member {
		m.Need("name", "relay")
		m.NeedIf(len(v.Etcd) == 0, "raft")
		return Member{Name: m.Word("name", ""), Raft: m.HostPort("raft", ""), Relay: m.HostPort("relay", "")}
	})
	if n := len(v.Members); !slices.Contains([]int{1, 3, 5, 7}, n) {
		m.Fault("members", "has %d, want 1, 3, 5 or 7: an even number bears no more failures than one less", n)
	}
	if v.Lease%time.Second != 0 {
		m.Fault("lease", "is %v, want whole seconds", v.Lease)
	}
	seen := map[string]bool{"": true}
	for _, e := range v.Members {
		for _, s := range []string{e.Name, e.Raft, e.Relay} {
			if s != "" && seen[s] {
				m.Fault("members", "has %q twice: want a name, a raft and a relay address for each member", s)
			}
			seen[s] = true
		}
	}
	m.Sub("tls", func(m *yamlnode.Map) {
		m.Need("ca", "cert", "key")
		v.TLS = TLS{CA: m.Text("ca", ""), Cert: m.Text("cert", ""), Key: m.Text("key", "")}
	})
	return v
}

// Member returns a member by its name; false when there is none.
func (c *Cluster) Member(name string) (Member, bool) {
	for _, m := range c.Members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}
