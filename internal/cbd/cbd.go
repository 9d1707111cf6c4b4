// Package cbd finds cyclic buffer dependencies: rings of links that PFC can stop for good, because each stopped
// link waits for the next one to move. A channel is one direction of a link. It depends on another channel if
// packets arrive by the first and leave by the second: while the second is stopped, they fill the buffer that
// keeps the first stopped. Without a cycle of dependencies there is no deadlock (Dally and Seitz, IEEE Trans.
// Computers C-36(5), 1987; for PFC Hu et al., "Deadlocks in Datacenter Networks", HotNets 2016); with one there
// may be.
package cbd

import "slices"

// Port is a port of a node: the node at its other end, −1 for a host, and the link. Nodes and links
// are numbered from 0. Hosts are not nodes, because they do not forward.
type Port struct{ Peer, Link int }

// Channel is one direction of a link between two nodes, and the port that it leaves by.
type Channel struct{ From, To, Link, Port int }

// Fabric is the input of the search for dependencies. It is immutable.
type Fabric struct {
	channels []Channel
	leaves   []int // the nodes with hosts; each sends to all others
	lossless []bool
	// hops returns, for every node, the output channels on its shortest paths to a leaf, given the failed
	// links.
	hops func(leaf int, down []bool) [][]int32
}

// New returns the fabric of nodes with these ports. lossless reports whether a node pauses its senders. next
// returns, for every node, the indices of its ports on the shortest paths to leaf, given the failed links. It
// must return all of them.
func New(ports [][]Port, lossless func(node int) bool, next func(leaf int, down []bool) [][]int) *Fabric {
	f := &Fabric{lossless: make([]bool, len(ports))}
	channel := make([][]int32, len(ports)) // channels by node and port
	for n, list := range ports {
		f.lossless[n] = lossless(n)
		channel[n] = make([]int32, len(list))
		for i, p := range list {
			if p.Peer >= 0 {
				channel[n][i] = int32(len(f.channels))
				f.channels = append(f.channels, Channel{n, p.Peer, p.Link, i})
			} else if len(f.leaves) == 0 || f.leaves[len(f.leaves)-1] != n {
				f.leaves = append(f.leaves, n)
			}
		}
	}
	f.hops = func(leaf int, down []bool) [][]int32 {
		hops := make([][]int32, len(ports))
		for n, list := range next(leaf, down) {
			for _, i := range list {
				hops[n] = append(hops[n], channel[n][i])
			}
		}
		return hops
	}
	return f
}

// dependencies is a channel dependency graph: for each channel, the channels that it depends on.
type dependencies [][]int32

// add adds the dependencies of traffic to a leaf, and reports whether any is new.
func (d dependencies) add(f *Fabric, leaf int, hops [][]int32) (more bool) {
	reached := make([]bool, len(f.lossless))
	var queue []int
	for _, n := range f.leaves {
		if n != leaf && !reached[n] {
			reached[n] = true
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, in := range hops[n] {
			at := f.channels[in].To
			if at == leaf {
				continue
			}
			if !reached[at] {
				reached[at] = true
				queue = append(queue, at)
			}
			if !f.lossless[at] {
				continue
			}
			for _, out := range hops[at] {
				if f.lossless[f.channels[out].To] && !slices.Contains(d[in], out) {
					d[in] = append(d[in], out)
					more = true
				}
			}
		}
	}
	return more
}

// rest repeatedly removes channels on which nothing depends, and returns the others: none if there is
// no cycle.
func (d dependencies) rest() []bool {
	dependents := make([]int32, len(d))
	for _, list := range d {
		for _, out := range list {
			dependents[out]++
		}
	}
	var free []int32
	for c, n := range dependents {
		if n == 0 {
			free = append(free, int32(c))
		}
	}
	left := len(d) - len(free)
	for len(free) > 0 {
		c := free[len(free)-1]
		free = free[:len(free)-1]
		for _, out := range d[c] {
			if dependents[out]--; dependents[out] == 0 {
				free = append(free, out)
				left--
			}
		}
	}
	if left == 0 {
		return nil
	}
	in := make([]bool, len(d))
	for c, n := range dependents {
		in[c] = n > 0
	}
	return in
}

// cycle returns a shortest cycle through one of the first channels that are on any cycle; nil if there
// is none.
func (d dependencies) cycle() []int {
	var shortest []int
	in, starts := d.rest(), 0
	for c := range in {
		if !in[c] || starts == mostStarts {
			continue
		}
		if found := d.around(c, in); found != nil {
			starts++
			if shortest == nil || len(found) < len(shortest) {
				shortest = found
			}
		}
	}
	return shortest
}

// mostStarts bounds the number of channels from which a shortest cycle is searched.
const mostStarts = 64

// around returns a shortest cycle through start over the channels that in marks, or nil if start lies between
// cycles.
func (d dependencies) around(start int, in []bool) []int {
	from := map[int32]int32{}
	queue := []int32{int32(start)}
	for len(queue) > 0 {
		c := queue[0]
		queue = queue[1:]
		for _, out := range d[c] {
			if int(out) == start {
				path := []int{int(c)}
				for int(c) != start {
					c = from[c]
					path = append(path, int(c))
				}
				slices.Reverse(path)
				return path
			}
			if _, known := from[out]; !known && in[out] {
				from[out] = c
				queue = append(queue, out)
			}
		}
	}
	return nil
}

// cycle returns a shortest cyclic buffer dependency, given the failed links. Each channel depends on the
// next one, and the last on the first. It returns nil if there is no such dependency.
func (f *Fabric) cycle(down []bool) []int {
	d := make(dependencies, len(f.channels))
	for _, leaf := range f.leaves {
		d.add(f, leaf, f.hops(leaf, down))
	}
	return d.cycle()
}
