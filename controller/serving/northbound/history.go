package northbound

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/state/history"
)

// noteOf reads what comes with a configuration that is applied.
func noteOf(ctx context.Context, r *pb.ApplyConfigRequest) (history.Note, error) {
	n := history.Note{By: authz.CallerOf(ctx).Name, Why: r.GetWhy(), Expect: r.ExpectGeneration, Confirm: time.Duration(r.GetConfirmNs())}
	if len(n.Why) > history.MaxWhy || strings.ContainsFunc(n.Why, unicode.IsControl) {
		return n, invalid("why", "%d bytes are not allowed: want one line of at most %d", len(n.Why), history.MaxWhy)
	}
	if n.Confirm != 0 && (n.Confirm < history.MinConfirm || n.Confirm > history.MaxConfirm) {
		return n, invalid("confirm_ns", "%v is not allowed: want %v to %v, or 0", n.Confirm, history.MinConfirm, history.MaxConfirm)
	}
	return n, nil
}

func (s *fabricService) ConfirmConfig(ctx context.Context, r *pb.ConfirmConfigRequest) (*pb.ConfirmConfigResponse, error) {
	e, err := s.History.Confirm(ctx, r.GetGeneration())
	record(ctx, s.Audit, audit.Entry{What: audit.Confirm, Subject: clean(e.File), Value: float64(e.Generation)}, err)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ConfirmConfigResponse{Generation: e.Generation}, nil
}

func (s *fabricService) ListHistory(_ context.Context, r *pb.ListHistoryRequest) (*pb.ListHistoryResponse, error) {
	out := &pb.ListHistoryResponse{}
	list := s.History.List()
	for i, e := range list {
		if n := r.GetGeneration(); n != 0 && n != e.Generation {
			continue
		}
		c := &pb.AppliedConfig{
			Generation: e.Generation, File: clean(e.File), Applied: timestamppb.New(e.Applied), By: clean(e.By), Why: clean(e.Why),
		}
		if r.GetGeneration() != 0 {
			c.Config = clean(e.YAML)
		}
		if e.Confirm != 0 && i == len(list)-1 {
			c.ConfirmUntil = timestamppb.New(e.Applied.Add(e.Confirm))
		}
		out.Configs = append(out.Configs, c)
	}
	if r.GetGeneration() != 0 && len(out.Configs) == 0 {
		err := errors.New("the history holds none")
		if len(list) > 0 {
			err = fmt.Errorf("the history begins with generation %d and ends with %d", list[0].Generation, list[len(list)-1].Generation)
		}
		return nil, refused(codes.NotFound, pb.ReasonGenerationNotFound, fmt.Errorf("generation %d: %w", r.GetGeneration(), err), nil)
	}
	return out, nil
}
