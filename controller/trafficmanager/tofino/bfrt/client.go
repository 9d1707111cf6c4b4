// Package bfrt is a client of BF Runtime, the interface of the driver of Tofino chips, for the tables that
// P4Runtime does not know: those of the traffic manager, and filters. Rows are built and read by names. A Schema
// defines the names and the allowed values; nothing else is sent.
//
// The source of all facts about the interface is the public driver (p4lang/open-p4studio,
// pkgsrc/bf-drivers/src/bf_rt).
package bfrt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/headgate/headgate/controller/trafficmanager/tofino/bfrt/bfrtpb"
)

// Options name the server of a Client, the program and the device.
type Options struct {
	Address string // host:port
	Device  uint32
	// Program is the name of the program that runs on the device: every request names it. So the client need not be
	// bound to the program, which only one client can be.
	Program string
	Schema  *Schema
	Dial    []grpc.DialOption // such as credentials; without credentials the connection is not encrypted
}

// Client is a client of one device. It connects when it is first used and subscribes again after the connection was
// lost; a client that was never used need not be closed. It is safe for use by several goroutines.
type Client struct {
	opts Options
	life context.Context // context of the streams
	end  context.CancelFunc

	locked chan struct{} // guards the fields below: a mutex whose Lock can end with a context
	conn   *grpc.ClientConn
	rpc    pb.BfRuntimeClient
	stream *stream
}

// stream is the channel that makes a client known to the server.
type stream struct {
	id   uint32 // id of the client
	ctx  context.Context
	stop context.CancelCauseFunc
}

// New returns a Client.
func New(o Options) *Client {
	c := &Client{opts: o, locked: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// dial makes the connection. The caller has locked the client.
func (c *Client) dial() (err error) {
	options := []grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if len(c.opts.Dial) == 0 {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	if c.conn, err = grpc.NewClient(c.opts.Address, append(options, c.opts.Dial...)...); err == nil {
		c.rpc = pb.NewBfRuntimeClient(c.conn)
	}
	return err
}

// Close ends the subscription and the connection. Nothing can be asked afterwards.
func (c *Client) Close() error {
	c.end()
	c.locked <- struct{}{}
	defer func() { <-c.locked }()
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

// subscribed returns the open stream, or opens one.
func (c *Client) subscribed(ctx context.Context) (*stream, error) {
	select {
	case c.locked <- struct{}{}:
		defer func() { <-c.locked }()
	case <-ctx.Done():
		return nil, fmt.Errorf("BF Runtime server %s: subscribe: %w", c.opts.Address, context.Cause(ctx))
	}
	if c.stream != nil && c.stream.ctx.Err() == nil {
		return c.stream, nil
	}
	if err := c.life.Err(); err != nil {
		return nil, fmt.Errorf("BF Runtime server %s: closed: %w", c.opts.Address, err)
	}
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return nil, fmt.Errorf("BF Runtime server %s: %w", c.opts.Address, err)
		}
	}
	life, stop := context.WithCancelCause(c.life)
	// The stream outlives ctx, but opening it must end with ctx.
	unwatch := context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })
	// Each stream gets a new identifier, because the server may still hold that of the stream before.
	s := &stream{id: 1 + rand.Uint32N(1<<24-1), ctx: life, stop: stop}
	ch, err := c.open(s)
	if !unwatch() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		stop(err)
		return nil, fmt.Errorf("BF Runtime server %s: subscribe: %w", c.opts.Address, err)
	}
	c.stream = s
	go func() {
		for {
			if _, err := ch.Recv(); err != nil {
				stop(err)
				return
			}
		}
	}()
	return s, nil
}

// open subscribes and waits for the answer.
func (c *Client) open(s *stream) (grpc.BidiStreamingClient[pb.StreamMessageRequest, pb.StreamMessageResponse], error) {
	ch, err := c.rpc.StreamChannel(s.ctx, grpc.WaitForReady(true))
	if err != nil {
		return nil, err
	}
	subscribe := &pb.Subscribe{DeviceId: c.opts.Device, Notifications: &pb.Subscribe_Notifications{}}
	err = ch.Send(&pb.StreamMessageRequest{ClientId: s.id, Update: &pb.StreamMessageRequest_Subscribe{Subscribe: subscribe}})
	if err != nil && !errors.Is(err, io.EOF) { // at EOF, Recv knows why
		return nil, err
	}
	answer, err := ch.Recv()
	if err != nil {
		return nil, err
	}
	if st := answer.GetSubscribe().GetStatus(); codes.Code(st.GetCode()) != codes.OK {
		return nil, status.Error(codes.Code(st.GetCode()), st.GetMessage())
	}
	return ch, nil
}

// failed ends the subscription when a call failed because the server is gone.
func (c *Client) failed(s *stream, err error) {
	if status.Code(err) == codes.Unavailable {
		s.stop(err)
	}
}

