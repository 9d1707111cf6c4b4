package daemon

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/allocation/priority"
	"github.com/headgate/headgate/controller/allocation/weights"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/confine"
)

// Offline checks a configuration as a controller without any state does, and returns what empty switches
// would get. It asks no switch and no controller. failures is as in controller.Plan. A configuration with
// faults gives a *yamlnode.Error.
func Offline(ctx context.Context, file, text string, failures int) (*pb.PlanConfigResponse, error) {
	cfg, err := config.Parse(file, []byte(text), nil, controller.Sections()...)
	if err != nil {
		return nil, err
	}
	files, err := confine.New(cfg.Dirs()...)
	if err != nil {
		return nil, err
	}
	log := audit.New(audit.Options{Log: slog.New(slog.DiscardHandler)})
	core, err := controller.New(controller.Options{
		Files: files, Log: slog.New(slog.DiscardHandler),
		Dial:         func(config.Switch) ([]grpc.DialOption, error) { return nil, errors.New("no switch was asked") },
		Participants: []controller.Participant{authz.New(authz.Options{Files: files, Audit: log}), weights.New(weights.Options{Audit: log}), priority.New(nil)},
	})
	if err != nil {
		return nil, err
	}
	return core.Plan(ctx, file, []byte(text), failures)
}
