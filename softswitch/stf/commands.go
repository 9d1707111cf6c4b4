package stf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine"
)

// multicast holds the nodes that commands of simple_switch_CLI create, by handle, and the groups
// that the nodes belong to.
type multicast struct {
	nodes  [][]engine.Replica
	groups map[uint16][]int
	clones map[uint16]uint16 // clone session → group
}

// Largest numbers of commands.
const (
	maxSession = 1<<15 - 1
	maxGroup   = 1<<16 - 1
	maxPort    = 1 << 16
	maxIndex   = 1 << 31
	maxCount   = 1<<64 - 1
)

// numbered reads the first arguments of a command as numbers up to the limits.
func numbered(run func(*Runner, *Statement, []uint64) error, limits ...uint64) func(*Runner, *Statement) error {
	return func(r *Runner, s *Statement) error {
		n, err := numbers(s.Numbers, limits...)
		if err != nil {
			return err
		}
		return run(r, s, n)
	}
}

// numbers reads as many words as there are limits. Each must be a number up to its limit.
func numbers(list []string, limits ...uint64) ([]uint64, error) {
	out := make([]uint64, len(limits))
	for i, limit := range limits {
		n, err := strconv.ParseUint(list[i], 0, 64)
		if err != nil || n > limit {
			return nil, fmt.Errorf("%q is not a number up to %d", list[i], limit)
		}
		out[i] = n
	}
	return out, nil
}

func (r *Runner) mirror(s *Statement, n []uint64) error {
	return r.in.SetCloneSession(uint16(n[0]), engine.CloneSession{Replicas: []engine.Replica{{Port: uint32(n[1])}}})
}

func (r *Runner) mirrorToGroup(s *Statement, n []uint64) error {
	r.mc.clones[uint16(n[0])] = uint16(n[1])
	return r.install(uint16(n[1]))
}

func (r *Runner) unmirror(s *Statement, n []uint64) error {
	delete(r.mc.clones, uint16(n[0]))
	return r.in.DeleteCloneSession(uint16(n[0]))
}

func (r *Runner) createGroup(s *Statement, n []uint64) error {
	r.mc.groups[uint16(n[0])] = nil
	return r.install(uint16(n[0]))
}

// createNode handles RID PORT…
func (r *Runner) createNode(s *Statement, n []uint64) error {
	rs, err := replicas(uint16(n[0]), s.Numbers[1:])
	if err == nil {
		r.mc.nodes = append(r.mc.nodes, rs)
	}
	return err
}

func (r *Runner) node(text string) (int, error) {
	n, err := strconv.ParseUint(text, 0, 16)
	if err != nil || int(n) >= len(r.mc.nodes) {
		return 0, fmt.Errorf("there is no node %s", text)
	}
	return int(n), nil
}

