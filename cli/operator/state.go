package operator

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/state/store"
)

func newStateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "state",
		Short: "Check, back up or restore a controller's state file (controller.state)",
	}
	command.AddOutputFlag(c)
	backup := askWith("", "", nil, func(ctx context.Context, e *env, args []string) error { return backupState(ctx, e, args[0]) })
	return command.OneOf(c,
		&cobra.Command{
			Use: "check FILE", Short: "Check a state file or a backup, of this version or an older one; a controller may have it open", Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				sum, err := store.Check(args[0])
				if err != nil {
					return err
				}
				return printFile(c, stateFile{File: args[0], Summary: sum}, "%s is sound: %v\n", args[0], sum)
			},
		},
		&cobra.Command{
			Use: "backup [FILE] COPY", Short: "Copy a state file, or the running controller's state, to a new file, and check the copy", Args: cobra.RangeArgs(1, 2),
			RunE: func(c *cobra.Command, args []string) error {
				if len(args) == 1 {
					return backup.RunE(c, args)
				}
				sum, err := store.Backup(args[0], args[1])
				if err != nil {
					return err
				}
				return printFile(c, stateFile{args[1], args[0], "", sum}, "%s is a copy of %s: %v\n", args[1], args[0], sum)
			},
		},
		&cobra.Command{
			Use: "restore COPY FILE", Short: "Check a backup and replace a state file by a copy of it; no controller may have the state file open", Args: cobra.ExactArgs(2),
			RunE: func(c *cobra.Command, args []string) error {
				sum, old, err := store.Restore(args[0], args[1])
				if err != nil {
					return err
				}
				was := ""
				if old != "" {
					was = "; the old file is " + old
				}
				return printFile(c, stateFile{args[1], args[0], old, sum}, "%s is a copy of %s: %v%s\n", args[1], args[0], sum, was)
			},
		},
	)
}

type stateFile struct {
	File     string        `json:"file"`
	CopyOf   string        `json:"copy_of,omitempty"`
	Replaced string        `json:"replaced,omitempty"` // the new name of the replaced file
	Summary  store.Summary `json:"summary"`
}

// printFile writes the action on a file, as a line of text or in the format of -o.
func printFile(c *cobra.Command, v any, format string, args ...any) error {
	return command.Print(c, v, func(w io.Writer) { _, _ = fmt.Fprintf(w, format, args...) })
}

func backupState(ctx context.Context, e *env, to string) error {
	stream, err := pb.NewStateServiceClient(e.conn).BackupState(ctx, &pb.BackupStateRequest{})
	var text []byte
	for err == nil {
		var p *pb.StatePart
		p, err = stream.Recv()
		text = append(text, p.GetText()...)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	sum, err := store.Take(text, to)
	if err != nil {
		return err
	}
	return e.Value(stateFile{File: to, CopyOf: e.Server, Summary: sum}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%s is a copy of what %s keeps: %v\n", to, e.Server, sum) })
}

func newReplaceCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "replace", Short: "Replace a member of the controllers' cluster"}
	command.AddOutputFlag(cmd)
	return command.OneOf(cmd,
		askWith("member NAME", "Replace a lost member by a new one with an empty disk; start the new one afterwards", cobra.ExactArgs(1),
			func(ctx context.Context, e *env, args []string) error {
				if _, err := pb.NewStateServiceClient(e.conn).ReplaceMember(ctx, &pb.ReplaceMemberRequest{Name: args[0]}); err != nil {
					return err
				}
				return e.Value(map[string]string{"waits_for": args[0]}, func(w io.Writer) {
					_, _ = fmt.Fprintf(w, "the cluster waits for a new %s: start it with an empty folder\n", command.Clean(args[0]))
				})
			}))
}
