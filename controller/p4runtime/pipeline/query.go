package pipeline

import (
	"fmt"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
)

// Query returns the Read requests for all entities of a kind: one of Kinds. A name limits it to one
// table, action profile, counter and so on; index, of a counter, meter or register, to one cell. Entries are asked
// for with their direct counters and meters.
func (p *Pipeline) Query(kind, name string, index *uint32) ([]*p4v1.Entity, error) {
	var at *p4v1.Index
	if index != nil {
		at = &p4v1.Index{Index: int64(*index)}
	}
	switch kind {
	case "table", "default":
		return query(&p.tables, name, func(id uint32, t *p4configv1.Table) any {
			e := &p4v1.TableEntry{TableId: id}
			if kind == "default" {
				e.IsDefaultAction = true
				if !slices.Contains(p.SettableDefaults(), id) {
					return nil
				}
			}
			for _, r := range t.GetDirectResourceIds() {
				if r>>24 == uint32(p4configv1.P4Ids_DIRECT_METER) {
					e.MeterConfig = &p4v1.MeterConfig{}
				} else {
					e.CounterData = &p4v1.CounterData{}
				}
			}
			return e
		})
	case "member":
		return query(&p.profiles, name, func(id uint32, _ *p4configv1.ActionProfile) any {
			return &p4v1.ActionProfileMember{ActionProfileId: id}
		})
	case "group":
		return query(&p.profiles, name, func(id uint32, a *p4configv1.ActionProfile) any {
			if !a.GetWithSelector() {
				return nil
			}
			return &p4v1.ActionProfileGroup{ActionProfileId: id}
		})
	case "counter":
		return query(&p.counters, name, func(id uint32, _ *p4configv1.Counter) any { return &p4v1.CounterEntry{CounterId: id, Index: at} })
	case "meter":
		return query(&p.meters, name, func(id uint32, _ *p4configv1.Meter) any { return &p4v1.MeterEntry{MeterId: id, Index: at} })
	case "register":
		return query(&p.regs, name, func(id uint32, _ *p4configv1.Register) any { return &p4v1.RegisterEntry{RegisterId: id, Index: at} })
	case "digest":
		return query(&p.digests, name, func(id uint32, _ *p4configv1.Digest) any { return &p4v1.DigestEntry{DigestId: id} })
	case "multicast":
		return []*p4v1.Entity{Multicast(0)}, nil
	case "clone":
		return []*p4v1.Entity{CloneSession(0)}, nil
	}
	return nil, fmt.Errorf("%q is no kind of entity", kind)
}

// query asks for one object of an index, or for each. A nil request is left out.
func query[T interface {
	GetPreamble() *p4configv1.Preamble
}](x *index[T], name string, request func(id uint32, v T) any) ([]*p4v1.Entity, error) {
	names := x.names
	if name != "" {
		v, err := x.find(name)
		if err != nil {
			return nil, err
		}
		names = []string{v.GetPreamble().GetName()}
	}
	var list []*p4v1.Entity
	for _, n := range names {
		v := x.byName[n]
		if r := request(v.GetPreamble().GetId(), v); r != nil {
			list = append(list, p4rtmsg.Entity(r))
		}
	}
	return list, nil
}

// DigestFields returns the members of one message of a digest by name.
func (p *Pipeline) DigestFields(id uint32, d *p4v1.P4Data) Fields {
	var names []string
	width := map[string]int32{}
	spec := p.digests.byID[id].GetTypeSpec()
	for _, m := range p.info.GetTypeInfo().GetStructs()[spec.GetStruct().GetName()].GetMembers() {
		names = append(names, m.GetName())
		width[m.GetName()] = m.GetTypeSpec().GetBitstring().GetBit().GetBitwidth()
	}
	members := d.GetStruct().GetMembers()
	if members == nil {
		members = d.GetTuple().GetMembers()
	}
	if members == nil {
		members = []*p4v1.P4Data{d}
	}
	fields := make(Fields, len(members))
	for i, m := range members {
		name, bits := fmt.Sprint(i), int32(65)
		if i < len(names) {
			name, bits = names[i], max(width[names[i]], 1)
		}
		fields[i] = Field{name, valueText(m.GetBitstring(), name, bits)}
	}
	return fields
}

// DigestName returns the name of a digest.
func (p *Pipeline) DigestName(id uint32) string { return p.digests.name(id) }

// ProfileName returns the name of an action profile.
func (p *Pipeline) ProfileName(id uint32) string { return p.profiles.name(id) }

// PacketFields returns the fields of a packet from the switch by name.
func (p *Pipeline) PacketFields(in *p4v1.PacketIn) Fields {
	var fields Fields
	for _, m := range in.GetMetadata() {
		for _, d := range p.headers.byName[packetIn].GetMetadata() {
			if d.GetId() == m.GetMetadataId() {
				fields = append(fields, Field{d.GetName(), valueText(m.GetValue(), d.GetName(), d.GetBitwidth())})
			}
		}
	}
	return fields
}

// The controller headers of the program, as @controller_header names them.
const (
	packetIn  = "packet_in"
	packetOut = "packet_out"
)

// PacketOut builds a packet for the switch to send. Every field of the packet_out header
// must be given, because BMv2 silently reads a missing one as 0.
func (p *Pipeline) PacketOut(payload []byte, fields ...Arg) (*p4v1.PacketOut, error) {
	h, err := p.headers.find(packetOut)
	if err != nil {
		return nil, err
	}
	out := &p4v1.PacketOut{Payload: payload}
	err = fill(packetOut, "field", h.GetMetadata(), fields, func(id uint32, v []byte) {
		out.Metadata = append(out.Metadata, &p4v1.PacketMetadata{MetadataId: id, Value: v})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// PacketIn is a packet that the switch sent up.
type PacketIn struct {
	Fields  map[string]uint64 // fields of the packet_in header, by name
	Payload []byte
}

// PacketIn names the fields of a packet from the switch. Fields that the program does not
// declare are an error: the pipeline then is not the one on the switch.
func (p *Pipeline) PacketIn(in *p4v1.PacketIn) (PacketIn, error) {
	h, err := p.headers.find(packetIn)
	if err != nil {
		return PacketIn{}, err
	}
	out := PacketIn{Fields: make(map[string]uint64, len(in.GetMetadata())), Payload: in.GetPayload()}
	for _, m := range in.GetMetadata() {
		i := slices.IndexFunc(h.GetMetadata(), func(d *p4configv1.ControllerPacketMetadata_Metadata) bool { return d.GetId() == m.GetMetadataId() })
		if i < 0 {
			return PacketIn{}, fmt.Errorf("packet_in: the header has no field with id %d", m.GetMetadataId())
		}
		out.Fields[h.GetMetadata()[i].GetName()] = bytestring.Low64(m.GetValue())
	}
	return out, nil
}
