package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	pb "github.com/headgate/headgate/api/headgate/v1"
)

// maxConfig bounds a configuration file, in bytes: gRPC's messages of 4 MiB less some room.
const maxConfig = 4<<20 - 4096

// readConfig reads a configuration, "-" from the input; what is in it is the controller's to judge.
func (e *Env) readConfig(name string) (file, text string, err error) {
	var data []byte
	if name == "-" {
		name = "stdin"
		data, err = io.ReadAll(io.LimitReader(e.In, maxConfig+1))
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return name, "", err
	}
	if len(data) > maxConfig {
		return name, "", fmt.Errorf("%s: %d bytes are too many: want at most %d", name, len(data), maxConfig)
	}
	if !utf8.Valid(data) {
		line := 1
		for l := range bytes.Lines(data) {
			if !utf8.Valid(l) {
				break
			}
			line++
		}
		return name, "", fmt.Errorf("%s:%d: not UTF-8 text", name, line)
	}
	return name, string(data), nil
}

// Plan shows what Apply would do. Its error maps to ExitChanges when that is something.
func Plan(ctx context.Context, e *Env, name string) error {
	file, text, err := e.readConfig(name)
	if err != nil {
		return err
	}
	r, err := e.fabric().PlanConfig(ctx, &pb.PlanConfigRequest{Config: text, File: file})
	if err != nil {
		return err
	}
	changes := 0
	for _, s := range r.GetSwitches() {
		changes += len(s.GetChanges())
	}
	if err := e.print(r, func(w io.Writer) { drawPlan(w, file, r) }); err != nil {
		return err
	}
	if changes > 0 {
		return errChanges
	}
	return nil
}

func drawPlan(w io.Writer, file string, r *pb.PlanConfigResponse) {
	signs := map[pb.Change_Kind]string{pb.Change_KIND_INSERT: "+", pb.Change_KIND_MODIFY: "~", pb.Change_KIND_DELETE: "-"}
	count := map[pb.Change_Kind]int{}
	touched := 0
	for _, s := range r.GetSwitches() {
		if s.GetUnreachable() != "" {
			_, _ = fmt.Fprintf(w, "%s: cannot be read, so this is against an empty switch: %s\n", clean(s.GetName()), clean(s.GetUnreachable()))
		} else if len(s.GetChanges()) > 0 {
			_, _ = fmt.Fprintf(w, "%s:\n", clean(s.GetName()))
		}
		var last run
		for _, c := range s.GetChanges() {
			sign, ok := signs[c.GetKind()]
			if !ok {
				sign = "?"
			}
			count[c.GetKind()]++
			what, _, _ := strings.Cut(clean(c.GetText()), " ")
			if last.same(w, sign, what) {
				_, _ = fmt.Fprintf(w, "  %s %s\n", sign, clean(c.GetText()))
			}
		}
		last.end(w)
		if len(s.GetChanges()) > 0 {
			touched++
		}
	}
	if touched == 0 {
		_, _ = fmt.Fprintf(w, "No changes: %s is what the fabric holds.\n", file)
		return
	}
	_, _ = fmt.Fprintf(w, "%d to insert, %d to modify, %d to delete on %d of %s.\n",
		count[pb.Change_KIND_INSERT], count[pb.Change_KIND_MODIFY], count[pb.Change_KIND_DELETE], touched, switches(len(r.GetSwitches())))
}

// mostLines is how many changes of one kind to one table are written out: tables of
// logarithms have thousands.
const mostLines = 64

// run counts changes of one kind to one table that follow each other.
type run struct {
	sign, what string
	n          int
}

// same takes one more and reports whether it is to be written out.
func (r *run) same(w io.Writer, sign, what string) bool {
	if sign != r.sign || what != r.what {
		r.end(w)
		*r = run{sign: sign, what: what}
	}
	r.n++
	return r.n <= mostLines
}

// end says how many were not written out.
func (r *run) end(w io.Writer) {
	if r.n > mostLines {
		_, _ = fmt.Fprintf(w, "  %s %s … %d more\n", r.sign, r.what, r.n-mostLines)
	}
}

func switches(n int) string {
	if n == 1 {
		return "1 switch"
	}
	return fmt.Sprintf("%d switches", n)
}

// Apply makes a configuration the desired one. A switch that does not hold it afterwards is
// shown and makes the command fail; the controller keeps trying.
func Apply(ctx context.Context, e *Env, name string) error {
	file, text, err := e.readConfig(name)
	if err != nil {
		return err
	}
	r, err := e.fabric().ApplyConfig(ctx, &pb.ApplyConfigRequest{Config: text, File: file})
	if err != nil {
		return err
	}
	err = e.print(r, func(w io.Writer) {
		row(w, "SWITCH", "INSERTED", "MODIFIED", "DELETED", "RESULT")
		for _, s := range r.GetSwitches() {
			result := s.GetError()
			if result == "" {
				result = "ok"
			}
			row(w, s.GetName(), s.GetInserted(), s.GetModified(), s.GetDeleted(), result)
		}
		_, _ = fmt.Fprintf(w, "%s is generation %d.\n", file, r.GetGeneration())
	})
	if err != nil {
		return err
	}
	failed := 0
	for _, s := range r.GetSwitches() {
		if s.GetError() != "" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s is the desired configuration, but %d of %s did not take it yet; the controller keeps trying", file, failed, switches(len(r.GetSwitches())))
	}
	return nil
}

// SetLink takes the links between two nodes out of service, or back into it.
func SetLink(ctx context.Context, e *Env, a, b string, up bool) error {
	r, err := e.fabric().SetLink(ctx, &pb.SetLinkRequest{A: a, B: b, Up: up})
	if err != nil {
		return err
	}
	return e.print(r, func(w io.Writer) { _, _ = fmt.Fprintf(w, "link %s %s is %s\n", clean(a), clean(b), upDown(up)) })
}
