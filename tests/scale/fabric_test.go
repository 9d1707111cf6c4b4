// Package scale measures one controller with up to a thousand switches, and runs it for a long
// time under random faults. Each switch is the embedded switch's P4Runtime server over TCP, with
// the real program, tables and validation. A few lines that answer polls and carry probes replace
// its data plane. The controller is a process of its own, the program as it is delivered.
//
// TestScale runs with HEADGATE_SCALE=1, TestSoak with HEADGATE_SOAK=1, because they take minutes
// to hours.
package scale

import (
	"fmt"
	"strings"
)

// end is a port of a switch, given by the switch's index in the fabric.
type end struct {
	sw   int
	port uint32
}

// fabric is a three-tier fabric. Every leaf has a link to each of its pod's two aggregation switches, and each of
// these has links to two of the four cores, so packets between pods have four paths. The program's 2048 next hops
// allow two uplinks per leaf for a thousand leaves.
type fabric struct {
	switches  int  // at least cores, aggregation switches and a leaf in each pod
	hosts     int  // over all leaves
	scattered bool // the hosts of a leaf have no common prefix; otherwise they are in one /22

	leaves []int // indices of the leaves
	links  [][2]end
}

const cores, perPod = 4, 32

func newFabric(switches, hosts int) *fabric {
	f := &fabric{switches: switches, hosts: hosts, scattered: *scattered}
	pods := max(1, (switches-cores)/perPod)
	next := make([]uint32, switches)
	join := func(a, b int) {
		next[a]++
		next[b]++
		f.links = append(f.links, [2]end{{a, next[a]}, {b, next[b]}})
	}
	first := cores + 2*pods // of the leaves
	for pod := range pods {
		for k := range 2 {
			for up := range 2 {
				join(cores+2*pod+k, 2*k+up)
			}
		}
	}
	for leaf := first; leaf < switches; leaf++ {
		f.leaves = append(f.leaves, leaf)
		pod := (leaf - first) % pods
		join(leaf, cores+2*pod)
		join(leaf, cores+2*pod+1)
	}
	return f
}

func (f *fabric) name(sw int) string { return fmt.Sprintf("s%d", sw) }

// link returns the ends of a link in the configuration's form.
func (f *fabric) link(i int) (a, b string) {
	l := f.links[i]
	return fmt.Sprintf("%s:%d", f.name(l[0].sw), l[0].port), fmt.Sprintf("%s:%d", f.name(l[1].sw), l[1].port)
}

// place returns the leaf of a host, given the host's number, and the host's number at that leaf.
func (f *fabric) place(h int) (leaf, n int) {
	leaf = h * len(f.leaves) / f.hosts
	return leaf, h - (leaf*f.hosts+len(f.leaves)-1)/len(f.leaves)
}

// yaml returns the configuration for switches at addresses, with additional keys of the section controller.
func (f *fabric) yaml(addresses []string, controller string) []byte {
	var b strings.Builder
	b.WriteString("name: large\nswitches:\n")
	for i := range f.switches {
		fmt.Fprintf(&b, "  - {name: %s, device_id: %d, address: %q, target: embedded}\n", f.name(i), i+1, addresses[i])
	}
	b.WriteString("hosts:\n")
	for h := range f.hosts {
		leaf, n := f.place(h)
		address := 10<<24 | leaf<<10 | n + 1
		if f.scattered {
			address = 10<<24 | n*len(f.leaves) + leaf
		}
		fmt.Fprintf(&b, "  - {name: h%d, ipv4: %d.%d.%d.%d}\n", h, address>>24, address>>16&255, address>>8&255, address&255)
	}
	b.WriteString("links:\n")
	for i := range f.links {
		a, z := f.link(i)
		fmt.Fprintf(&b, "  - {a: %q, b: %q, rate: 100Gbps}\n", a, z)
	}
	for h := range f.hosts {
		leaf, n := f.place(h)
		fmt.Fprintf(&b, "  - {a: \"%s:%d\", b: h%d, rate: 100Gbps}\n", f.name(f.leaves[leaf]), 3+n, h)
	}
	fmt.Fprintf(&b, "controller:\n  listen: \"127.0.0.1:0\"\n%s", controller)
	return []byte(b.String())
}
