package entity

import (
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

func (s *State) writeDigest(op p4v1.Update_Type, in *p4v1.DigestEntry) error {
	d, err := s.schema.Digests.Find(in.GetDigestId())
	if err != nil {
		return err
	}
	if err := present(op, s.learning[d.ID] != nil, "digest entry", d.ID); err != nil {
		return err
	}
	if op == p4v1.Update_DELETE {
		delete(s.learning, d.ID)
		s.digests.Configure(d.ID, nil)
		return nil
	}
	if c := in.Config; c.GetMaxTimeoutNs() < 0 || c.GetMaxListSize() < 0 || c.GetAckTimeoutNs() < 0 {
		return invalid("digest %q: max_timeout_ns is %d, max_list_size %d, ack_timeout_ns %d; none may be negative", d.Name, c.GetMaxTimeoutNs(), c.GetMaxListSize(), c.GetAckTimeoutNs())
	}
	e := proto.CloneOf(in)
	s.learning[d.ID] = e
	c := e.Config
	if c == nil {
		c = &p4v1.DigestEntry_Config{}
	}
	s.digests.Configure(d.ID, c)
	return nil
}

func (s *State) readDigests(req *p4v1.DigestEntry, emit func(Found)) error {
	list, err := s.schema.Digests.Select(req.GetDigestId())
	for _, d := range list {
		if e := s.learning[d.ID]; e != nil {
			emit(found(e))
		} else if req.GetDigestId() != 0 {
			return notFound("digest %q is not enabled", d.Name)
		}
	}
	return err
}
