// Package hpcc reads the input files of the public HPCC simulator (alibaba-edu/High-Precision-Congestion-Control):
// fabrics, as in simulation/mix/topology.txt, and flows, as its traffic_gen writes them.
package hpcc

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/headgate/headgate/sim/topo"
	"github.com/headgate/headgate/units"
)

// Limits of files.
const (
	maxNodes = 1 << 18
	maxLinks = 1 << 22
	maxFlows = 1 << 28
	maxSize  = 1_000_000 * units.GB
)

// Topology reads a fabric. The file has the numbers of nodes, of switches and of links; the ids of the switches;
// and for each link two ids, a rate, a delay and an error rate. The error rate must be 0, because links lose no
// packets here. All other ids are hosts. Nodes are named by their ids. Like that simulator, Topology ignores the
// text after the links. Graph.Check finds faults of the fabric as a whole.
func Topology(r io.Reader) (*topo.Graph, error) {
	in := newReader(r)
	nodes := in.number("the number of nodes", 3, maxNodes)
	switches := in.number("the number of switches", 1, max(nodes-2, 1))
	links := in.number("the number of links", 1, maxLinks)
	g := &topo.Graph{Hosts: nodes - switches, Switches: switches}
	at := map[int]int{} // nodes by id
	var names []string
	for i := 0; i < switches && in.err == nil; i++ {
		id := in.number("the id of a switch", 0, nodes-1)
		if _, twice := at[id]; twice {
			in.fault("names switch %d twice", id)
		}
		at[id] = g.Hosts + i
		names = append(names, strconv.Itoa(id))
	}
	for id := 0; id < nodes && in.err == nil; id++ {
		if _, isSwitch := at[id]; !isSwitch {
			at[id] = len(g.Names)
			g.Names = append(g.Names, strconv.Itoa(id))
		}
	}
	g.Names = append(g.Names, names...)
	for i := 0; i < links && in.err == nil; i++ {
		g.Links = append(g.Links, topo.Link{
			A: at[in.number("the id of a node", 0, nodes-1)], B: at[in.number("the id of a node", 0, nodes-1)],
			Rate: value(in, "a rate such as 100Gbps", units.ParseRate), Delay: value(in, "a delay such as 1us", units.ParseTime),
		})
		if loss := value(in, "an error rate", number); loss != 0 {
			in.fault("has an error rate of %v, want 0: links lose nothing here", loss)
		}
	}
	return g, in.err
}

func number(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// Flow is a line of a file of flows.
type Flow struct {
	Line     int
	Src, Dst int // ids
	Class    int // the priority group
	Size     units.Bytes
	Start    units.Time // time after the start of the file's first flow
}

// Flows reads flows: their number, and for each its source, destination, priority group, destination port, size in
// bytes and start in seconds. Like that simulator, it ignores the text after them.
func Flows(r io.Reader) ([]Flow, error) {
	in := newReader(r)
	n := in.number("the number of flows", 1, maxFlows)
	var flows []Flow
	first := units.MaxTime
	for i := 0; i < n && in.err == nil; i++ {
		f := Flow{Src: in.number("the id of the source", 0, maxNodes), Dst: in.number("the id of the destination", 0, maxNodes)}
		f.Line = in.line
		f.Class = in.number("a priority group", 0, 7)
		in.number("a destination port", 0, 65535)
		f.Size = units.Bytes(in.number("a size in bytes", 1, int(maxSize)))
		f.Start = value(in, "a start in seconds, such as 2.000001", func(text string) (units.Time, error) { return units.ParseTime(text + "s") })
		first = min(first, f.Start)
		flows = append(flows, f)
	}
	for i := range flows {
		flows[i].Start -= first
	}
	return flows, in.err
}

// IsFlows reports whether a file begins like a file of flows: with a line of one number.
func IsFlows(head []byte) bool {
	in := newReader(strings.NewReader(string(head)))
	if !in.more() || len(in.fields) != 1 {
		return false
	}
	_, err := strconv.ParseUint(in.fields[0], 10, 64)
	return err == nil
}

// reader reads words one by one across lines. After its first error it returns zero values.
type reader struct {
	lines  *bufio.Scanner
	line   int      // line of the last word
	fields []string // words left of the line
	err    error
}

func newReader(r io.Reader) *reader {
	in := &reader{lines: bufio.NewScanner(r)}
	in.lines.Buffer(nil, 8*maxNodes) // the ids of the switches are one line
	return in
}

// more reports whether there is another word.
func (r *reader) more() bool {
	for len(r.fields) == 0 && r.lines.Scan() {
		r.line++
		r.fields = strings.Fields(r.lines.Text())
	}
	if err := r.lines.Err(); err != nil && r.err == nil {
		r.err = fmt.Errorf("line %d: %w", r.line+1, err)
	}
	return len(r.fields) > 0 && r.err == nil
}

func (r *reader) fault(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: "+format, append([]any{max(r.line, 1)}, args...)...)
	}
}

// value reads a word.
func value[T any](r *reader, what string, parse func(string) (T, error)) (v T) {
	if r.err != nil {
		return v
	}
	if !r.more() {
		r.fault("is the last one, want %s behind it", what)
		return v
	}
	word := r.fields[0]
	r.fields = r.fields[1:]
	v, err := parse(word)
	if err != nil {
		r.fault("has %q, want %s", word, what)
	}
	return v
}

// number reads a whole number.
func (r *reader) number(what string, low, high int) int {
	n := value(r, what, strconv.Atoi)
	if r.err == nil && (n < low || n > high) {
		r.fault("has %d, want %s, %d to %d", n, what, low, high)
	}
	return n
}
