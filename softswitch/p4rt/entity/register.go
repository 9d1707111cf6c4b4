package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

func (s *State) writeRegister(op p4v1.Update_Type, in *p4v1.RegisterEntry) error {
	if err := onlyModify(op, "register entry"); err != nil {
		return err
	}
	r, ok := s.schema.Registers.ID(in.GetRegisterId())
	if !ok {
		return invalid("register_id is %#x, which is no register of the P4Info", in.GetRegisterId())
	}
	from, to, err := cells("register", r.Name, r.Size, in.Index)
	if err != nil {
		return err
	}
	if in.Data == nil {
		return invalid("register %q: data is unset", r.Name)
	}
	v, err := r.Type.Decode(in.Data)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if err := s.inst.WriteRegister(r.Name, i, v); err != nil {
			return fromEngine(err)
		}
	}
	return nil
}

func (s *State) readRegisters(req *p4v1.RegisterEntry, emit func(*p4v1.Entity)) error {
	list := s.schema.Registers.List
	if id := req.GetRegisterId(); id != 0 {
		r, ok := s.schema.Registers.ID(id)
		if !ok {
			return invalid("register_id is %#x, which is no register of the P4Info", id)
		}
		list = append(list[:0:0], r)
	} else if req.GetIndex() != nil {
		return invalid("index is set with register_id 0, which reads all registers")
	}
	for _, r := range list {
		from, to, err := cells("register", r.Name, r.Size, req.GetIndex())
		if err != nil {
			return err
		}
		for i := from; i < to; i++ {
			v, err := s.inst.ReadRegister(r.Name, i)
			if err != nil {
				return fromEngine(err)
			}
			emit(&p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{
				RegisterId: r.ID, Index: &p4v1.Index{Index: int64(i)}, Data: r.Type.Encode([][]byte{v}),
			}}})
		}
	}
	return nil
}
