package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/controller/state/history"
	"github.com/headgate/headgate/internal/yamlnode"
)

// begin applies the configuration to start with: the operator's file, or what was applied
// through the API after it. Switches get it when the core runs.
//
// A file may have become impossible since it was last read, for example with fewer priorities than are allocated.
// Then the configuration applied last stays, and log, events and /readyz report that until a file is accepted. With
// --replace an impossible file is an error. So is a file that cannot be stored, for example on a full disk.
//
// In a cluster only the first leader's file is applied.
func (d *daemon) begin(ctx context.Context, saved history.Entry) error {
	if d.terms != nil && saved.Generation != 0 {
		return d.resume(ctx, saved)
	}
	if !d.Replace && saved.Confirm != 0 { // a restart confirms nothing
		d.Log.Warn("the configuration in force waits to be confirmed", "file", saved.File, "generation", saved.Generation, "applied", saved.Applied, "within", saved.Confirm)
		return d.resume(ctx, saved)
	}
	if !d.Replace && saved.ByAPI && saved.YAML != string(d.Config.Source) {
		d.Log.Warn("another configuration than the file's stays: it was applied through the API later; --replace applies the file",
			"file", d.Config.File, "stays", saved.File, "generation", saved.Generation, "applied", saved.Applied)
		return d.resume(ctx, saved)
	}
	_, err := d.apply(history.WithNote(ctx, history.Note{By: "controller", Why: "the file at the start"}), d.Config) // no switch can hold it before the core runs
	var faults *yamlnode.Error
	unkept := err != nil && d.db.Err() != nil
	switch {
	case !unkept && (!errors.As(err, &faults) || saved.YAML == string(d.Config.Source)), saved.YAML == "":
		return err
	case d.Replace:
		return fmt.Errorf("%w; without --replace the last applied configuration, of %s, stays in force, and the cause can be removed", err, saved.File)
	}
	if err := d.resume(ctx, saved); err != nil || saved.YAML == string(d.Config.Source) {
		return err
	}
	err = fmt.Errorf("%w; the last applied configuration, of %s, stays in force: correct the file, or remove the cause, and send SIGHUP", err, saved.Applied.Format(time.DateTime))
	d.refused.Store(&err)
	d.Log.Error("the file was refused", "err", err)
	d.core.Events().Publish(&pb.Event{Time: pb.Stamp(time.Now()), Severity: pb.Event_SEVERITY_ERROR, Subject: d.Config.File, Kind: "config.refused", Message: err.Error()})
	return nil
}

// resume applies the last applied configuration.
func (d *daemon) resume(ctx context.Context, saved history.Entry) error {
	cfg, err := d.parse(saved)
	if err != nil {
		return fmt.Errorf("the last applied configuration cannot be applied again; start with --replace to apply %s: %w", d.Config.File, err)
	}
	if !saved.ByAPI {
		d.file.Store(cfg) // the configuration came from the file, so the next file replaces it
	}
	return d.core.Resume(ctx, cfg)
}

// parse reads a saved configuration. Keys that a running process cannot change keep their values.
func (o Options) parse(saved history.Entry) (*config.Config, error) {
	cfg, err := config.Parse(saved.File, []byte(saved.YAML), o.Flags, controller.Sections()...)
	if err != nil {
		return nil, err
	}
	own, was := &cfg.Controller, o.Config.Controller
	own.Listen, own.Metrics, own.State, own.Audit, own.TLS, own.Files, own.Cluster = was.Listen, was.Metrics, was.State, was.Audit, was.TLS, was.Files, was.Cluster
	return cfg, nil
}

// rollback applies a configuration in place of one that nobody confirmed. If it came from the file, it counts as the
// file's again.
func (d *daemon) rollback(ctx context.Context, to history.Entry) error {
	cfg, err := d.parse(to)
	if err != nil {
		return err
	}
	file := d.file.Load()
	if !to.ByAPI {
		file = cfg
	}
	_, err = d.applyAs(ctx, cfg, file)
	return err
}

// apply makes the operator's file the configuration, and returns the switches' results.
func (d *daemon) apply(ctx context.Context, cfg *config.Config) ([]*pb.SwitchResult, error) {
	return d.applyAs(ctx, cfg, cfg)
}

func (d *daemon) applyAs(ctx context.Context, cfg, file *config.Config) ([]*pb.SwitchResult, error) {
	was := d.core.Fabric()
	before := d.file.Swap(file)
	generation, results, err := d.core.ApplyConfig(ctx, cfg)
	if err != nil {
		d.file.Store(before)
	}
	d.audit.Record(audit.Entry{
		Peer: "controller", What: audit.Apply, Subject: cfg.File, Previous: float64(was.Generation), Value: float64(generation),
		Before: audit.Digest(was.Config), After: audit.Digest(string(cfg.Source)),
	}, err)
	return results, err
}

// save keeps an applied configuration.
func (d *daemon) save(ctx context.Context, cfg *config.Config, generation uint64) error {
	err := d.history.Save(ctx, history.Entry{
		File: cfg.File, YAML: string(cfg.Source), Generation: generation, Applied: time.Now(), ByAPI: cfg != d.file.Load(),
	})
	if err == nil {
		d.refused.Store(nil)
	}
	return err
}

// reloads reads the file again whenever it is asked to, until ctx ends. Errors of the file are logged, and the
// configuration stays as it is.
func (d *daemon) reloads(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.Reload:
		}
		if d.terms != nil {
			d.Log.Error(noReload)
			continue
		}
		cfg, err := d.Load()
		if err == nil {
			err = d.reload(ctx, cfg)
		}
		if err != nil {
			d.Log.Error("the file was not reloaded", "err", err)
			continue
		}
		d.Log.Info("the file was reloaded", "file", cfg.File, "generation", d.core.Fabric().Generation)
	}
}

func (d *daemon) reload(ctx context.Context, cfg *config.Config) error {
	if now := d.core.Config(); now != d.file.Load() && !d.Replace && string(now.Source) != string(cfg.Source) {
		return fmt.Errorf("%s was applied through the API later: apply %s with `headgate apply`, or restart with --replace", now.File, cfg.File)
	}
	results, err := d.apply(history.WithNote(ctx, history.Note{By: "controller", Why: "the file was read again"}), cfg)
	for _, r := range results {
		if r.Error != "" {
			d.Log.Info("the switch does not hold its configuration yet", "switch", r.Name, "err", r.Error)
		}
	}
	return err
}

// process holds the keys that a running process cannot change. It takes part in every
// apply to refuse that.
type process struct{ config.Controller }

// fixed returns the values that a running process cannot change, by key.
func fixed(c config.Controller) map[string]string {
	return map[string]string{
		"controller.listen": c.Listen, "controller.metrics": c.Metrics, "controller.state": c.State, "controller.audit": c.Audit,
		"controller.tls.cert": c.TLS.Cert, "controller.tls.key": c.TLS.Key, "controller.tls.client_ca": c.TLS.ClientCA,
		"controller.cluster": fmt.Sprint(c.Cluster), "controller.files": strings.Join(c.Files, ", "),
	}
}

// Check implements controller.Participant.
func (p process) Check(cfg *config.Config) error {
	is, want := fixed(cfg.Controller), fixed(p.Controller)
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if cfg.Given(key) && is[key] != want[key] {
			return yamlnode.Fault{Field: key, Text: fmt.Sprintf("is %q, which a running controller cannot change: want %q, or no such key, or a restart with this file", is[key], want[key])}
		}
	}
	return nil
}

// Configure implements controller.Participant.
func (process) Configure(*config.Config) (undo func(), err error) { return func() {}, nil }
