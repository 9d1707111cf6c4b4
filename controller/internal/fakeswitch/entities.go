package fakeswitch

import (
	"context"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/controller/pipeline"
	"github.com/headgate/headgate/controller/reconcile"
)

// SetForwardingPipelineConfig commits a pipeline and forgets entries, but not groups and
// sessions of the replication engine when it plays BMv2.
func (s *Switch) SetForwardingPipelineConfig(_ context.Context, r *p4v1.SetForwardingPipelineConfigRequest) (*p4v1.SetForwardingPipelineConfigResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.authorized(r.GetElectionId()); err != nil {
		return nil, err
	}
	if r.GetAction() != p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT {
		return nil, status.Errorf(codes.Unimplemented, "%v", r.GetAction())
	}
	p, err := pipeline.New(r.GetConfig().GetP4Info(), r.GetConfig().GetP4DeviceConfig())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s.pipe, s.config = p, r.GetConfig()
	clear(s.entities)
	s.pushes++
	return &p4v1.SetForwardingPipelineConfigResponse{}, nil
}

// GetForwardingPipelineConfig returns the pipeline.
func (s *Switch) GetForwardingPipelineConfig(_ context.Context, r *p4v1.GetForwardingPipelineConfigRequest) (*p4v1.GetForwardingPipelineConfigResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config == nil {
		if s.BMv2 {
			return &p4v1.GetForwardingPipelineConfigResponse{Config: &p4v1.ForwardingPipelineConfig{}}, nil
		}
		return nil, status.Error(codes.FailedPrecondition, "no pipeline")
	}
	c := proto.Clone(s.config).(*p4v1.ForwardingPipelineConfig)
	if r.GetResponseType() == p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE {
		c.P4DeviceConfig = nil
	}
	return &p4v1.GetForwardingPipelineConfigResponse{Config: c}, nil
}

// Write makes updates, each for itself, and answers as the specification says.
func (s *Switch) Write(_ context.Context, r *p4v1.WriteRequest) (*p4v1.WriteResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.authorized(r.GetElectionId()); err != nil {
		return nil, err
	}
	if s.pipe == nil {
		return nil, status.Error(codes.FailedPrecondition, "no pipeline")
	}
	s.writes++
	st := status.New(codes.Unknown, "some updates failed")
	failed := false
	details := make([]*p4v1.Error, len(r.GetUpdates()))
	for i, u := range r.GetUpdates() {
		code, text := s.update(u)
		details[i] = &p4v1.Error{CanonicalCode: int32(code), Message: text}
		if code != codes.OK {
			failed = true
		} else {
			s.updates++
		}
	}
	if !failed {
		return &p4v1.WriteResponse{}, nil
	}
	for _, d := range details {
		st, _ = st.WithDetails(d)
	}
	return nil, st.Err()
}

func (s *Switch) update(u *p4v1.Update) (codes.Code, string) {
	if s.refuse != nil {
		if code, text := s.refuse(u); code != codes.OK {
			return code, text
		}
	}
	e := proto.Clone(u.GetEntity()).(*p4v1.Entity)
	if err := s.pipe.Normalize(e); err != nil {
		return codes.InvalidArgument, err.Error()
	}
	if !proto.Equal(e, u.GetEntity()) {
		return codes.InvalidArgument, "not in canonical form"
	}
	k, err := reconcile.KeyOf(e)
	if err != nil {
		return codes.Unimplemented, err.Error()
	}
	_, exists := s.entities[k]
	isDefault := e.GetTableEntry().GetIsDefaultAction()
	switch u.GetType() {
	case p4v1.Update_INSERT:
		if exists || isDefault {
			return codes.AlreadyExists, "it is there"
		}
		s.entities[k] = e
	case p4v1.Update_MODIFY:
		if !exists && !isDefault {
			return codes.NotFound, "it is not there"
		}
		s.entities[k] = e
	case p4v1.Update_DELETE:
		if !exists || isDefault {
			return codes.NotFound, "it is not there"
		}
		old := s.entities[k]
		delete(s.entities, k)
		if why := s.dangling(); why != "" {
			s.entities[k] = old
			return codes.FailedPrecondition, why
		}
	default:
		return codes.InvalidArgument, "no type"
	}
	if why := s.dangling(); why != "" {
		delete(s.entities, k)
		return codes.NotFound, why
	}
	return codes.OK, ""
}

// dangling looks for references to what is not there.
func (s *Switch) dangling() string {
	if s.Trusting {
		return ""
	}
	members, groups := map[uint32]bool{}, map[uint32]bool{}
	for _, e := range s.entities {
		if m := e.GetActionProfileMember(); m != nil {
			members[m.GetMemberId()] = true
		}
		if g := e.GetActionProfileGroup(); g != nil {
			groups[g.GetGroupId()] = true
		}
	}
	for _, e := range s.entities {
		for _, m := range e.GetActionProfileGroup().GetMembers() {
			if !members[m.GetMemberId()] {
				return "a group refers to a member that is not there"
			}
		}
		switch a := e.GetTableEntry().GetAction().GetType().(type) {
		case *p4v1.TableAction_ActionProfileGroupId:
			if !groups[a.ActionProfileGroupId] {
				return "an entry refers to a group that is not there"
			}
		case *p4v1.TableAction_ActionProfileMemberId:
			if !members[a.ActionProfileMemberId] {
				return "an entry refers to a member that is not there"
			}
		}
	}
	return ""
}

// Read answers wildcard reads by kind, and refuses the kinds that PI refuses.
func (s *Switch) Read(r *p4v1.ReadRequest, stream p4v1.P4Runtime_ReadServer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pipe == nil {
		return status.Error(codes.FailedPrecondition, "no pipeline")
	}
	out := &p4v1.ReadResponse{}
	for _, q := range r.GetEntities() {
		if q.GetRegisterEntry() != nil {
			return status.Error(codes.Unimplemented, "Register reads are not supported yet")
		}
		if c := q.GetCounterEntry(); c != nil {
			out.Entities = append(out.Entities, &p4v1.Entity{Entity: &p4v1.Entity_CounterEntry{CounterEntry: &p4v1.CounterEntry{
				CounterId: c.GetCounterId(), Index: &p4v1.Index{Index: c.GetIndex().GetIndex()}, Data: &p4v1.CounterData{},
			}}})
		}
		for _, e := range s.entities {
			if matches(q, e) {
				out.Entities = append(out.Entities, proto.Clone(e).(*p4v1.Entity))
			}
		}
	}
	return stream.Send(out)
}

func matches(q, e *p4v1.Entity) bool {
	if t := q.GetTableEntry(); t != nil {
		x := e.GetTableEntry()
		return x != nil && x.GetIsDefaultAction() == t.GetIsDefaultAction() && (t.GetTableId() == 0 || t.GetTableId() == x.GetTableId())
	}
	if q.GetActionProfileMember() != nil {
		return e.GetActionProfileMember() != nil
	}
	if q.GetActionProfileGroup() != nil {
		return e.GetActionProfileGroup() != nil
	}
	if r := q.GetPacketReplicationEngineEntry(); r != nil {
		x := e.GetPacketReplicationEngineEntry()
		return x != nil && (r.GetCloneSessionEntry() != nil) == (x.GetCloneSessionEntry() != nil)
	}
	return false
}
