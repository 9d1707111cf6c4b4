package p4

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/session"
	"github.com/headgate/headgate/internal/confine"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/internal/tlsfiles"
)

// maxFile is the largest file of a program, an update or a packet in bytes.
const maxFile = 64 << 20

// target is the switch that a command talks to, and where its results go.
type target struct {
	Address  string
	Device   uint64
	Election uint64
	Timeout  time.Duration
	Info     string // file with the P4Info; "" asks the switch
	command.Output
	In    io.Reader
	creds grpc.DialOption
}

func newTarget(cmd *cobra.Command) (*target, error) {
	v, err := command.Settings(cmd)
	if err != nil {
		return nil, err
	}
	t := &target{
		Address: v.GetString("switch"), Device: v.GetUint64("device-id"), Election: v.GetUint64("election-id"),
		Timeout: v.GetDuration("timeout"), Info: v.GetString("p4info"), In: cmd.InOrStdin(),
		creds: grpc.WithTransportCredentials(insecure.NewCredentials()),
	}
	if t.Output, err = command.OutputOf(cmd); err != nil {
		return nil, err
	}
	switch {
	case t.Timeout != 0 || cmd.Flags().Changed("timeout"):
	case cmd.Name() == "load": // a switch compiles the program
		t.Timeout = time.Minute
	default:
		t.Timeout = 5 * time.Second
	}
	if t.Timeout <= 0 {
		return nil, fmt.Errorf("--timeout: %v is not allowed: want more than 0", t.Timeout)
	}
	if t.Election == 0 {
		return nil, errors.New("--election-id: 0 is not allowed: want a number from 1 on")
	}
	if c := command.Credentials(v); c.CA != "" {
		creds, err := tlsfiles.Client(tlsfiles.Files{CA: c.CA, Cert: c.Cert, Key: c.Key, Prefix: "--tls-", Read: confine.Dirs(nil).Secret})
		if err != nil {
			return nil, err
		}
		t.creds = grpc.WithTransportCredentials(creds)
	}
	return t, nil
}

func (t *target) reader() (*session.Client, func() error, error) {
	return session.Dial(t.Address, t.Device, t.creds)
}

// pipeline returns the program by the P4Info of --p4info, or of the switch.
func (t *target) pipeline(ctx context.Context) (*pipeline.Pipeline, error) {
	if t.Info != "" {
		info, err := readInfo(t.Info)
		if err != nil {
			return nil, err
		}
		return pipeline.New(info, nil)
	}
	c, done, err := t.reader()
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	p, err := c.Pipeline(ctx)
	if errors.Is(err, session.ErrNoPipeline) {
		err = fmt.Errorf("%w: load one with \"headgate p4 load\", or name a P4Info with --p4info", err)
	}
	return p, t.named(err)
}

// named adds the switch's address to an error.
func (t *target) named(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok { // without gRPC's own frame around the message
		return fmt.Errorf("switch %s, device %d: %s: %s", t.Address, t.Device, s.Code(), s.Message())
	}
	return fmt.Errorf("switch %s, device %d: %w", t.Address, t.Device, err)
}

// readInfo reads a P4Info in protobuf's text or binary format.
func readInfo(file string) (*p4configv1.P4Info, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	info, err := p4rtmsg.ParseP4Info(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return info, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s: more than %d MiB are too many", name, maxFile>>20)
	}
	return text, err
}

// handler receives the switch's messages while a command runs.
type handler struct {
	roles   chan roleChange
	message func(*p4v1.StreamMessageResponse) // nil drops messages
	refused chan error
}

type roleChange struct {
	role session.Role
	why  error
}

func (h *handler) Role(r session.Role, why error) {
	select {
	case h.roles <- roleChange{r, why}:
	default: // nobody waits any more
	}
}

// held returns the error of a client that is a backup because another controller is primary, nil for any other change.
func (r roleChange) held() error {
	if other := (*session.HeldError)(nil); !errors.As(r.why, &other) {
		return nil
	}
	return fmt.Errorf("%w: --election-id with a higher number takes the switch over", r.why)
}

// lost replaces PERMISSION_DENIED by the error that another controller took the switch over while the command ran,
// if the switch says so on the stream in time.
func (h *handler) lost(err error) error {
	if status.Code(err) != codes.PermissionDenied {
		return err
	}
	for timeout := time.After(time.Second); ; {
		select {
		case r := <-h.roles:
			if held := r.held(); held != nil {
				return held
			}
		case <-timeout:
			return err
		}
	}
}

func (h *handler) Message(m *p4v1.StreamMessageResponse) {
	if h.message != nil {
		h.message(m)
	}
}

func (h *handler) PacketRefused(why error) {
	select {
	case h.refused <- why:
	default:
	}
}

// asPrimary runs fn with a session that is the switch's primary controller, and leaves the switch after it.
func (t *target) asPrimary(ctx context.Context, fn func(ctx context.Context, s *session.Session, c *session.Client, refused <-chan error) error) error {
	h := &handler{roles: make(chan roleChange, 16), refused: make(chan error, 1)}
	s, stop := t.session(ctx, h)
	defer stop()
	deadline := time.After(t.Timeout)
	for last := error(nil); ; {
		select {
		case r := <-h.roles:
			switch {
			case r.role == session.Primary:
				c, err := s.Client()
				if err != nil {
					return t.named(err)
				}
				ctx, cancel := context.WithTimeout(ctx, t.Timeout)
				defer cancel()
				return t.named(h.lost(fn(ctx, s, c, h.refused)))
			case r.role == session.Disconnected:
				return t.named(cmp.Or(r.why, session.ErrDisconnected))
			}
			last = r.why
			if err := r.held(); err != nil {
				return t.named(err)
			}
		case <-deadline:
			return t.named(fmt.Errorf("the switch did not make this client its primary controller within %v: %w", t.Timeout, cmp.Or(last, context.DeadlineExceeded)))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// session starts a session; stop ends it and waits until the switch has seen that.
func (t *target) session(ctx context.Context, h *handler) (s *session.Session, stop func()) {
	s = session.New(session.Options{
		Name: t.Address, DeviceID: t.Device, Address: t.Address, ElectionID: t.Election,
		Dial: []grpc.DialOption{t.creds}, Log: slog.New(slog.DiscardHandler),
	}, h)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx) // its errors are roles
	}()
	return s, func() {
		cancel()
		<-done
	}
}

func (t *target) print(list []pipeline.Named) error {
	if t.Format != command.Table {
		return t.Value(append([]pipeline.Named{}, list...), nil)
	}
	for _, n := range list {
		line := n.String()
		if (n.Action != "" || n.Use != "") && len(n.Data) > 0 {
			line += "  [" + n.Data.String() + "]"
		}
		if _, err := fmt.Fprintln(t.Out, command.Clean(line)); err != nil {
			return err
		}
	}
	return nil
}
