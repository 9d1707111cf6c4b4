package operator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/authz/audit"
	"github.com/headgate/headgate/units"
)

func newAuditCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Copy or verify the whole audit log (controller.audit)",
	}
	command.AddOutputFlag(c)
	from := uint64(1)
	verify := &cobra.Command{
		Use: "verify FILE", Short: "Check that no line of an audit log, or of a copy, was changed or removed; FILE.head, and parts FILE.NUMBER if any, must be beside it", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			last, hash, err := audit.Verify(args[0], from)
			if err != nil {
				return err
			}
			return printFile(c, auditFile{args[0], last + 1 - from, fmt.Sprint(hash)}, "%s is whole: %s, the last one's SHA-256 is %s\n", args[0], units.Count(last+1-from, "line"), hash)
		},
	}
	export := askWith("export FILE", "Copy the controller's audit log to a new file, and its last position to FILE.head; - writes the lines to standard output", cobra.ExactArgs(1),
		func(ctx context.Context, e *env, args []string) error { return exportAudit(ctx, e, args[0], from) })
	for _, c := range []*cobra.Command{export, verify} {
		c.Flags().Uint64Var(&from, "from", from, "the `number` of the first line, if older parts were moved away")
	}
	return command.OneOf(c, export, verify)
}

type auditFile struct {
	File  string `json:"file"`
	Lines uint64 `json:"lines"`
	Last  string `json:"last_sha256,omitempty"`
}

func exportAudit(ctx context.Context, e *env, name string, from uint64) error {
	stream, err := e.weight().ExportAudit(ctx, &pb.ExportAuditRequest{})
	if err != nil {
		return err
	}
	if name == "-" {
		_, err := copyAudit(stream.Recv, e.Out)
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	head, err := copyAudit(stream.Recv, f)
	if closed := errors.Join(f.Sync(), f.Close()); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(name) // no copy is better than a part of one
		return err
	}
	if err := os.WriteFile(audit.HeadName(name), []byte(head), 0o600); err != nil {
		return err
	}
	last, _, err := audit.Verify(name, from)
	if err != nil {
		return err
	}
	return e.Value(auditFile{File: name, Lines: last + 1 - from}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%s has %s\n", name, units.Count(last+1-from, "line")) })
}

// copyAudit writes the lines as they come and returns the log's head.
func copyAudit(next func() (*pb.AuditLine, error), to io.Writer) (head string, err error) {
	out := bufio.NewWriter(to)
	for {
		l, err := next()
		if errors.Is(err, io.EOF) {
			return head, out.Flush()
		}
		if err != nil {
			return "", err
		}
		if l.GetHead() != "" {
			head = l.GetHead()
			continue
		}
		if _, err := fmt.Fprintln(out, l.GetText()); err != nil {
			return "", err
		}
	}
}
