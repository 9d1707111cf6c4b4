package schema

import (
	"fmt"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// parseArrays reads counters, meters and registers.
func (s *Schema) parseArrays() error {
	array := func(p *p4configv1.Preamble, size int64, t *Type) (*Array, error) {
		if size < 0 {
			return nil, errSize(size)
		}
		return &Array{objectOf(p), size, t}, nil
	}
	err := parseObjects(s, &s.Counters, "counter", p4configv1.P4Ids_COUNTER, s.Info.GetCounters(), func(c *p4configv1.Counter) (*Array, error) {
		return array(c.Preamble, c.Size, nil)
	})
	if err != nil {
		return err
	}
	err = parseObjects(s, &s.Meters, "meter", p4configv1.P4Ids_METER, s.Info.GetMeters(), func(m *p4configv1.Meter) (*Array, error) {
		return array(m.Preamble, m.Size, nil)
	})
	if err != nil {
		return err
	}
	return parseObjects(s, &s.Registers, "register", p4configv1.P4Ids_REGISTER, s.Info.GetRegisters(), func(r *p4configv1.Register) (*Array, error) {
		t, err := s.dataType("type_spec", r.TypeSpec)
		if err != nil {
			return nil, err
		}
		if !t.leaf() {
			return nil, fmt.Errorf("type_spec is a struct or tuple, allowed are bit<W>, int<W>, bool and serializable enums")
		}
		return array(r.Preamble, int64(r.Size), t)
	})
}

func (s *Schema) parseValueSets() error {
	return parseObjects(s, &s.ValueSets, "value set", p4configv1.P4Ids_VALUE_SET, s.Info.GetValueSets(), func(v *p4configv1.ValueSet) (*ValueSet, error) {
		if v.Size < 0 {
			return nil, errSize(int64(v.Size))
		}
		fields, err := s.parseFields(v.Match)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			f.inValueSet = true
			if f.Bits == 0 && f.Strings == "" {
				return nil, fmt.Errorf("match %q: bitwidth is 0, allowed are 1 to %d", f.Name, maxBits)
			}
			f.DeviceBits = f.Bits
		}
		return &ValueSet{objectOf(v.Preamble), int64(v.Size), fields}, nil
	})
}

func (s *Schema) parseDigests() error {
	return parseObjects(s, &s.Digests, "digest", p4configv1.P4Ids_DIGEST, s.Info.GetDigests(), func(d *p4configv1.Digest) (*Digest, error) {
		t, err := s.dataType("type_spec", d.TypeSpec)
		return &Digest{objectOf(d.Preamble), t}, err
	})
}

// parseHeaders reads the controller headers.
func (s *Schema) parseHeaders() error {
	return eachObject(s, "controller packet metadata", p4configv1.P4Ids_CONTROLLER_HEADER, s.Info.GetControllerPacketMetadata(), func(c *p4configv1.ControllerPacketMetadata) error {
		slot := &s.PacketIn
		switch c.Preamble.Name {
		case "packet_in":
		case "packet_out":
			slot = &s.PacketOut
		default:
			return fmt.Errorf("preamble.name must be packet_in or packet_out")
		}
		if *slot != nil {
			return fmt.Errorf("there are two of it")
		}
		h := &Header{}
		for i, m := range c.Metadata {
			where := fmt.Sprintf("metadata[%d] %q", i, m.Name)
			if m.Id == 0 || slices.ContainsFunc(h.Fields, func(f HeaderField) bool { return f.ID == m.Id }) {
				return fmt.Errorf("%s: id is %d, it must be unique and not 0", where, m.Id)
			}
			w, err := s.width(where, m.Bitwidth, m.TypeName)
			if err != nil {
				return err
			}
			if w.DeviceBits == 0 {
				return fmt.Errorf("%s: type %q is translated (@p4runtime_translation), which is not supported in controller headers", where, m.TypeName.GetName())
			}
			h.Fields = append(h.Fields, HeaderField{m.Id, m.Name, w.Bits, slices.Contains(m.Annotations, "@padding")})
			h.Bits += w.Bits
		}
		if h.Bits%8 != 0 {
			return fmt.Errorf("its %d bits are not whole bytes; pad the header", h.Bits)
		}
		*slot = h
		return nil
	})
}
