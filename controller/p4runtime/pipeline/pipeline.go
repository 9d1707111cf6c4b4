// Package pipeline is the controller's view of a compiled P4 program: it turns names into
// P4Runtime ids, values into canonical byte strings, and back into lines for people.
//
// A name that the program does not have is an error that lists the ones it has. It never
// becomes id 0, which P4Runtime reads as a wildcard.
package pipeline

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/p4rtmsg"
)

// Pipeline is a compiled program. It is immutable and may be shared.
type Pipeline struct {
	info   *p4configv1.P4Info
	device []byte
	cookie uint64

	tables   index[*p4configv1.Table]
	actions  index[*p4configv1.Action]
	profiles index[*p4configv1.ActionProfile]
	counters index[*p4configv1.Counter]
	meters   index[*p4configv1.Meter]
	regs     index[*p4configv1.Register]
	digests  index[*p4configv1.Digest]
	headers  index[*p4configv1.ControllerPacketMetadata]
	filters  map[string]bool // filters in the BF Runtime schema
}

// Load reads a program's P4Info and its device configuration,
// BMv2's JSON. A JSON that is not JSON is refused here, because simple_switch_grpc takes
// it without a word and dies later.
func Load(p4info, device []byte) (*Pipeline, error) {
	info, err := p4rtmsg.ParseP4Info(p4info)
	if err != nil {
		return nil, err
	}
	if !json.Valid(device) {
		return nil, errors.New("device configuration: not JSON")
	}
	return New(info, device)
}

// New takes a program's parts as they are.
func New(info *p4configv1.P4Info, device []byte) (*Pipeline, error) {
	p := &Pipeline{info: info, device: device}
	errs := []error{
		p.tables.build("table", info.GetTables()),
		p.actions.build("action", info.GetActions()),
		p.profiles.build("action profile", info.GetActionProfiles()),
		p.counters.build("counter", info.GetCounters()),
		p.meters.build("meter", info.GetMeters()),
		p.regs.build("register", info.GetRegisters()),
		p.digests.build("digest", info.GetDigests()),
		p.headers.build("controller header", info.GetControllerPacketMetadata()),
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("P4Info: %w", err)
	}
	h := sha256.New()
	h.Write(raw)
	h.Write(device)
	// Never 0, which a switch without cookies returns.
	p.cookie = binary.BigEndian.Uint64(h.Sum(nil)) | 1
	return p, nil
}

// Info returns the P4Info; it must not be changed.
func (p *Pipeline) Info() *p4configv1.P4Info { return p.info }

// Device returns the device configuration; it must not be changed.
func (p *Pipeline) Device() []byte { return p.device }

// Cookie is a hash over P4Info and device configuration, never 0. Two pipelines with one
// cookie are the same.
func (p *Pipeline) Cookie() uint64 { return p.cookie }

// index finds the objects of one kind.
type index[T interface{ GetPreamble() *p4configv1.Preamble }] struct {
	kind   string
	byID   map[uint32]T
	byName map[string]T
	names  []string
}

func (x *index[T]) build(kind string, list []T) error {
	x.kind, x.byID, x.byName = kind, make(map[uint32]T, len(list)), make(map[string]T, len(list))
	for _, v := range list {
		pre := v.GetPreamble()
		if pre.GetId() == 0 || pre.GetName() == "" {
			return fmt.Errorf("P4Info: a %s has id %d and name %q, want both set", kind, pre.GetId(), pre.GetName())
		}
		if _, twice := x.byID[pre.GetId()]; twice {
			return fmt.Errorf("P4Info: two of kind %s have id 0x%08x", kind, pre.GetId())
		}
		x.byID[pre.GetId()], x.byName[pre.GetName()] = v, v
		x.names = append(x.names, pre.GetName())
	}
	sort.Strings(x.names)
	return nil
}

// find returns the object with the given full name, or the only object whose name ends in the given name.
func (x *index[T]) find(name string) (v T, err error) {
	if v, ok := x.byName[name]; ok {
		return v, nil
	}
	var found []string
	for _, full := range x.names {
		if strings.HasSuffix(full, "."+name) {
			found = append(found, full)
		}
	}
	switch len(found) {
	case 0:
		return v, fmt.Errorf("the pipeline has no %s %q; it has %s", x.kind, name, orNone(x.names))
	case 1:
		return x.byName[found[0]], nil
	}
	return v, fmt.Errorf("%s %q is ambiguous: %s", x.kind, name, strings.Join(found, ", "))
}

