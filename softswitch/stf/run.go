package stf

import (
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	_ "github.com/headgate/headgate/softswitch/arch"
	"github.com/headgate/headgate/softswitch/engine"
	_ "github.com/headgate/headgate/softswitch/native/headgate" // runs Headgate's own program as Go
	"github.com/headgate/headgate/units"
)

// Runner runs the statements of one test against an instance of a program. It processes a packet
// and all its copies before the next statement. It implements engine.Out and records the frames
// that leave, per port.
type Runner struct {
	prog   *engine.Program
	in     *engine.Instance
	tables map[string]engine.TableInfo
	names  []string
	params map[string][]engine.ParamInfo
	now    units.Time

	ingress, egress []*engine.Packet
	sent            map[int][]string // upper-case hexadecimal
	expected        map[int][]Statement
	any             map[int]bool
	handles         map[string][]engine.Handle
	mc              multicast
}

// packetGap is the virtual time between two packets.
const packetGap = units.Millisecond

// maxHops bounds the passes that one packet causes, because a program can recirculate for ever.
const maxHops = 10000

// Run runs a test against a fresh instance of prog with the given options.
func Run(prog *engine.Program, test io.Reader, o engine.Options) error {
	list, err := Parse(test)
	if err != nil {
		return err
	}
	r := NewRunner(prog, engine.New(prog, o))
	for i := range list {
		if err := r.Step(&list[i]); err != nil {
			return fmt.Errorf("line %d: %s: %w", list[i].Line, list[i].Verb, err)
		}
	}
	return r.Check()
}

// NewRunner makes a runner for an instance of prog. Nothing else may use the instance meanwhile.
func NewRunner(prog *engine.Program, in *engine.Instance) *Runner {
	r := &Runner{
		prog: prog, in: in, tables: map[string]engine.TableInfo{}, params: map[string][]engine.ParamInfo{},
		now: units.Second, sent: map[int][]string{}, expected: map[int][]Statement{}, any: map[int]bool{},
		handles: map[string][]engine.Handle{}, mc: multicast{groups: map[uint16][]int{}, clones: map[uint16]uint16{}},
	}
	for _, t := range prog.Tables() {
		r.tables[t.Name] = t
		r.names = append(r.names, t.Name)
	}
	for _, a := range prog.Actions() {
		r.params[a.Name] = a.Params
	}
	return r
}

// Step runs one statement. Check checks the expectations later.
func (r *Runner) Step(s *Statement) error {
	v, ok := verbs()[s.Verb]
	if !ok {
		return fmt.Errorf("unknown statement %q", s.Verb)
	}
	return v.run(r, s)
}

// verb is a kind of statement: how its line is read, and what it does.
type verb struct {
	parse func(s *Statement, rest string) error
	run   func(*Runner, *Statement) error
}

// verbs returns all kinds of statements. bmv2stf.py passes the last ones unchanged to simple_switch_CLI.
var verbs = sync.OnceValue(func() map[string]verb {
	nothing := func(*Runner, *Statement) error { return nil } // commands with it only print
	return map[string]verb{
		"packet":        {(*Statement).parsePacket, (*Runner).packet},
		"expect":        {(*Statement).parsePacket, (*Runner).expect},
		"add":           {(*Statement).parseAdd, (*Runner).add},
		"setdefault":    {(*Statement).parseAdd, (*Runner).setDefault},
		"check_counter": {(*Statement).parseCheck, (*Runner).checkCounter},
		"remove":        {(*Statement).parseRemove, (*Runner).removeAll},
		"wait":          {(*Statement).parseNothing, nothing},
		"no_packet":     {(*Statement).parseNothing, nothing},

		"mirroring_add":         {words(2, false), numbered((*Runner).mirror, maxSession, maxPort)},
		"mirroring_add_mc":      {words(2, false), numbered((*Runner).mirrorToGroup, maxSession, maxGroup)},
		"mirroring_delete":      {words(1, false), numbered((*Runner).unmirror, maxSession)},
		"mirroring_get":         {words(1, false), nothing},
		"mc_mgrp_create":        {words(1, false), numbered((*Runner).createGroup, maxGroup)},
		"mc_node_create":        {words(1, false), numbered((*Runner).createNode, maxGroup)},
		"mc_node_update":        {words(1, false), (*Runner).updateNode},
		"mc_node_associate":     {words(2, false), numbered((*Runner).associate, maxGroup)},
		"counter_read":          {words(2, true), nothing},
		"counter_write":         {words(4, true), numbered((*Runner).writeCounter, maxIndex, maxCount, maxCount)},
		"register_read":         {words(2, true), nothing},
		"register_write":        {words(3, true), (*Runner).writeRegister},
		"register_reset":        {words(1, true), (*Runner).resetRegister},
		"meter_get_rates":       {words(2, true), nothing},
		"meter_set_rates":       {words(3, true), numbered((*Runner).setRate, maxIndex)},
		"meter_array_set_rates": {words(2, true), (*Runner).setRates},
	}
})

func (r *Runner) expect(s *Statement) error {
	if s.Any {
		r.any[s.Port] = true
	} else {
		r.expected[s.Port] = append(r.expected[s.Port], *s)
	}
	return nil
}

func (r *Runner) packet(s *Statement) error {
	frame, err := hex.DecodeString(s.Data)
	if err != nil {
		return err
	}
	r.now += packetGap
	r.ingress = append(r.ingress, r.in.Receive(uint32(s.Port), frame, r.now))
	for hops := 0; len(r.ingress)+len(r.egress) > 0; hops++ {
		if hops > maxHops {
			return fmt.Errorf("the packet keeps coming back after %d passes", maxHops)
		}
		if len(r.egress) > 0 {
			p := r.egress[0]
			r.egress = r.egress[1:]
			p.DeqTime = r.now
			r.in.Egress(p, r.now, r)
			continue
		}
		p := r.ingress[0]
		r.ingress = r.ingress[1:]
		r.in.Ingress(p, r.now, r)
	}
	return nil
}

