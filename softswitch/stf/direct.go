package stf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine"
	_ "github.com/headgate/headgate/softswitch/native/headgate" // runs Headgate's own program as Go
)

// multicast holds the nodes that commands of simple_switch_CLI create, by handle, and the groups
// that the nodes belong to.
type multicast struct {
	nodes  [][]engine.Replica
	groups map[uint16][]int
	clones map[uint16]uint16 // clone session → group
}

func (r *Runner) direct(s *Statement) error {
	switch {
	case strings.HasPrefix(s.Verb, "mirroring"):
		return r.mirroring(s)
	case strings.HasPrefix(s.Verb, "mc_"):
		return r.multicast(s)
	case strings.Contains(s.Verb, "counter"):
		return r.counter(s)
	case strings.HasPrefix(s.Verb, "register"):
		return r.register(s)
	}
	return r.meter(s)
}

func small(text string, limit uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil || n > limit {
		return 0, fmt.Errorf("%q is not a number up to %d", text, limit)
	}
	return n, nil
}

func (r *Runner) mirroring(s *Statement) error {
	id, err := small(s.Numbers[0], 1<<15-1)
	if err != nil {
		return err
	}
	switch s.Verb {
	case "mirroring_add":
		port, err := small(s.Numbers[1], 1<<16)
		if err != nil {
			return err
		}
		return r.in.SetCloneSession(uint16(id), engine.CloneSession{Replicas: []engine.Replica{{Port: uint32(port)}}})
	case "mirroring_add_mc":
		g, err := small(s.Numbers[1], 1<<16-1)
		if err != nil {
			return err
		}
		if r.mc.clones == nil {
			r.mc.clones = map[uint16]uint16{}
		}
		r.mc.clones[uint16(id)] = uint16(g)
		return r.install(uint16(g))
	case "mirroring_delete":
		delete(r.mc.clones, uint16(id))
		return r.in.DeleteCloneSession(uint16(id))
	}
	return nil // mirroring_get only prints
}

func (r *Runner) multicast(s *Statement) error {
	n, err := small(s.Numbers[0], 1<<16-1)
	if err != nil {
		return err
	}
	if r.mc.groups == nil {
		r.mc.groups = map[uint16][]int{}
	}
	switch s.Verb {
	case "mc_mgrp_create":
		r.mc.groups[uint16(n)] = nil
		return r.install(uint16(n))
	case "mc_node_associate":
		node, err := small(s.Numbers[1], uint64(len(r.mc.nodes)))
		if err != nil || int(node) == len(r.mc.nodes) {
			return fmt.Errorf("there is no node %s", s.Numbers[1])
		}
		r.mc.groups[uint16(n)] = append(r.mc.groups[uint16(n)], int(node))
		return r.install(uint16(n))
	}
	// mc_node_create RID PORT... and mc_node_update HANDLE PORT...
	rid := n
	if s.Verb == "mc_node_update" {
		if int(n) >= len(r.mc.nodes) {
			return fmt.Errorf("there is no node %d", n)
		}
		rid = 0
		if old := r.mc.nodes[n]; len(old) > 0 {
			rid = uint64(old[0].Instance)
		}
	}
	var rs []engine.Replica
	for _, text := range s.Numbers[1:] {
		if text == "|" {
			break // link aggregation groups follow
		}
		port, err := small(text, 1<<16)
		if err != nil {
			return err
		}
		rs = append(rs, engine.Replica{Port: uint32(port), Instance: uint16(rid)})
	}
	if s.Verb == "mc_node_create" {
		r.mc.nodes = append(r.mc.nodes, rs)
		return nil
	}
	r.mc.nodes[n] = rs
	for g := range r.mc.groups {
		if err := r.install(g); err != nil {
			return err
		}
	}
	return nil
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

func (r *Runner) counter(s *Statement) error {
	if s.Verb != "check_counter" {
		i, err := small(s.Numbers[0], 1<<31)
		if err != nil || s.Verb == "counter_read" {
			return err
		}
		var v engine.Counter
		if v.Packets, err = small(s.Numbers[1], ^uint64(0)); err != nil {
			return err
		}
		if v.Bytes, err = small(s.Numbers[2], ^uint64(0)); err != nil {
			return err
		}
		return r.in.WriteCounter(s.Name, int(i), v)
	}
	i, err := small(s.Index, 1<<31)
	if err != nil {
		return err
	}
	c, err := findArray("counter", s.Name, r.prog.Source().CounterArrays)
	if err != nil {
		return err
	}
	v, err := r.in.ReadCounter(c.Name, int(i))
	if err != nil || s.Unit == "" {
		return err
	}
	want, err := small(s.Number, ^uint64(0))
	if err != nil {
		return err
	}
	got := v.Packets
	if s.Unit == "bytes" {
		got = v.Bytes
	}
	ok, known := map[string]bool{"==": got == want, "!=": got != want, "<": got < want, "<=": got <= want, ">": got > want, ">=": got >= want}[s.Op]
	if !known {
		return fmt.Errorf("unknown operator %q", s.Op)
	}
	if !ok {
		return fmt.Errorf("counter %s(%d) has %d %s, want %s %d", c.Name, i, got, s.Unit, s.Op, want)
	}
	return nil
}

func (r *Runner) register(s *Statement) error {
	a, err := findArray("register", s.Name, r.prog.Source().RegisterArrays)
	if err != nil {
		return err
	}
	switch s.Verb {
	case "register_reset":
		for i := range a.Size {
			if err := r.in.WriteRegister(a.Name, i, nil); err != nil {
				return err
			}
		}
	case "register_write":
		i, err := small(s.Numbers[0], uint64(a.Size))
		if err != nil {
			return err
		}
		v, err := number(s.Numbers[1], a.Bits)
		if err != nil {
			return err
		}
		return r.in.WriteRegister(a.Name, int(i), v)
	}
	return nil // register_read only prints
}

// meter sets a meter's rates. Each is given as RATE:BURST, like simple_switch_CLI's, with the rate
// in units per microsecond.
func (r *Runner) meter(s *Statement) error {
	if s.Verb == "meter_get_rates" {
		return nil
	}
	var meters []bmv2json.Array
	for _, m := range r.prog.Source().MeterArrays {
		meters = append(meters, m.Array)
	}
	a, err := findArray("meter", s.Name, meters)
	if err != nil {
		return err
	}
	words, first, last := s.Numbers, 0, a.Size-1
	if s.Verb == "meter_set_rates" {
		i, err := small(words[0], uint64(a.Size))
		if err != nil {
			return err
		}
		words, first, last = words[1:], int(i), int(i)
	}
	rate := engine.MeterRate{Configured: true}
	if len(words) != 2 {
		return fmt.Errorf("want two rates RATE:BURST, not %v", words)
	}
	for k, w := range words {
		perMicro, burst, ok := strings.Cut(w, ":")
		f, err := strconv.ParseFloat(perMicro, 64)
		b, err2 := strconv.ParseInt(burst, 0, 63)
		if !ok || err != nil || err2 != nil {
			return fmt.Errorf("%q is not RATE:BURST", w)
		}
		if k == 0 {
			rate.CIR, rate.CBurst = int64(f*1e6), b
		} else {
			rate.PIR, rate.PBurst = int64(f*1e6), b
		}
	}
	for i := first; i <= last; i++ {
		if err := r.in.WriteMeter(a.Name, i, rate); err != nil {
			return err
		}
	}
	return nil
}
