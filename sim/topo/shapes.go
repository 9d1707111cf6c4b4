package topo

import (
	"cmp"
	"fmt"

	"github.com/headgate/headgate/units"
)

// Line describes a builder's links of one kind.
type Line struct {
	Rate  units.Rate
	Delay units.Time // propagation, one way
	// Jitter and Spread are those of Link.
	Jitter, Spread units.Time
}

// maxNodes bounds a builder's nodes; the simulator's indices hold far more, but a typing
// error in a file should not ask for a terabyte.
const (
	maxNodes = 1 << 18
	maxLinks = 1 << 20
)

func within(what string, v, low, high int) error {
	if v < low || v > high {
		return fmt.Errorf("%s: %d, want %d to %d", what, v, low, high)
	}
	return nil
}

// Star joins hosts h0, h1, … by one switch s0.
func Star(hosts int, host Line) (*Graph, error) {
	if err := within("hosts", hosts, 2, maxNodes); err != nil {
		return nil, err
	}
	g := &Graph{}
	g.addHosts(hosts, "h%d")
	s := g.addSwitches(1, "s%d")
	g.attach(s, hosts, host)
	return g, g.Check()
}

// Dumbbell joins left hosts (the first) by switch s0 and right ones by s1, and the two
// switches by trunk.
func Dumbbell(left, right int, host, trunk Line) (*Graph, error) {
	if err := cmp.Or(within("left", left, 1, maxNodes), within("right", right, 1, maxNodes)); err != nil {
		return nil, err
	}
	g := &Graph{}
	g.addHosts(left+right, "h%d")
	s := g.addSwitches(2, "s%d")
	for h := range left + right {
		at := s
		if h >= left {
			at = s + 1
		}
		g.join(h, at, host)
	}
	g.join(s, s+1, trunk)
	return g, g.Check()
}

// LeafSpine joins perLeaf hosts to each leaf and every leaf to every spine.
func LeafSpine(leaves, spines, perLeaf int, host, up Line) (*Graph, error) {
	err := cmp.Or(within("leaves", leaves, 1, 4096), within("spines", spines, 1, 4096), within("hosts_per_leaf", perLeaf, 1, 4096))
	if err == nil {
		err = cmp.Or(within("hosts", leaves*perLeaf, 2, maxNodes), within("links", leaves*(perLeaf+spines), 1, maxLinks))
	}
	if err != nil {
		return nil, err
	}
	g := &Graph{}
	g.addHosts(leaves*perLeaf, "h%d")
	leaf := g.addSwitches(leaves, "leaf%d")
	spine := g.addSwitches(spines, "spine%d")
	g.attach(leaf, perLeaf, host)
	g.joinAll(leaf, leaves, spine, spines, up)
	return g, g.Check()
}

// FatTree is the k-ary fat-tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008, §3): k
// pods of k/2 edge and k/2 aggregation switches, (k/2)² cores, k³/4 hosts.
func FatTree(k int, host, edge, core Line) (*Graph, error) {
	if k < 2 || k > 64 || k%2 != 0 {
		return nil, fmt.Errorf("k: %d, want an even number from 2 to 64", k)
	}
	half := k / 2
	g := &Graph{}
	g.addHosts(k*half*half, "h%d")
	e := g.addSwitches(k*half, "edge%d")
	a := g.addSwitches(k*half, "agg%d")
	c := g.addSwitches(half*half, "core%d")
	g.attach(e, half, host)
	for pod := range k {
		g.joinAll(e+pod*half, half, a+pod*half, half, edge)
	}
	for i := range k * half {
		g.joinAll(a+i, 1, c+i%half*half, half, core)
	}
	return g, g.Check()
}

// ClosSpec is a folded Clos of pods: in each pod every ToR joins every leaf of the pod, and
// leaf j of every pod joins the spines of plane j.
type ClosSpec struct {
	Pods, ToRs, Leaves int // ToRs and leaves per pod
	Spines             int // per plane; a plane per leaf of a pod; 0 for a single pod
	PerToR             int // hosts
	Host, Leaf, Spine  Line
}

// Clos builds a folded Clos of pods.
func Clos(s ClosSpec) (*Graph, error) {
	err := cmp.Or(within("pods", s.Pods, 1, 1024), within("tors", s.ToRs, 1, 1024), within("leaves", s.Leaves, 1, 1024),
		within("spines", s.Spines, 0, 1024), within("hosts_per_tor", s.PerToR, 1, 1024))
	if err == nil && s.Pods > 1 && s.Spines == 0 {
		err = fmt.Errorf("spines: 0, want at least 1 to join %d pods", s.Pods)
	}
	if err == nil {
		err = cmp.Or(within("hosts", s.Pods*s.ToRs*s.PerToR, 2, maxNodes), within("links", s.Pods*(s.ToRs*(s.PerToR+s.Leaves)+s.Leaves*s.Spines), 1, maxLinks))
	}
	if err != nil {
		return nil, err
	}
	g := &Graph{}
	g.addHosts(s.Pods*s.ToRs*s.PerToR, "h%d")
	t := g.addSwitches(s.Pods*s.ToRs, "tor%d")
	l := g.addSwitches(s.Pods*s.Leaves, "leaf%d")
	p := g.addSwitches(s.Leaves*s.Spines, "spine%d")
	g.attach(t, s.PerToR, s.Host)
	for pod := range s.Pods {
		g.joinAll(t+pod*s.ToRs, s.ToRs, l+pod*s.Leaves, s.Leaves, s.Leaf)
	}
	for i := range s.Pods * s.Leaves {
		g.joinAll(l+i, 1, p+i%s.Leaves*s.Spines, s.Spines, s.Spine)
	}
	return g, g.Check()
}
