package daemon

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
)

// TestUnconfirmed: a configuration that waits for confirmation still waits after a restart, with
// its generation. If nobody confirms it, the file's configuration is in force again.
func TestUnconfirmed(t *testing.T) {
	address, state := freePort(t), filepath.Join(t.TempDir(), "state.db")
	file := func(budget int) (string, *config.Config) {
		text, _ := lonely(t, address, budget)
		text = strings.Replace(text, "controller: {", fmt.Sprintf("controller: {state: %q, ", state), 1)
		cfg, err := config.Parse("lonely.yaml", []byte(text), nil, controller.Sections()...)
		if err != nil {
			t.Fatal(err)
		}
		return text, cfg
	}
	_, own := file(10)
	try, _ := file(11)
	ctx := t.Context()

	conn, stop := serve(t, Options{Config: own})
	one, two := uint64(1), uint64(2)
	apply := func(r *pb.ApplyConfigRequest) error {
		_, err := pb.NewFabricServiceClient(conn).ApplyConfig(ctx, r)
		return err
	}
	if err := apply(&pb.ApplyConfigRequest{Config: try, ExpectGeneration: &two}); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "generation 1 is in force, not 2") {
		t.Errorf("another generation is expected: %v", err)
	}
	if err := apply(&pb.ApplyConfigRequest{Config: try, ExpectGeneration: &one, File: "try.yaml", Why: "a try", Confirm: durationpb.New(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	stop()

	conn, stop = serve(t, Options{Config: own})
	shown := func() string {
		t.Helper()
		r, err := pb.NewFabricServiceClient(conn).ListHistory(ctx, &pb.ListHistoryRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, c := range r.Configs {
			lines = append(lines, fmt.Sprint(c.Generation, " ", c.File, " ", strings.Split(c.By, ":")[0], " ", c.Why, " ", c.ConfirmUntil != nil))
		}
		return strings.Join(lines, "\n")
	}
	const before = "1 lonely.yaml controller the file at the start false\n2 try.yaml uid a try true"
	if got := shown(); got != before {
		t.Errorf("after a restart:\n%s", got)
	}
	if err := apply(&pb.ApplyConfigRequest{Config: try, ExpectGeneration: &two, Why: "again", Confirm: durationpb.New(100 * time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := pb.NewFabricServiceClient(conn).GetFabric(ctx, &pb.GetFabricRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if f.Generation == 4 {
			if !strings.Contains(f.Config, "budget: 10}") {
				t.Errorf("rolled back to\n%s", f.Config)
			}
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	const after = "1 lonely.yaml controller the file at the start false\n2 try.yaml uid a try false\n3 configuration uid again false\n" +
		"4 lonely.yaml controller generation 3 was not confirmed within 100ms false"
	if got := shown(); got != after {
		t.Errorf("after the rollback:\n%s", got)
	}
	_, err := pb.NewFabricServiceClient(conn).ConfirmConfig(ctx, &pb.ConfirmConfigRequest{Generation: 3})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a confirmation that came too late: %v", err)
	}
	stop()

	_, edited := file(12) // the file is in force again, so a restart uses a changed file
	conn, _ = serve(t, Options{Config: edited})
	f, err := pb.NewFabricServiceClient(conn).GetFabric(ctx, &pb.GetFabricRequest{})
	if err != nil || f.Generation != 5 || !strings.Contains(f.Config, "budget: 12}") {
		t.Errorf("after a restart with another file: generation %d, %v\n%s", f.GetGeneration(), err, f.GetConfig())
	}
}