// Enqueue implements engine.Out.
func (r *Runner) Enqueue(p *engine.Packet) {
	p.EnqTime = r.now
	r.egress = append(r.egress, p)
}

// Recirculate implements engine.Out.
func (r *Runner) Recirculate(p *engine.Packet) { r.ingress = append(r.ingress, p) }

// Transmit implements engine.Out.
func (r *Runner) Transmit(port uint32, frame []byte) {
	r.sent[int(port)] = append(r.sent[int(port)], strings.ToUpper(hex.EncodeToString(frame)))
}

// Digest implements engine.Out; tests cannot expect digests.
func (r *Runner) Digest(string, [][]byte) {}

// Dropped implements engine.Out.
func (r *Runner) Dropped(uint32, engine.Drop) {}

func (r *Runner) call(t engine.TableInfo, s *Statement) (*engine.ActionCall, error) {
	name, err := bySuffix("action", s.Action, t.Actions)
	if err != nil {
		return nil, err
	}
	c := &engine.ActionCall{Name: name}
	for _, p := range r.params[name] {
		i := slices.IndexFunc(s.Args, func(a Arg) bool { return a.Name == p.Name })
		if i < 0 {
			return nil, fmt.Errorf("action %q lacks argument %q", name, p.Name)
		}
		v, err := number(s.Args[i].Value, p.Bits)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", p.Name, err)
		}
		c.Args = append(c.Args, v)
	}
	if len(s.Args) != len(c.Args) {
		return nil, fmt.Errorf("action %q takes %d arguments, not %d", name, len(c.Args), len(s.Args))
	}
	return c, nil
}

// Entry returns the table, the key and the action of an add statement.
func (r *Runner) Entry(s *Statement) (t engine.TableInfo, key []engine.Match, c *engine.ActionCall, err error) {
	name, err := bySuffix("table", s.Name, r.names)
	if err != nil {
		return t, nil, nil, err
	}
	t = r.tables[name]
	key = make([]engine.Match, len(t.Key))
	for i, k := range t.Key {
		key[i].Any = k.Kind != engine.Exact // a field that the test does not name is 0 or "any"
	}
	for _, m := range s.Matches {
		i, err := keyField(m.Name, t.Key)
		if err != nil {
			return t, nil, nil, fmt.Errorf("table %q: %w", name, err)
		}
		if key[i], err = match(m.Value, t.Key[i]); err != nil {
			return t, nil, nil, fmt.Errorf("key field %q: %w", m.Name, err)
		}
	}
	c, err = r.call(t, s)
	return t, key, c, err
}

func (r *Runner) add(s *Statement) error {
	t, key, c, err := r.Entry(s)
	if err != nil {
		return err
	}
	h, err := r.in.AddEntry(t.Name, key, s.Priority, engine.Target{Call: c}, 0)
	if err == nil {
		r.handles[t.Name] = append(r.handles[t.Name], h)
	}
	return err
}

// Default returns the table and the action of a setdefault statement.
func (r *Runner) Default(s *Statement) (table string, c *engine.ActionCall, err error) {
	table, err = bySuffix("table", s.Name, r.names)
	if err != nil {
		return "", nil, err
	}
	c, err = r.call(r.tables[table], s)
	return table, c, err
}

func (r *Runner) setDefault(s *Statement) error {
	table, c, err := r.Default(s)
	if err != nil {
		return err
	}
	return r.in.SetDefault(table, &engine.Target{Call: c})
}

func (r *Runner) removeAll(*Statement) error {
	for name, hs := range r.handles {
		for _, h := range hs {
			if err := r.in.DeleteEntry(name, h); err != nil {
				return err
			}
		}
	}
	clear(r.handles)
	return nil
}

// Sent returns the frames that have left so far, per port and in order, as upper-case hexadecimal
// digits.
func (r *Runner) Sent() map[int][]string { return r.sent }

// Check compares the sent packets with the expected ones: the same number on every port, in order,
// equal in the given digits.
func (r *Runner) Check() error {
	for _, port := range r.ports() {
		got, want := r.sent[port], r.expected[port]
		if r.any[port] {
			if len(want) > 0 {
				return fmt.Errorf("port %d is expected to see packets with and without data", port)
			}
			if len(got) == 0 {
				return fmt.Errorf("port %d: want packets, got none", port)
			}
			continue
		}
		for i := range min(len(got), len(want)) {
			if err := compare(want[i].Data, got[i]); err != nil {
				return fmt.Errorf("line %d: packet %d on port %d: %w", want[i].Line, i, port, err)
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("port %d: want %d packets, got %d: %s", port, len(want), len(got), strings.Join(got, " "))
		}
	}
	return nil
}

func (r *Runner) ports() []int {
	all := slices.Concat(slices.Collect(maps.Keys(r.any)), slices.Collect(maps.Keys(r.sent)), slices.Collect(maps.Keys(r.expected)))
	slices.Sort(all)
	return slices.Compact(all)
}

func compare(want, got string) error {
	want, exact := strings.CutSuffix(want, "$")
	if len(got) < len(want) || exact && len(got) != len(want) {
		return fmt.Errorf("want %s, got %s: lengths differ", want, got)
	}
	for i := range len(want) {
		if want[i] != '*' && want[i] != got[i] {
			return fmt.Errorf("want %s, got %s: digit %d differs", want, got, i)
		}
	}
	return nil
}
