package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/daemon"
	"github.com/headgate/headgate/units"
)

type planOptions struct {
	file          string
	failures      uint32
	show, offline bool
	preview       previewFlags
}

func newPlanCommand() *cobra.Command {
	var o planOptions
	var cmd *cobra.Command
	cmd = ask("plan -f FABRIC.yaml", "Show what applying a configuration would change: exit code 0 nothing, 2 something, 1 on errors", func(ctx context.Context, e *env) error {
		if err := o.preview.check(cmd.Flags(), o.show, "--preview"); err != nil {
			return err
		}
		return plan(ctx, e, &o)
	})
	cmd.Long = "Shows what `headgate apply` would change: keys of the configuration, their effects in the controller and on\n" +
		"hosts, and each entry of each switch: + marks a new one, ~ a changed one and - a deleted one. The exit code\n" +
		"is 0 if nothing would change, 2 if something would, 1 on errors.\n\n" +
		"If no controller is named and none answers, or with --offline, it checks the file and shows what\n" +
		"empty switches would get, table by table; -o wide lists the entries."
	cmd.Example = `  headgate plan -f examples/leaf-spine.yaml
  headgate plan -f examples/leaf-spine.yaml --offline -o wide
  headgate plan -f examples/leaf-spine.yaml -o json`
	fileFlag(cmd, &o.file)
	cmd.Flags().Uint32Var(&o.failures, "any-k-failures", 0, "look for routes that may deadlock with up to this many failed links: 0 to 2")
	cmd.Flags().BoolVar(&o.show, "preview", false, "predict what the change does to traffic, by simulation in this process")
	cmd.Flags().BoolVar(&o.offline, "offline", false, "ask no controller: check the file and show what empty switches would get")
	o.preview.add(cmd.Flags())
	return cmd
}

// plan shows what apply would change, and with o.show also the effect on traffic. If apply would change
// anything it returns ErrChanges.
func plan(ctx context.Context, e *env, o *planOptions) error {
	file, text, err := command.ReadConfig(e.In, o.file)
	if err != nil {
		return err
	}
	var r *pb.PlanConfigResponse
	why := "--offline"
	if !o.offline {
		r, err = e.fabric().PlanConfig(ctx, &pb.PlanConfigRequest{Config: text, File: file, Failures: o.failures})
	}
	offline := o.offline
	if _, unreached := unreachable(status.Convert(err).Message()); status.Code(err) == codes.Unavailable && unreached && !e.Named && !o.show {
		offline, why = true, "no controller answers at "+e.Server
	}
	if offline {
		r, err = daemon.Offline(ctx, file, text, int(o.failures))
	}
	if err != nil {
		return err
	}
	draw := func(w io.Writer) { drawPlan(w, file, r, mostLines) }
	switch {
	case o.show && offline:
		return errors.New("--preview: needs a controller, which knows the traffic")
	case o.show:
		err = o.preview.print(ctx, e, r, file, text, func(w io.Writer) { drawPlan(w, file, r, fewLines) })
	case offline && !e.Wide:
		err = e.print(r, func(w io.Writer) { drawHolds(w, file, why, r) })
	default:
		err = e.print(r, draw)
	}
	if err == nil && (len(r.GetController()) > 0 || slices.ContainsFunc(r.GetSwitches(), func(s *pb.SwitchPlan) bool { return len(s.GetChanges()) > 0 })) {
		err = ErrChanges
	}
	return err
}

var signs = map[pb.Change_Kind]string{pb.Change_KIND_INSERT: "+", pb.Change_KIND_MODIFY: "~", pb.Change_KIND_DELETE: "-"}