// Write carries out changes in order. A refused change does not stop the later ones. If the schema does not allow a
// change, Write returns a *units.FieldError and writes none. If the server refused some, it returns a WriteError.
func (c *Client) Write(ctx context.Context, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	req := &pb.WriteRequest{P4Name: c.opts.Program, Target: c.target(), Atomicity: pb.WriteRequest_CONTINUE_ON_ERROR}
	for _, ch := range changes {
		e, err := c.opts.Schema.Encode(c.opts.Device, ch.Operation, ch.Row)
		if err != nil {
			return err
		}
		kind := pb.Update_Type(pb.Update_Type_value[strings.ToUpper(string(ch.Operation))])
		if kind == pb.Update_UNSPECIFIED {
			return bad(ch.Row, "operation", fmt.Sprintf("%q", ch.Operation), "insert, modify or delete")
		}
		req.Updates = append(req.Updates, &pb.Update{Type: kind, Entity: &pb.Entity{Entity: &pb.Entity_TableEntry{TableEntry: e}}})
	}
	s, err := c.subscribed(ctx)
	if err != nil {
		return err
	}
	req.ClientId = s.id
	if _, err := c.rpc.Write(ctx, req); err != nil {
		c.failed(s, err)
		return fmt.Errorf("BF Runtime server %s: write: %w", c.opts.Address, writeError(changes, err))
	}
	return nil
}

// Read returns the entries that rows ask for, in order: the entry of a key, all entries of a keyed table, or the
// default entry. If the server is gone, it tries once more.
func (c *Client) Read(ctx context.Context, rows ...Row) ([]Row, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	req := &pb.ReadRequest{P4Name: c.opts.Program, Target: c.target()}
	for _, r := range rows {
		e, err := c.opts.Schema.Encode(c.opts.Device, Read, r)
		if err != nil {
			return nil, err
		}
		req.Entities = append(req.Entities, &pb.Entity{Entity: &pb.Entity_TableEntry{TableEntry: e}})
	}
	list, err := c.read(ctx, rows, req)
	if status.Code(err) == codes.Unavailable && ctx.Err() == nil {
		list, err = c.read(ctx, rows, req)
	}
	if err != nil {
		return nil, fmt.Errorf("BF Runtime server %s: read: %w", c.opts.Address, err)
	}
	return list, nil
}

func (c *Client) target() *pb.TargetDevice {
	return &pb.TargetDevice{DeviceId: c.opts.Device, PipeId: AllPipes}
}

func (c *Client) read(ctx context.Context, rows []Row, req *pb.ReadRequest) ([]Row, error) {
	s, err := c.subscribed(ctx)
	if err != nil {
		return nil, err
	}
	req.ClientId = s.id
	answers, err := c.rpc.Read(ctx, req)
	if err != nil {
		c.failed(s, err)
		return nil, err
	}
	var list []Row
	for {
		m, err := answers.Recv()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			c.failed(s, err)
			return nil, readError(rows, err)
		}
		for _, e := range m.GetEntities() {
			r, err := c.opts.Schema.Decode(e.GetTableEntry())
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
	}
}

// ChangeError is a change that the server refused.
type ChangeError struct {
	Change  Change
	Code    codes.Code
	Message string
}

// WriteError are the changes of a batch that were refused; the others were carried out.
type WriteError []ChangeError

func (e WriteError) Error() string {
	const most = 5
	var lines []string
	for i, c := range e {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(e)-most))
			break
		}
		lines = append(lines, fmt.Sprintf("%v: %v: %s", c.Change, c.Code, c.Message))
	}
	return strings.Join(lines, "; ")
}

// writeError extracts the errors of single updates from the error of a failed Write. Its details have one status
// for each update up to the last that failed. Without details writeError returns err itself.
func writeError(changes []Change, err error) error {
	var list WriteError
	for i, d := range status.Convert(err).Details() {
		e, ok := d.(*pb.Error)
		if !ok || i >= len(changes) {
			return err
		}
		if c := codes.Code(e.GetCanonicalCode()); c != codes.OK {
			list = append(list, ChangeError{changes[i], c, e.GetMessage()})
		}
	}
	if len(list) == 0 {
		return err
	}
	return list
}

// readError adds the error of each row to the error of a failed Read. It keeps err's code.
func readError(rows []Row, err error) error {
	st := status.Convert(err)
	var lines []string
	for i, d := range st.Details() {
		e, ok := d.(*pb.Error)
		if ok && i < len(rows) && codes.Code(e.GetCanonicalCode()) != codes.OK {
			lines = append(lines, fmt.Sprintf("%s: %v: %s", rows[i].Name(), codes.Code(e.GetCanonicalCode()), e.GetMessage()))
		}
	}
	if len(lines) == 0 {
		return err
	}
	return status.Error(st.Code(), strings.Join(lines, "; "))
}
