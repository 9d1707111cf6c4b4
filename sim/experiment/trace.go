package experiment

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/sim"
	"github.com/headgate/headgate/sim/hpcc"
	"github.com/headgate/headgate/sim/workload"
	"github.com/headgate/headgate/units"
)

// trace reads "kind: trace, file: flows.csv", a file beside the experiment with a line per flow. A file of the
// public HPCC simulator begins with a line that has only the number of flows. Other files are CSV. The first line
// of a CSV names the columns: start, src, dst and size, and optionally class, weight, group and job. Times and
// sizes have units; hosts are names or numbers; flows of one job have the same word in that column. The entry has
// the values of missing columns.
func (d *flowDecoder) trace(m *yamlnode.Map, pat workload.Pattern, start time) {
	m.Need("file")
	name := m.Text("file", "")
	if name == "" {
		return
	}
	for _, p := range append(slices.Clone(pat.Ranks), pat) {
		if len(p.Pick) > 0 {
			m.Fault("classes", "are drawn, want the column class, or class")
			return
		}
	}
	f, err := os.Open(beside(m, name))
	if err != nil {
		m.Fault("file", "%v", err)
		return
	}
	defer f.Close()
	t := traceReader{d: d, pat: pat, start: start, jobs: map[string]int{}}
	text := bufio.NewReader(f)
	head, _ := text.Peek(64) //nolint:errcheck // read reports the error again
	read := t.read
	if hpcc.IsFlows(head) {
		read = func(r io.Reader) error { return t.readHPCC(r, m.Has("class") || len(pat.Ranks) > 0) }
	}
	if err := read(text); err != nil {
		m.Fault("file", "%s: %v", name, err)
		return
	}
	d.between(m, &pat, distinct(t.flows, func(f *sim.FlowSpec) int { return f.Src }), distinct(t.flows, func(f *sim.FlowSpec) int { return f.Dst }))
	d.add(func(*rand.Rand, *workload.Chain) ([]sim.FlowSpec, error) { return slices.Clone(t.flows), nil })
}

func distinct(flows []sim.FlowSpec, of func(*sim.FlowSpec) int) []int {
	var out []int
	for i := range flows {
		out = append(out, of(&flows[i]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// traceReader reads the lines of a trace.
type traceReader struct {
	d     *flowDecoder
	pat   workload.Pattern
	start time
	jobs  map[string]int
	flows []sim.FlowSpec
}

func (t *traceReader) read(r io.Reader) error {
	c := csv.NewReader(r)
	c.Comment, c.TrimLeadingSpace, c.ReuseRecord = '#', true, true
	line, err := c.Read()
	if err != nil {
		return fmt.Errorf("no line of column names: %w", err)
	}
	head := slices.Clone(line)
	for i, name := range head {
		if _, ok := columns[name]; !ok || slices.Contains(head[:i], name) {
			return fmt.Errorf("line 1: column %q, want each of start, src, dst and size once, and at most once class, weight, group and job", name)
		}
	}
	for _, name := range []string{"start", "src", "dst", "size"} {
		if !slices.Contains(head, name) {
			return fmt.Errorf("line 1: no column %s", name)
		}
	}
	for {
		line, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.flow(head, line); err != nil {
			n, _ := c.FieldPos(0)
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// readHPCC reads flows of the public HPCC simulator. The first flow starts at the entry's start. The class is the
// priority group, unless the entry has one.
func (t *traceReader) readHPCC(r io.Reader, class bool) error {
	list, err := hpcc.Flows(r)
	if err != nil {
		return err
	}
	g := t.d.plan.Graph
	hosts := make(map[int]int, g.Nodes()) // by id, which is the node's name in such a fabric
	for n := range g.Nodes() {
		if id, err := strconv.Atoi(g.Names[n]); err == nil {
			hosts[id] = n
		} else if g.IsHost(n) {
			hosts[n] = n
		}
	}
	for _, line := range list {
		f := t.pat.Flow(nil, 0, 0, line.Size, t.start+line.Start)
		if !class {
			f.Class = uint8(line.Class)
		}
		for _, end := range []struct {
			id int
			to *int
		}{{line.Src, &f.Src}, {line.Dst, &f.Dst}} {
			n, ok := hosts[end.id]
			if !ok || !g.IsHost(n) {
				return fmt.Errorf("line %d: %d is no host of the topology", line.Line, end.id)
			}
			*end.to = n
		}
		if f.Src == f.Dst || f.Size > maxBytes || line.Start > maxTime {
			return fmt.Errorf("line %d: %v at %v, want 1B to %v between two hosts within %v", line.Line, f.Size, line.Start, maxBytes, maxTime)
		}
		t.flows = append(t.flows, f)
	}
	return nil
}

// flow reads a line. It reads the size first, because other fields may depend on it.
func (t *traceReader) flow(head, line []string) error {
	size, err := units.ParseBytes(line[slices.Index(head, "size")])
	if err != nil {
		return fmt.Errorf("size: %w", err)
	}
	f := t.pat.Flow(nil, 0, 0, size, 0)
	for i, name := range head {
		if err := columns[name](t, &f, line[i]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if f.Src == f.Dst || size < 1 || size > maxBytes {
		return fmt.Errorf("%v from a host to itself, or of no size: want 1B to %v between two hosts", size, maxBytes)
	}
	t.flows = append(t.flows, f)
	return nil
}

// columns set a field of a flow.
var columns = map[string]func(t *traceReader, f *sim.FlowSpec, text string) error{
	"size": func(*traceReader, *sim.FlowSpec, string) error { return nil },
	"src":  func(t *traceReader, f *sim.FlowSpec, text string) error { return t.host(text, &f.Src) },
	"dst":  func(t *traceReader, f *sim.FlowSpec, text string) error { return t.host(text, &f.Dst) },
	"start": func(t *traceReader, f *sim.FlowSpec, text string) error {
		at, err := units.ParseTime(text)
		if err == nil && at > maxTime {
			err = fmt.Errorf("is %v, want at most %v", at, maxTime)
		}
		f.Start = t.start + at
		return err
	},
	"class": func(_ *traceReader, f *sim.FlowSpec, text string) error {
		v, err := strconv.ParseUint(text, 10, 8)
		if err != nil || v >= sim.NumClasses {
			return fmt.Errorf("is %q, want 0 to %d", text, sim.NumClasses-1)
		}
		f.Class = uint8(v)
		return nil
	},
	"weight": func(_ *traceReader, f *sim.FlowSpec, text string) error {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 1e-9 && v <= 1e9) {
			return fmt.Errorf("is %q, want a number from 1e-9 to 1e9", text)
		}
		f.Weight = v
		return nil
	},
	"group": func(t *traceReader, f *sim.FlowSpec, text string) error {
		if text != "" {
			f.Group = t.d.group(strings.Clone(text))
		}
		return nil
	},
	"job": func(t *traceReader, f *sim.FlowSpec, text string) error {
		if text == "" {
			return nil
		}
		if t.jobs[text] == 0 {
			t.jobs[strings.Clone(text)] = len(t.jobs) + 1
		}
		f.Job = t.jobs[text]
		return nil
	},
}

func (t *traceReader) host(text string, host *int) error {
	hosts, err := hostSet(t.d.plan.Graph, text)
	if err != nil {
		return err
	}
	if len(hosts) != 1 {
		return fmt.Errorf("is %q, want one host", text)
	}
	*host = hosts[0]
	return nil
}
