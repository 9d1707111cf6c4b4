package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/cli/operator/doctor"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/version"
)

func newDoctorCommand() *cobra.Command {
	var file string
	c := askWith("doctor", "Check a fabric's clocks, ports, certificates and switches", cobra.NoArgs,
		func(ctx context.Context, e *env, _ []string) error { return diagnose(ctx, e, file) })
	c.Long = "Checks the fabric from this machine. Each finding is ok, INFO, WARN or FAIL, with a remedy, or with the reason\n" +
		"why it was not checked. A finding that several switches share, such as a limit of their target, is printed once.\n" +
		"With -f it also checks the certificates, addresses and switches of a fabric file. The exit code is 1 if a check failed. doctor makes no changes."
	command.AddOutputFlag(c)
	c.Flags().StringVarP(&file, "file", "f", "", "fabric `file` whose certificates, addresses and switches to check")
	return c
}

func diagnose(ctx context.Context, e *env, file string) error {
	list := []doctor.Finding{{Area: "versions", Subject: "headgate", Verdict: doctor.OK, Text: version.String()}}
	asked, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := e.fabric().ListSwitches(asked, &pb.ListSwitchesRequest{})
	answers := err == nil
	if answers {
		list = append(list, ofController(asked, e)...)
		list = append(list, ofHosts(asked, e)...)
		list = append(list, doctor.Controller(r.GetSwitches())...)
	} else {
		f := doctor.Finding{Area: "controller", Subject: e.Server, Verdict: doctor.Fail, Text: (&callError{e.Server, err}).Error(), Remedy: "start one, or name it by --server"}
		if file != "" {
			f.Verdict = doctor.Warn // the file may be checked before there is one
		}
		list = append(list, f)
	}
	if file != "" {
		list = append(list, ofFile(ctx, file, answers)...)
	} else {
		list = append(list,
			doctor.Finding{Area: "certificates", Subject: "fabric file", Verdict: doctor.Info, Text: doctor.NotChecked + "no -f: nor its addresses"},
			doctor.Finding{Area: "MTU", Subject: "links", Verdict: doctor.Info, Text: doctor.NotChecked + "no -f: which switches to ask for their interfaces is not known"})
	}
	list = append(list, doctor.Finding{Area: "clock", Subject: "switches", Verdict: doctor.Info, Text: doctor.NotChecked + "P4Runtime does not report the time"})
	return showFindings(e, list)
}

func ofController(ctx context.Context, e *env) []doctor.Finding {
	asked := e.Now()
	f, err := e.fabric().GetFabric(ctx, &pb.GetFabricRequest{})
	answered := e.Now()
	switch {
	case err != nil:
		return []doctor.Finding{{Area: "clock", Subject: "controller", Verdict: doctor.Info, Text: doctor.NotChecked + (&callError{e.Server, err}).Error()}}
	case f.GetTime() == nil:
		return []doctor.Finding{{Area: "clock", Subject: "controller", Verdict: doctor.Info, Text: doctor.NotChecked + "this controller version does not report its time and build"}}
	}
	return []doctor.Finding{doctor.Clock(f.GetTime().AsTime(), asked, answered), doctor.Build(f.GetBuild(), version.String())}
}

func ofHosts(ctx context.Context, e *env) []doctor.Finding {
	r, err := e.host().ListFlows(ctx, &pb.ListFlowsRequest{})
	if err != nil {
		return []doctor.Finding{{Area: "clock", Subject: "hosts", Verdict: doctor.Info, Text: doctor.NotChecked + (&callError{e.Server, err}).Error()}}
	}
	return doctor.HostClocks(r.GetHosts())
}

func ofFile(ctx context.Context, file string, answers bool) []doctor.Finding {
	fail := func(err error, remedy string) []doctor.Finding {
		return []doctor.Finding{{Area: "configuration", Subject: file, Verdict: doctor.Fail, Text: strings.ReplaceAll(err.Error(), "\n", "; "), Remedy: remedy}}
	}
	cfg, err := config.Load(config.Options{File: file, Sections: controller.Sections()})
	if err != nil {
		return fail(err, "correct the file; `headgate explain KEY` lists the allowed values")
	}
	dirs, err := confine.New(cfg.Dirs()...)
	if err != nil {
		return fail(err, "correct controller.files")
	}
	list := doctor.Certificates(cfg, dirs, time.Now())
	list = append(list, doctor.Listeners(ctx, cfg, answers)...)
	list = append(list, doctor.Switches(ctx, cfg, dirs)...)
	list = append(list, doctor.Lossless(cfg)...)
	return append(list, doctor.Frames(ctx, cfg, dirs)...)
}

func showFindings(e *env, list []doctor.Finding) error {
	failed := 0
	for _, f := range list {
		if f.Verdict == doctor.Fail {
			failed++
		}
	}
	var err error
	if e.Format == command.Table {
		err = e.Tabs(func(w io.Writer) {
			row(w, "VERDICT", "AREA", "SUBJECT", "WHAT")
			for _, f := range shared(list) {
				drawFinding(w, f)
			}
		})
	} else {
		var text []byte
		if text, err = json.Marshal(list); err == nil {
			err = e.Raw(text)
		}
	}
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d checks failed", failed, len(list)))
	}
	return err
}

// The widest cells of doctor's table, which is 120 columns wide with the verdict, the area and spaces.
const (
	widestSubject = 32
	widestText    = 60
)

// drawFinding writes a finding in lines of at most 120 columns, its remedy behind an arrow.
func drawFinding(w io.Writer, f doctor.Finding) {
	text := strings.Split(ansi.Wrap(f.Text, widestText, ""), "\n")
	if f.Remedy != "" {
		text = append(text, strings.Split(ansi.Wrap("→ "+f.Remedy, widestText, ""), "\n")...)
	}
	subject := ansi.Truncate(f.Subject, widestSubject, "…")
	row(w, f.Verdict, f.Area, subject, text[0])
	for _, line := range text[1:] {
		_, _ = fmt.Fprintf(w, "\t\t\t%s\n", command.Clean(line))
	}
}

// shared merges findings that differ only in the switch, so that a fabric has one row for each kind of target.
func shared(list []doctor.Finding) (out []doctor.Finding) {
	at, subjects := map[doctor.Finding]int{}, []*column{}
	for _, f := range list {
		key := f
		key.Subject = ""
		key.Remedy = strings.ReplaceAll(f.Remedy, f.Subject, "NAME")
		i, seen := at[key]
		if !seen {
			i = len(out)
			at[key] = i
			out, subjects = append(out, f), append(subjects, &column{})
		} else {
			out[i].Remedy = key.Remedy
		}
		subjects[i].switches = append(subjects[i].switches, f.Subject)
	}
	for i := range out {
		out[i].Subject = subjects[i].head()
	}
	return out
}