// drawPlan lists at most most changes of one kind to one table.
func drawPlan(w io.Writer, file string, r *pb.PlanConfigResponse, most int) {
	count := map[pb.Change_Kind]int{}
	touched := 0
	drawNotes(w, r)
	if own := r.GetController(); len(own) > 0 {
		_, _ = fmt.Fprintln(w, "controller:")
		drawChanges(w, own, most)
	}
	for _, s := range r.GetSwitches() {
		for _, c := range s.GetChanges() {
			count[c.GetKind()]++
		}
		if len(s.GetChanges()) > 0 {
			touched++
		}
		if s.GetUnreachable() != "" {
			_, _ = fmt.Fprintf(w, "%s: cannot be read, so this is against an empty switch, %d to insert: %s\n", command.Clean(s.GetName()), len(s.GetChanges()), command.Clean(s.GetUnreachable()))
		} else if len(s.GetChanges()) > 0 { // a switch that cannot be read shows all entities that it would have
			_, _ = fmt.Fprintf(w, "%s:\n", command.Clean(s.GetName()))
			drawChanges(w, s.GetChanges(), most)
		}
	}
	if touched+len(r.GetController()) == 0 {
		_, _ = fmt.Fprintf(w, "No changes: %s is what the fabric holds.\n", file)
		return
	}
	_, _ = fmt.Fprintf(w, "Plan: %d to insert, %d to modify, %d to delete on %d of %s; %s beside them.\n",
		count[pb.Change_KIND_INSERT], count[pb.Change_KIND_MODIFY], count[pb.Change_KIND_DELETE], touched, units.Count(len(r.GetSwitches()), "switch"), units.Count(len(r.GetController()), "change"))
}

// drawNotes lists the notes about the fabric and about switches. A note that is the same for several switches
// is listed once.
func drawNotes(w io.Writer, r *pb.PlanConfigResponse) {
	for _, n := range r.GetNotes() {
		_, _ = fmt.Fprintf(w, "! %s\n", command.Clean(n))
	}
	var order []string
	of := map[string]*column{}
	for _, s := range r.GetSwitches() {
		for _, n := range s.GetNotes() {
			if of[n] == nil {
				order, of[n] = append(order, n), &column{}
			}
			of[n].switches = append(of[n].switches, s.GetName())
		}
	}
	for _, n := range order {
		_, _ = fmt.Fprintf(w, "! %s: %s\n", command.Clean(of[n].head()), command.Clean(n))
	}
}

// How many changes of one kind to one table are listed, because a table of logarithms has thousands. Above a
// preview they are few, so that the preview stays visible.
const (
	mostLines = 64
	fewLines  = 2
)

// drawChanges lists at most most changes of one kind to one table that follow each other.
func drawChanges(w io.Writer, list []*pb.Change, most int) {
	for len(list) > 0 {
		first, n := list[0], 0
		for n < len(list) && list[n].GetKind() == first.GetKind() && list[n].GetTable() == first.GetTable() {
			if n++; n <= most {
				_, _ = fmt.Fprintf(w, "  %s %s\n", signs[first.GetKind()], command.Clean(list[n-1].GetText()))
			}
		}
		if n > most {
			_, _ = fmt.Fprintf(w, "  %s %s … %d more\n", signs[first.GetKind()], command.Clean(first.GetTable()), n-most)
		}
		list = list[n:]
	}
}

// drawHolds shows how much each table of empty switches would hold. Switches that would hold the same share
// their rows.
func drawHolds(w io.Writer, file, why string, r *pb.PlanConfigResponse) {
	_, _ = fmt.Fprintf(w, "%s has no faults. This is what empty switches would get (%s):\n\n", command.Clean(file), command.Clean(why))
	drawNotes(w, r)
	row(w, "SWITCHES", "TABLE", "ENTRIES", "SIZE", "USED")
	var order []string
	tables, groups := map[string][]*pb.TableUse{}, map[string]*column{}
	for _, s := range r.GetSwitches() {
		key := fmt.Sprint(s.GetTables())
		if groups[key] == nil {
			order = append(order, key)
			tables[key], groups[key] = s.GetTables(), &column{}
		}
		groups[key].switches = append(groups[key].switches, s.GetName())
	}
	for _, key := range order {
		for _, t := range tables[key] {
			row(w, groups[key].head(), t.GetName(), t.GetEntries(), strings.TrimPrefix(fmt.Sprint(t.GetSize()), "0"), share(t))
		}
	}
	own := r.GetController()
	for len(own) > 0 {
		n := 1
		for n < len(own) && own[n].GetTable() == own[0].GetTable() {
			n++
		}
		row(w, "controller", own[0].GetTable(), n, "", "")
		own = own[n:]
	}
}