// updateNode handles HANDLE PORT…
func (r *Runner) updateNode(s *Statement) error {
	n, err := r.node(s.Numbers[0])
	if err != nil {
		return err
	}
	rid := uint16(0)
	if old := r.mc.nodes[n]; len(old) > 0 {
		rid = old[0].Instance
	}
	if r.mc.nodes[n], err = replicas(rid, s.Numbers[1:]); err != nil {
		return err
	}
	for g := range r.mc.groups {
		if err := r.install(g); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) associate(s *Statement, n []uint64) error {
	node, err := r.node(s.Numbers[1])
	if err != nil {
		return err
	}
	g := uint16(n[0])
	r.mc.groups[g] = append(r.mc.groups[g], node)
	return r.install(g)
}

func replicas(rid uint16, list []string) (rs []engine.Replica, err error) {
	for i, text := range list {
		if text == "|" {
			break // link aggregation groups follow
		}
		port, err := numbers(list[i:], maxPort)
		if err != nil {
			return nil, err
		}
		rs = append(rs, engine.Replica{Port: uint32(port[0]), Instance: rid})
	}
	return rs, nil
}

// install writes a group and the clone sessions that use it to the instance.
func (r *Runner) install(g uint16) error {
	var rs []engine.Replica
	for _, n := range r.mc.groups[g] {
		rs = append(rs, r.mc.nodes[n]...)
	}
	if err := r.in.SetMulticastGroup(g, rs); err != nil {
		return err
	}
	for id, group := range r.mc.clones {
		if group == g {
			if err := r.in.SetCloneSession(id, engine.CloneSession{Replicas: rs}); err != nil {
				return err
			}
		}
	}
	return nil
}

// findArray finds an indirect array as bySuffix does.
func findArray(kind, name string, list []bmv2json.Array) (a bmv2json.Array, err error) {
	byName := map[string]bmv2json.Array{}
	for _, a := range list {
		if !a.Direct {
			byName[a.Name] = a
		}
	}
	name, err = bySuffix(kind, name, slices.Sorted(maps.Keys(byName)))
	return byName[name], err
}

func (r *Runner) writeCounter(s *Statement, n []uint64) error {
	return r.in.WriteCounter(s.Name, int(n[0]), engine.Counter{Packets: n[1], Bytes: n[2]})
}

func (r *Runner) checkCounter(s *Statement) error {
	index, err := numbers([]string{s.Index}, maxIndex)
	if err != nil {
		return err
	}
	c, err := findArray("counter", s.Name, r.prog.Source().CounterArrays)
	if err != nil {
		return err
	}
	v, err := r.in.ReadCounter(c.Name, int(index[0]))
	if err != nil || s.Unit == "" {
		return err
	}
	number, err := numbers([]string{s.Number}, maxCount)
	if err != nil {
		return err
	}
	got, want := v.Packets, number[0]
	if s.Unit == "bytes" {
		got = v.Bytes
	}
	ok, known := map[string]bool{"==": got == want, "!=": got != want, "<": got < want, "<=": got <= want, ">": got > want, ">=": got >= want}[s.Op]
	switch {
	case !known:
		return fmt.Errorf("unknown operator %q", s.Op)
	case !ok:
		return fmt.Errorf("counter %s(%d) has %d %s, want %s %d", c.Name, index[0], got, s.Unit, s.Op, want)
	}
	return nil
}

func (r *Runner) writeRegister(s *Statement) error {
	a, err := findArray("register", s.Name, r.prog.Source().RegisterArrays)
	if err != nil {
		return err
	}
	i, err := numbers(s.Numbers, uint64(a.Size))
	if err != nil {
		return err
	}
	v, err := number(s.Numbers[1], a.Bits)
	if err != nil {
		return err
	}
	return r.in.WriteRegister(a.Name, int(i[0]), v)
}

func (r *Runner) resetRegister(s *Statement) error {
	a, err := findArray("register", s.Name, r.prog.Source().RegisterArrays)
	for i := 0; err == nil && i < a.Size; i++ {
		err = r.in.WriteRegister(a.Name, i, nil)
	}
	return err
}

func (r *Runner) setRate(s *Statement, n []uint64) error {
	return r.meter(s, s.Numbers[1:], func(bmv2json.Array) (int, int) { return int(n[0]), int(n[0]) })
}

func (r *Runner) setRates(s *Statement) error {
	return r.meter(s, s.Numbers, func(a bmv2json.Array) (int, int) { return 0, a.Size - 1 })
}

// meter sets the rates of a range of meters. Each rate is given as RATE:BURST, like
// simple_switch_CLI's, with the rate in units per microsecond.
func (r *Runner) meter(s *Statement, rates []string, cells func(bmv2json.Array) (first, last int)) error {
	var meters []bmv2json.Array
	for _, m := range r.prog.Source().Meters() {
		meters = append(meters, m.Array)
	}
	a, err := findArray("meter", s.Name, meters)
	if err != nil {
		return err
	}
	if len(rates) != 2 {
		return fmt.Errorf("want two rates RATE:BURST, not %v", rates)
	}
	var rate, burst [2]int64
	for k, w := range rates {
		perMicro, text, ok := strings.Cut(w, ":")
		f, err := strconv.ParseFloat(perMicro, 64)
		b, err2 := strconv.ParseInt(text, 0, 63)
		if !ok || err != nil || err2 != nil {
			return fmt.Errorf("%q is not RATE:BURST", w)
		}
		rate[k], burst[k] = int64(f*1e6), b
	}
	for i, last := cells(a); i <= last; i++ {
		if err := r.in.WriteMeter(a.Name, i, engine.MeterRate{Configured: true, CIR: rate[0], CBurst: burst[0], PIR: rate[1], PBurst: burst[1]}); err != nil {
			return err
		}
	}
	return nil
}
