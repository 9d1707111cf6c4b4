//lint:file-ignore SA1019 clients older than P4Runtime 1.4 number their roles

package p4rt

import (
	"context"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/softswitch/p4rt/arbitration"
)

type setRequest = p4v1.SetForwardingPipelineConfigRequest

// SetForwardingPipelineConfig verifies, saves and commits pipelines. If it refuses a configuration
// it changes nothing.
func (s *Server) SetForwardingPipelineConfig(_ context.Context, req *setRequest) (*p4v1.SetForwardingPipelineConfigResponse, error) {
	if err := s.mayConfigure(req); err != nil {
		return nil, err
	}
	var l *live
	switch req.Action {
	case p4v1.SetForwardingPipelineConfigRequest_COMMIT:
		if req.Config != nil {
			return nil, status.Error(codes.InvalidArgument, "config is set with action COMMIT, which commits the saved one")
		}
	case p4v1.SetForwardingPipelineConfigRequest_VERIFY, p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE,
		p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT:
		if req.Config == nil {
			return nil, status.Errorf(codes.InvalidArgument, "config is unset with action %v", req.Action)
		}
		var err error
		if l, err = s.compile(req.Config); err != nil {
			s.log.Warn("pipeline refused", "action", req.Action, "error", err)
			return nil, status.Errorf(codes.InvalidArgument, "config: %v", err)
		}
	default:
		return nil, status.Errorf(codes.InvalidArgument, "action is %v, allowed are VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT, COMMIT and RECONCILE_AND_COMMIT", req.Action)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Check again, because the sender may have ceased to be primary during the compilation.
	if err := s.mayConfigure(req); err != nil {
		return nil, err
	}
	if err := s.enact(req.Action, l); err != nil {
		return nil, err
	}
	s.log.Info("pipeline", "action", req.Action, "cookie", req.GetConfig().GetCookie().GetCookie())
	return &p4v1.SetForwardingPipelineConfigResponse{}, nil
}

func (s *Server) mayConfigure(req *setRequest) error {
	key := arbitration.Key(req.Role, req.RoleId)
	sc, err := s.mayWrite(req.DeviceId, key, req.ElectionId)
	if err == nil && sc != nil {
		err = status.Errorf(codes.PermissionDenied, "role %v has a configuration that limits it, it cannot set the pipeline", key)
	}
	return err
}

// enact carries out the action on a compiled configuration. The caller holds mu.
func (s *Server) enact(action p4v1.SetForwardingPipelineConfigRequest_Action, l *live) error {
	switch action {
	case p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE:
		// From now on writes go to an instance that processes no packets until COMMIT. The
		// result is the same as if COMMIT replayed them.
		s.saved, s.target = l, l
	case p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT:
		return s.commit(l)
	case p4v1.SetForwardingPipelineConfigRequest_COMMIT:
		if s.saved == nil {
			return status.Error(codes.NotFound, "no saved configuration: use VERIFY_AND_SAVE first")
		}
		return s.commit(s.saved)
	case p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT:
		if err := s.reconcile(l); err != nil {
			return status.Errorf(codes.InvalidArgument, "the forwarding state cannot be preserved: %v", err)
		}
		return s.commit(l)
	}
	return nil
}

func (s *Server) reconcile(l *live) error {
	old := s.running.Load()
	if old == nil || old.state == nil {
		return nil
	}
	updates, err := old.state.Dump()
	if err != nil {
		return err
	}
	for _, u := range updates {
		if err := l.state.Apply(u); err != nil {
			return err
		}
	}
	return nil
}

// GetForwardingPipelineConfig returns the configuration that reads and writes refer to.
func (s *Server) GetForwardingPipelineConfig(_ context.Context, req *p4v1.GetForwardingPipelineConfigRequest) (*p4v1.GetForwardingPipelineConfigResponse, error) {
	if err := s.checkDevice(req.DeviceId); err != nil {
		return nil, err
	}
	s.mu.RLock()
	l := s.target
	s.mu.RUnlock()
	if l == nil {
		return &p4v1.GetForwardingPipelineConfigResponse{}, nil
	}
	out := &p4v1.ForwardingPipelineConfig{Cookie: l.Raw.Cookie}
	switch req.ResponseType {
	case p4v1.GetForwardingPipelineConfigRequest_ALL:
		out.P4Info, out.P4DeviceConfig = l.Raw.P4Info, l.Raw.P4DeviceConfig
	case p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY:
	case p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE:
		out.P4Info = l.Raw.P4Info
	case p4v1.GetForwardingPipelineConfigRequest_DEVICE_CONFIG_AND_COOKIE:
		out.P4DeviceConfig = l.Raw.P4DeviceConfig
	default:
		return nil, status.Errorf(codes.InvalidArgument, "response_type is %v, allowed are ALL, COOKIE_ONLY, P4INFO_AND_COOKIE and DEVICE_CONFIG_AND_COOKIE", req.ResponseType)
	}
	return &p4v1.GetForwardingPipelineConfigResponse{Config: out}, nil
}

func (s *Server) checkDevice(id uint64) error {
	if id != s.opts.DeviceID {
		return status.Errorf(codes.NotFound, "device_id %d is not known, this device is %d", id, s.opts.DeviceID)
	}
	return nil
}
