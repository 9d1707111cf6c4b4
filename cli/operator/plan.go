package operator

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/units"
)

// newPlanCommand shows what apply would change.
func newPlanCommand() *cobra.Command {
	var (
		file     string
		failures uint32
		show     bool
		p        previewFlags
		cmd      *cobra.Command
	)
	cmd = ask("plan -f FABRIC.yaml", "Show what applying a configuration would change: exit code 0 nothing, 2 something, 1 on errors", func(ctx context.Context, e *env) error {
		if err := p.check(cmd.Flags(), show, "--preview"); err != nil {
			return err
		}
		if show {
			return plan(ctx, e, file, failures, &p)
		}
		return plan(ctx, e, file, failures, nil)
	})
	fileFlag(cmd, &file)
	cmd.Flags().Uint32Var(&failures, "any-k-failures", 0, "look for routes that may deadlock while up to so many links fail: 0 to 2")
	cmd.Flags().BoolVar(&show, "preview", false, "predict what the change does to traffic, by simulation in this process")
	p.add(cmd.Flags())
	return cmd
}

// plan shows what apply would change, and with p what that does to traffic. If apply would change anything it
// returns an error for ExitChanges.
func plan(ctx context.Context, e *env, name string, failures uint32, p *previewFlags) error {
	file, text, err := command.ReadConfig(e.In, name)
	if err != nil {
		return err
	}
	r, err := e.fabric().PlanConfig(ctx, &pb.PlanConfigRequest{Config: text, File: file, Failures: failures})
	if err != nil {
		return err
	}
	changes := len(r.GetController())
	for _, s := range r.GetSwitches() {
		changes += len(s.GetChanges())
	}
	if p == nil {
		err = e.print(r, func(w io.Writer) { drawPlan(w, file, r, mostLines) })
	} else {
		err = p.print(ctx, e, r, file, text, func(w io.Writer) { drawPlan(w, file, r, fewLines) })
	}
	if err != nil {
		return err
	}
	if changes > 0 {
		return ErrChanges
	}
	return nil
}

// drawPlan lists at most so many changes of one kind to one table.
func drawPlan(w io.Writer, file string, r *pb.PlanConfigResponse, most int) {
	signs := map[pb.Change_Kind]string{pb.Change_KIND_INSERT: "+", pb.Change_KIND_MODIFY: "~", pb.Change_KIND_DELETE: "-"}
	count := map[pb.Change_Kind]int{}
	touched := 0
	for _, n := range r.GetNotes() {
		_, _ = fmt.Fprintf(w, "! %s\n", command.Clean(n))
	}
	if own := r.GetController(); len(own) > 0 {
		_, _ = fmt.Fprintln(w, "controller:")
		for _, c := range own {
			_, _ = fmt.Fprintf(w, "  %s %s\n", signs[c.GetKind()], command.Clean(c.GetText()))
		}
	}
	for _, s := range r.GetSwitches() {
		unreachable := s.GetUnreachable() != ""
		if unreachable {
			_, _ = fmt.Fprintf(w, "%s: cannot be read, so this is against an empty switch, %d to insert: %s\n", command.Clean(s.GetName()), len(s.GetChanges()), command.Clean(s.GetUnreachable()))
		} else if len(s.GetChanges())+len(s.GetNotes()) > 0 {
			_, _ = fmt.Fprintf(w, "%s:\n", command.Clean(s.GetName()))
		}
		for _, n := range s.GetNotes() {
			_, _ = fmt.Fprintf(w, "  ! %s\n", command.Clean(n))
		}
		last := run{most: most}
		for _, c := range s.GetChanges() {
			sign, ok := signs[c.GetKind()]
			if !ok {
				sign = "?"
			}
			count[c.GetKind()]++
			if unreachable { // all that it would have, which hides what is known
				continue
			}
			what, _, _ := strings.Cut(command.Clean(c.GetText()), " ")
			if last.same(w, sign, what) {
				_, _ = fmt.Fprintf(w, "  %s %s\n", sign, command.Clean(c.GetText()))
			}
		}
		last.end(w)
		if len(s.GetChanges()) > 0 {
			touched++
		}
	}
	if touched == 0 && len(r.GetController()) > 0 {
		_, _ = fmt.Fprintf(w, "No changes on switches, %d beside them.\n", len(r.GetController()))
		return
	}
	if touched == 0 {
		_, _ = fmt.Fprintf(w, "No changes: %s is what the fabric holds.\n", file)
		return
	}
	_, _ = fmt.Fprintf(w, "%d to insert, %d to modify, %d to delete on %d of %s.\n",
		count[pb.Change_KIND_INSERT], count[pb.Change_KIND_MODIFY], count[pb.Change_KIND_DELETE], touched, units.Count(len(r.GetSwitches()), "switch"))
}

// How many changes of one kind to one table are listed: a table of logarithms has thousands. Above a preview they are few, for the
// preview to be seen.
const (
	mostLines = 64
	fewLines  = 2
)

// run counts changes of one kind to one table that follow each other.
type run struct {
	sign, what string
	n, most    int
}

// same counts one more change and reports whether it is to be listed.
func (r *run) same(w io.Writer, sign, what string) bool {
	if sign != r.sign || what != r.what {
		r.end(w)
		*r = run{sign: sign, what: what, most: r.most}
	}
	r.n++
	return r.n <= r.most
}

// end writes how many changes were not listed.
func (r *run) end(w io.Writer) {
	if r.n > r.most {
		_, _ = fmt.Fprintf(w, "  %s %s … %d more\n", r.sign, r.what, r.n-r.most)
	}
}
