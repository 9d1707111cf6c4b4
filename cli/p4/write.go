package p4

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/session"
)

func newWriteCommand() *cobra.Command {
	var forms strings.Builder
	for _, k := range pipeline.Kinds {
		fmt.Fprintf(&forms, "  %s\n", k.Form)
	}
	cmd := &cobra.Command{
		Use:   "write insert|modify|delete ENTITY",
		Short: "Insert, modify or delete entities",
		Long: "Insert, modify or delete entities. ENTITY is one of\n\n" + forms.String() + `
A key of an LPM table is written VALUE/LENGTH, of a ternary one VALUE&MASK, of a range LOW..HIGH;
a key that is left out matches anything. An entry of a table with an action profile has member=ID or
group=ID in place of an action. The switch takes each update by itself: those that it refuses are
listed, the others are done.`,
		Example: `  headgate p4 write insert ipv4_lpm hdr.ipv4.dstAddr=10.0.1.0/24 ipv4_forward dstAddr=08:00:00:00:01:11 port=1
  headgate p4 write delete ipv4_lpm hdr.ipv4.dstAddr=10.0.1.0/24
  headgate p4 write --dry-run -f entries.txt`,
		ValidArgsFunction: completeWrite,
	}
	file := cmd.Flags().StringP("file", "f", "", "`file` with a line for each update, as insert ENTITY; - is the input; # begins a comment")
	dry := cmd.Flags().Bool("dry-run", false, "check against the P4Info and print the updates, but write none")
	cmd.RunE = run(func(ctx context.Context, t *target, args []string) error { return write(ctx, t, args, *file, *dry) })
	return cmd
}

func write(ctx context.Context, t *target, args []string, file string, dry bool) error {
	lines := []line{{words: args}}
	switch {
	case file != "" && len(args) > 0:
		return errors.New("write: want an entity or -f, not both")
	case file != "":
		var err error
		if lines, err = readLines(t.In, file); err != nil {
			return err
		}
	case len(args) == 0:
		return errors.New("write: nothing to do: want insert, modify or delete with an entity, or -f FILE")
	}
	p, err := t.pipeline(ctx)
	if err != nil {
		return err
	}
	var updates []*p4v1.Update
	var errs []error
	for _, l := range lines {
		u, err := parseUpdate(p, l.words)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s%w", l.at, err))
			continue
		}
		updates = append(updates, u)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if dry {
		return t.printUpdates(p, updates)
	}
	return t.asPrimary(ctx, func(ctx context.Context, _ *session.Session, c *session.Client, _ <-chan error) error {
		err := c.Write(ctx, updates)
		var refused *session.WriteError
		if errors.As(err, &refused) && len(updates) > 1 {
			for _, f := range refused.Failed {
				fmt.Fprintf(t.Out, "refused: %s %s: %v: %s\n", verb(f.Update), p.Describe(f.Update.GetEntity()), f.Code, f.Message)
			}
			return fmt.Errorf("the switch refused %d of %d updates, and applied the others", len(refused.Failed), refused.Total)
		}
		if err != nil {
			return err
		}
		return t.printUpdates(p, updates)
	})
}

func verb(u *p4v1.Update) string { return strings.ToLower(u.GetType().String()) }

type update struct {
	Type   string         `json:"type"`
	Entity pipeline.Named `json:"entity"`
}

func (t *target) printUpdates(p *pipeline.Pipeline, updates []*p4v1.Update) error {
	list := make([]update, len(updates))
	for i, u := range updates {
		list[i] = update{verb(u), p.Named(u.GetEntity())}
	}
	if t.Format != command.Table {
		return t.Value(list, nil)
	}
	for _, u := range list {
		if _, err := fmt.Fprintln(t.Out, u.Type, u.Entity); err != nil {
			return err
		}
	}
	return nil
}

func parseUpdate(p *pipeline.Pipeline, words []string) (*p4v1.Update, error) {
	types := map[string]p4v1.Update_Type{"insert": p4v1.Update_INSERT, "modify": p4v1.Update_MODIFY, "delete": p4v1.Update_DELETE}
	typ, ok := types[words[0]]
	if !ok {
		return nil, fmt.Errorf("%q is not allowed: want insert, modify or delete", words[0])
	}
	e, err := p.Parse(words[1:], typ == p4v1.Update_DELETE)
	if err != nil {
		return nil, err
	}
	return &p4v1.Update{Type: typ, Entity: e}, nil
}

// line is a line of a file of updates; at names it, with a colon.
type line struct {
	at    string
	words []string
}

func readLines(in io.Reader, name string) ([]line, error) {
	var text []byte
	var err error
	if name == "-" {
		text, err = io.ReadAll(io.LimitReader(in, maxFile))
	} else {
		text, err = readFile(name)
	}
	if err != nil {
		return nil, err
	}
	var list []line
	s := bufio.NewScanner(bytes.NewReader(text))
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		words, _, _ := strings.Cut(s.Text(), "#")
		if f := strings.Fields(words); len(f) > 0 {
			list = append(list, line{fmt.Sprintf("%s:%d: ", name, n), f})
		}
	}
	if s.Err() != nil {
		return nil, fmt.Errorf("%s: %w", name, s.Err())
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no updates", name)
	}
	return list, nil
}
