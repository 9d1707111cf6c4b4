package topo

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Line describes a builder's links of one kind.
type Line struct {
	Rate  units.Rate
	Delay units.Time // propagation, one way
	// Jitter and Spread are the fields of Link.
	Jitter, Spread units.Time
}

// maxNodes and maxLinks bound a builder's fabric. The simulator's indices allow far more, but a typing error in a
// file should not ask for a terabyte.
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
	return ClosSpec{Pods: 1, ToRs: 1, PerToR: hosts, Host: host}.build("s%d", "", "")
}

// Dumbbell joins left hosts (the first) by switch s0 and right ones by s1, and the two
// switches by trunk.
func Dumbbell(left, right int, host, trunk Line) (*Graph, error) {
	if err := within("hosts", left+right, 2, maxNodes); err != nil {
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
	return ClosSpec{Pods: 1, ToRs: leaves, Leaves: spines, PerToR: perLeaf, Host: host, Leaf: up}.build("leaf%d", "spine%d", "")
}

// FatTree is the k-ary fat-tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008, §3): k
// pods of k/2 edge and k/2 aggregation switches, (k/2)² cores, k³/4 hosts.
func FatTree(k int, host, edge, core Line) (*Graph, error) {
	if k < 2 || k > 64 || k%2 != 0 {
		return nil, fmt.Errorf("k: %d, want an even number from 2 to 64", k)
	}
	half := k / 2
	return ClosSpec{Pods: k, ToRs: half, Leaves: half, Spines: half, PerToR: half, Host: host, Leaf: edge, Spine: core}.build("edge%d", "agg%d", "core%d")
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
	if s.Pods > 1 && s.Spines == 0 {
		return nil, fmt.Errorf("spines: 0, want at least 1 to join %d pods", s.Pods)
	}
	return s.build("tor%d", "leaf%d", "spine%d")
}

// build makes the Clos. tor, leaf and spine are the formats of the switches' names.
func (s ClosSpec) build(tor, leaf, spine string) (*Graph, error) {
	if err := within("hosts", s.Pods*s.ToRs*s.PerToR, 2, maxNodes); err != nil {
		return nil, err
	}
	if err := within("links", s.Pods*(s.ToRs*(s.PerToR+s.Leaves)+s.Leaves*s.Spines), 1, maxLinks); err != nil {
		return nil, err
	}
	g := &Graph{}
	g.addHosts(s.Pods*s.ToRs*s.PerToR, "h%d")
	t := g.addSwitches(s.Pods*s.ToRs, tor)
	l := g.addSwitches(s.Pods*s.Leaves, leaf)
	p := g.addSwitches(s.Leaves*s.Spines, spine)
	for h := range g.Hosts {
		g.join(h, t+h/s.PerToR, s.Host)
	}
	for pod := range s.Pods {
		g.joinAll(t+pod*s.ToRs, s.ToRs, l+pod*s.Leaves, s.Leaves, s.Leaf)
	}
	for i := range s.Pods * s.Leaves {
		g.joinAll(l+i, 1, p+i%s.Leaves*s.Spines, s.Spines, s.Spine)
	}
	return g, g.Check()
}
