package daemon

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz"
	"github.com/headgate/headgate/controller/config"
)

// TestRestartKeepsWhatWasAsked: a restart keeps links out of service and allocated priorities. It
// keeps a configuration that was applied through the API after the file, unless --replace is given.
// The audit log has all of it.
func TestRestartKeepsWhatWasAsked(t *testing.T) {
	address, health, state := freePort(t), freePort(t), filepath.Join(t.TempDir(), "state.db")
	file := func(budget int) (string, *config.Config) {
		text, _ := lonely(t, address, budget)
		text = strings.Replace(text, "controller: {", fmt.Sprintf("prioplus: {base_rtt: 12us}\ncontroller: {state: %q, ", state), 1)
		text = strings.Replace(text, "127.0.0.1:0", health, 1)
		cfg, err := config.Parse("lonely.yaml", []byte(text), nil, controller.Sections()...)
		if err != nil {
			t.Fatal(err)
		}
		return text, cfg
	}
	_, own := file(10)
	other, _ := file(11)
	ctx := t.Context()
	expect := func(when string, conn *grpc.ClientConn, budget int, generation uint64) {
		t.Helper()
		f, err := pb.NewFabricServiceClient(conn).GetFabric(ctx, &pb.GetFabricRequest{})
		if err != nil || !strings.Contains(f.GetConfig(), fmt.Sprintf("budget: %d}", budget)) || f.Generation != generation || f.Links[0].State != pb.PortStatus_STATE_DOWN {
			t.Errorf("%s: generation %d, links %v, %v:\n%s", when, f.GetGeneration(), f.GetLinks(), err, f.GetConfig())
		}
		c, err := pb.NewPriorityServiceClient(conn).ListPriorities(ctx, &pb.ListPrioritiesRequest{})
		if err != nil || c.Channels[2].Application != "web" {
			t.Errorf("%s: channels %v, %v", when, c, err)
		}
	}

	conn, stop := serve(t, Options{Config: own})
	fabric := pb.NewFabricServiceClient(conn)
	if _, err := pb.NewPriorityServiceClient(conn).AllocatePriority(ctx, &pb.AllocatePriorityRequest{Application: "web", Priority: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := fabric.SetLink(ctx, &pb.SetLinkRequest{A: "s1", B: "h1"}); err != nil {
		t.Fatal(err)
	}
	expect("at first", conn, 10, 1)
	moved := strings.Replace(other, address, "127.0.0.1:1", 1)
	_, err := fabric.ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: moved, File: "moved.yaml"})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `controller.listen: is "127.0.0.1:1", which a running controller cannot change`) {
		t.Errorf("another address of the API: %v", err)
	}
	if _, err := fabric.ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: other, File: "other.yaml"}); err != nil {
		t.Fatal(err)
	}
	stop()

	hangup, files := make(chan os.Signal), make(chan *config.Config)
	options := Options{Config: own, Reload: hangup, Load: func() (*config.Config, error) {
		if cfg := <-files; cfg != nil {
			return cfg, nil
		}
		return nil, errors.New("no such file")
	}}
	reload := func(cfg *config.Config) {
		hangup <- syscall.SIGHUP
		files <- cfg
		hangup <- syscall.SIGHUP // taken once the first one ends
		files <- nil
	}
	conn, stop = serve(t, options)
	expect("after a restart", conn, 11, 2)
	reload(own)
	expect("after a reload of a file that was overruled", conn, 11, 2)
	stop()

	conn, stop = serve(t, Options{Config: own, Replace: true})
	expect("with --replace", conn, 10, 3)
	stop()
	conn, stop = serve(t, options)
	expect("the file goes on", conn, 10, 4)
	_, edited := file(12)
	reload(edited)
	expect("after a reload", conn, 12, 5)

	// If the file has become invalid, it is refused and the last applied configuration stays in
	// force until the file is repaired. With --replace the start fails.
	stop()
	text, _ := file(13)
	few, err := config.Parse("lonely.yaml", []byte(strings.Replace(text, "base_rtt: 12us", "base_rtt: 12us, priorities: 2", 1)), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	const allocated = `prioplus.priorities: gives 2 priorities: application "web" has priority 3, release it first`
	if err := Run(ctx, Options{Config: few, Replace: true, Loopback: authz.Admin}); err == nil || !strings.Contains(err.Error(), allocated) || !strings.Contains(err.Error(), "without --replace") {
		t.Errorf("an order to have it: %v", err)
	}
	options.Config = few
	conn, stop = serve(t, options)
	expect("the file is refused", conn, 12, 5)
	if got := readiness(t, health); !strings.Contains(got, allocated) || !strings.Contains(got, "SIGHUP") {
		t.Errorf("readiness: %s", got)
	}
	_, mended := file(14)
	reload(mended)
	expect("the file was mended", conn, 14, 6)
	stop()
	options.Config = mended
	conn, _ = serve(t, options)
	expect("the mended file", conn, 14, 7)

	var lines []string
	audit, err := pb.NewWeightServiceClient(conn).ListAudit(ctx, &pb.ListAuditRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range audit.Entries {
		if e.What != "budget" {
			lines = append(lines, fmt.Sprint(e.What, " ", e.Subject, e.Application, " ", e.Value, " ", e.Refused != ""))
		}
	}
	want := []string{
		"apply lonely.yaml 1 false", "priority web 3 false", "link down s1 h1 0 false", "apply moved.yaml 0 true", "apply other.yaml 2 false",
		"apply lonely.yaml 3 false", "apply lonely.yaml 4 false", "apply lonely.yaml 5 false",
		"apply lonely.yaml 0 true", "apply lonely.yaml 0 true", "apply lonely.yaml 6 false", "apply lonely.yaml 7 false",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("audit log:\n%s", got)
	}
}

// readiness returns the answer of /readyz.
func readiness(t *testing.T, address string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // keeps no connection open
	r, err := client.Get("http://" + address + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
