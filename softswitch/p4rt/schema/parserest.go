package schema

import (
	"fmt"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

func (s *Schema) parseArrays() error {
	add := func(x *Index[*Array], kind string, prefix p4configv1.P4Ids_Prefix, p *p4configv1.Preamble, size int64) error {
		if err := s.claim(kind, prefix, p); err != nil {
			return err
		}
		if size < 0 {
			return fmt.Errorf("%s %q: size is %d, it must not be negative", kind, p.Name, size)
		}
		return addNamed(x, kind, p, &Array{p.Id, p.Name, size})
	}
	for _, c := range s.Info.GetCounters() {
		if err := add(&s.Counters, "counter", p4configv1.P4Ids_COUNTER, c.Preamble, c.Size); err != nil {
			return err
		}
	}
	for _, m := range s.Info.GetMeters() {
		if err := add(&s.Meters, "meter", p4configv1.P4Ids_METER, m.Preamble, m.Size); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) parseRegisters() error {
	for _, r := range s.Info.GetRegisters() {
		if err := s.claim("register", p4configv1.P4Ids_REGISTER, r.Preamble); err != nil {
			return err
		}
		where := fmt.Sprintf("register %q", r.Preamble.Name)
		if r.Size < 0 {
			return fmt.Errorf("%s: size is %d, it must not be negative", where, r.Size)
		}
		t, err := s.dataType(where+": type_spec", r.TypeSpec)
		if err != nil {
			return err
		}
		if !t.leaf() {
			return fmt.Errorf("%s: type_spec is a struct or tuple, allowed are bit<W>, int<W>, bool and serializable enums", where)
		}
		if err := addNamed(&s.Registers, "register", r.Preamble, &Register{r.Preamble.Id, r.Preamble.Name, int64(r.Size), t}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) parseValueSets() error {
	for _, v := range s.Info.GetValueSets() {
		if err := s.claim("value set", p4configv1.P4Ids_VALUE_SET, v.Preamble); err != nil {
			return err
		}
		where := fmt.Sprintf("value set %q", v.Preamble.Name)
		if v.Size < 0 {
			return fmt.Errorf("%s: size is %d, it must not be negative", where, v.Size)
		}
		out := &ValueSet{ID: v.Preamble.Id, Name: v.Preamble.Name, Size: int64(v.Size)}
		var err error
		if out.Fields, out.fields, err = s.parseKey(where, v.Match); err != nil {
			return err
		}
		for _, f := range out.Fields {
			f.inValueSet = true
			if f.DeviceBits == 0 {
				f.DeviceBits = f.Bits
			}
		}
		if err := addNamed(&s.ValueSets, "value set", v.Preamble, out); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) parseDigests() error {
	for _, d := range s.Info.GetDigests() {
		if err := s.claim("digest", p4configv1.P4Ids_DIGEST, d.Preamble); err != nil {
			return err
		}
		t, err := s.dataType(fmt.Sprintf("digest %q: type_spec", d.Preamble.Name), d.TypeSpec)
		if err != nil {
			return err
		}
		if err := addNamed(&s.Digests, "digest", d.Preamble, &Digest{d.Preamble.Id, d.Preamble.Name, t}); err != nil {
			return err
		}
	}
	return nil
}

// parseHeaders reads the controller headers.
func (s *Schema) parseHeaders() error {
	for _, c := range s.Info.GetControllerPacketMetadata() {
		if err := s.claim("controller packet metadata", p4configv1.P4Ids_CONTROLLER_HEADER, c.Preamble); err != nil {
			return err
		}
		where := fmt.Sprintf("controller packet metadata %q", c.Preamble.Name)
		slot := &s.PacketIn
		switch c.Preamble.Name {
		case "packet_in":
		case "packet_out":
			slot = &s.PacketOut
		default:
			return fmt.Errorf("%s: preamble.name must be packet_in or packet_out", where)
		}
		if *slot != nil {
			return fmt.Errorf("%s: there are two of it", where)
		}
		h := &Header{}
		seen := map[uint32]bool{}
		for i, m := range c.Metadata {
			where := fmt.Sprintf("%s: metadata[%d] %q", where, i, m.Name)
			if m.Id == 0 || seen[m.Id] {
				return fmt.Errorf("%s: id is %d, it must be unique and not 0", where, m.Id)
			}
			seen[m.Id] = true
			bits, translated, err := s.width(where, m.Bitwidth, m.TypeName)
			if err != nil {
				return err
			}
			if translated {
				return fmt.Errorf("%s: type %q is translated (@p4runtime_translation), which is not supported in controller headers", where, m.TypeName.GetName())
			}
			h.Fields = append(h.Fields, HeaderField{m.Id, m.Name, bits, slices.Contains(m.Annotations, "@padding")})
			h.Bits += bits
		}
		if h.Bits%8 != 0 {
			return fmt.Errorf("%s: its %d bits are not whole bytes; pad the header", where, h.Bits)
		}
		*slot = h
	}
	return nil
}