func (x *index[T]) id(id uint32) (T, error) {
	v, ok := x.byID[id]
	if !ok {
		return v, fmt.Errorf("the pipeline has no %s with id 0x%08x", x.kind, id)
	}
	return v, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// TableSize returns how many entries the table with that id holds, 0 when unknown.
func (p *Pipeline) TableSize(id uint32) int {
	if t, err := p.tables.id(id); err == nil {
		return int(t.GetSize())
	}
	return 0
}

// Digests returns the ids of all digests.
func (p *Pipeline) Digests() []uint32 {
	var ids []uint32
	for _, d := range p.info.GetDigests() {
		ids = append(ids, d.GetPreamble().GetId())
	}
	return ids
}

// HasProfiles reports whether any table is indirect.
func (p *Pipeline) HasProfiles() bool { return len(p.info.GetActionProfiles()) > 0 }

// SettableDefaults returns the ids of the tables whose default entry can be written:
// direct ones without a const default action.
func (p *Pipeline) SettableDefaults() []uint32 {
	var ids []uint32
	for _, t := range p.info.GetTables() {
		if t.GetConstDefaultActionId() == 0 && t.GetImplementationId() == 0 && !t.GetIsConstTable() {
			ids = append(ids, t.GetPreamble().GetId())
		}
	}
	return ids
}

// ConstTable reports whether the entries of a table belong to the program.
func (p *Pipeline) ConstTable(id uint32) bool {
	t, err := p.tables.id(id)
	return err == nil && t.GetIsConstTable()
}

// Learned reports whether the program marks a table @learned: a feature learns its entries, so they are not part of a
// switch's desired state. The default entry is.
func (p *Pipeline) Learned(id uint32) bool {
	t, err := p.tables.id(id)
	return err == nil && slices.Contains(t.GetPreamble().GetAnnotations(), "@learned")
}

// CounterID returns the id of an indirect counter.
func (p *Pipeline) CounterID(name string) (uint32, error) {
	c, err := p.counters.find(name)
	return c.GetPreamble().GetId(), err
}

// RegisterID returns the id of a register array.
func (p *Pipeline) RegisterID(name string) (uint32, error) {
	r, err := p.regs.find(name)
	return r.GetPreamble().GetId(), err
}

// LoadChip reads the P4Info of a program for a chip. The BF Runtime schema of the same program, which may be nil, adds
// objects that P4Info cannot describe. The device configuration is in the format of the chip's P4Runtime server; if it
// is nil, the program cannot be pushed.
func LoadChip(p4info, schema, device []byte) (*Pipeline, error) {
	info, err := p4rtmsg.ParseP4Info(p4info)
	if err != nil {
		return nil, err
	}
	p, err := New(info, device)
	if err != nil || schema == nil {
		return p, err
	}
	var doc struct {
		Tables []struct {
			Name string `json:"name"`
			Type string `json:"table_type"`
		} `json:"tables"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return nil, fmt.Errorf("BF Runtime schema: %w", err)
	}
	p.filters = map[string]bool{}
	for _, t := range doc.Tables {
		if t.Type == "Lpf" {
			p.filters[strings.TrimPrefix(t.Name, "pipe.")] = true
		}
	}
	return p, nil
}

// Pushable reports whether the device configuration is known.
func (p *Pipeline) Pushable() bool { return len(p.device) > 0 }

// Objects names objects of a program, in full.
type Objects struct {
	Tables, Profiles, Counters, DirectCounters, Digests []string
	Headers                                             []string // of packets from and to the controller
	Filters                                             []string // low-pass filters, which only BF Runtime knows
}

// Lacks returns the objects of o that the program does not have, each with its kind, such as "table
// ingress.admission.queue_limit".
func (p *Pipeline) Lacks(o Objects) []string {
	var missing []string
	lacks := func(kind string, want []string, has func(name string) bool) {
		for _, name := range want {
			if !has(name) {
				missing = append(missing, kind+" "+name)
			}
		}
	}
	lacks("table", o.Tables, func(n string) bool { return p.tables.byName[n] != nil })
	lacks("action profile", o.Profiles, func(n string) bool { return p.profiles.byName[n] != nil })
	lacks("counter", o.Counters, func(n string) bool { return p.counters.byName[n] != nil })
	lacks("direct counter", o.DirectCounters, func(n string) bool {
		return slices.ContainsFunc(p.info.GetDirectCounters(), func(c *p4configv1.DirectCounter) bool { return c.GetPreamble().GetName() == n })
	})
	lacks("digest", o.Digests, func(n string) bool { return p.digests.byName[n] != nil })
	lacks("controller header", o.Headers, func(n string) bool { return p.headers.byName[n] != nil })
	lacks("low-pass filter", o.Filters, func(n string) bool { return p.filters[n] })
	return missing
}
