package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/controller/p4runtime/pipeline"
)

// Client is the unary side of a connection: batches, reads of many entities, per-update errors and
// status codes, and the push of a pipeline. It is safe for concurrent use.
type Client struct {
	rpc       p4v1.P4RuntimeClient
	election  atomic.Pointer[p4v1.Uint128] // election id that the session bids; nil without a session
	keepalive keepalive
	device    uint64
	batch     int
}

func newClient(rpc p4v1.P4RuntimeClient, device uint64, election *p4v1.Uint128, batch int) *Client {
	c := &Client{rpc: rpc, device: device, batch: batch}
	c.election.Store(election)
	return c
}

// Election returns the election id of the session's bid, as text.
func (c *Client) Election() string { return idText(c.election.Load()) }

// Dial returns a client without a session, for reading, and a function that closes it. It does not wait for the
// connection.
func Dial(address string, device uint64, opts ...grpc.DialOption) (*Client, func() error, error) {
	if len(opts) == 0 {
		opts = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	conn, err := grpc.NewClient(address, dialOptions(opts)...)
	if err != nil {
		return nil, nil, fmt.Errorf("address %q: %w", address, err)
	}
	return newClient(p4v1.NewP4RuntimeClient(conn), device, nil, 1), conn.Close, nil
}

// Read returns all entities that requests match, in one call; unset ids are wildcards. The
// error keeps the switch's status.
func (c *Client) Read(ctx context.Context, requests ...*p4v1.Entity) ([]*p4v1.Entity, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.rpc.Read(ctx, &p4v1.ReadRequest{DeviceId: c.device, Entities: requests})
	if err != nil {
		return nil, err
	}
	var list []*p4v1.Entity
	for {
		r, err := stream.Recv()
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return list, readError(err)
		}
		c.keepalive.heard()
		if end {
			return list, nil
		}
		list = append(list, r.GetEntities()...)
	}
}

// Write sends updates in their order, in batches of bounded size. A batch with failed updates does not stop later
// ones: as in P4Runtime's CONTINUE_ON_ERROR, updates are independent. Failed updates come back in a *WriteError; a
// batch that failed as a whole, for example because the connection broke, ends the write with its error.
func (c *Client) Write(ctx context.Context, updates []*p4v1.Update) error {
	var failed []UpdateError
	for start := 0; start < len(updates); start += c.batch {
		batch := updates[start:min(start+c.batch, len(updates))]
		_, err := c.rpc.Write(ctx, &p4v1.WriteRequest{DeviceId: c.device, ElectionId: c.election.Load(), Updates: batch})
		if err == nil {
			c.keepalive.heard()
			continue
		}
		list, ok := updateErrors(err, batch)
		if !ok {
			return fmt.Errorf("write: %w", err)
		}
		failed = append(failed, list...)
	}
	if len(failed) > 0 {
		return &WriteError{Failed: failed, Total: len(updates)}
	}
	return nil
}

// Running is how the pipeline on the switch compares with the desired one.
type Running uint8

// The answers of Compare.
const (
	Same    Running = iota // the switch runs the program
	Missing                // the switch runs no pipeline
	Other                  // the switch runs another one
)

// Compare asks the switch for its pipeline. The pipeline is the same if the cookie matches, or else if P4Info and
// device configuration both match. If the device configuration is not known, so that the pipeline cannot be pushed, a
// matching P4Info is enough. A switch without a pipeline answers with FAILED_PRECONDITION (specification) or with an
// empty configuration (BMv2).
func (c *Client) Compare(ctx context.Context, p *pipeline.Pipeline) (Running, error) {
	get := func(what p4v1.GetForwardingPipelineConfigRequest_ResponseType) (*p4v1.ForwardingPipelineConfig, error) {
		r, err := c.rpc.GetForwardingPipelineConfig(ctx, &p4v1.GetForwardingPipelineConfigRequest{DeviceId: c.device, ResponseType: what})
		return r.GetConfig(), err
	}
	config, err := get(p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE)
	switch {
	case isCode(err, codes.FailedPrecondition) || isCode(err, codes.NotFound):
		return Missing, nil
	case err != nil:
		return Other, fmt.Errorf("reading the pipeline: %w", err)
	case config.GetP4Info() == nil:
		return Missing, nil
	case !proto.Equal(config.GetP4Info(), p.Info()):
		return Other, nil
	case config.GetCookie().GetCookie() == p.Cookie() || !p.Pushable():
		return Same, nil
	}
	config, err = get(p4v1.GetForwardingPipelineConfigRequest_ALL)
	if err != nil {
		return Other, fmt.Errorf("reading the pipeline: %w", err)
	}
	if string(config.GetP4DeviceConfig()) != string(p.Device()) {
		return Other, nil
	}
	return Same, nil
}

// Pipeline returns the pipeline that the switch runs, by its P4Info alone: it cannot be pushed.
func (c *Client) Pipeline(ctx context.Context) (*pipeline.Pipeline, error) {
	r, err := c.rpc.GetForwardingPipelineConfig(ctx, &p4v1.GetForwardingPipelineConfigRequest{
		DeviceId: c.device, ResponseType: p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE,
	})
	switch {
	case isCode(err, codes.FailedPrecondition) || err == nil && r.GetConfig().GetP4Info() == nil:
		return nil, ErrNoPipeline
	case err != nil:
		return nil, fmt.Errorf("reading the pipeline: %w", err)
	}
	return pipeline.New(r.GetConfig().GetP4Info(), nil)
}

// ErrNoPipeline is wrapped by the error of Pipeline if the switch runs none.
var ErrNoPipeline = errors.New("the switch runs no pipeline")

// ErrNoDevice is the error of a push without a device configuration.
var ErrNoDevice = errors.New("there is no device configuration to push")

// Push makes p the switch's pipeline. All entries of the switch are gone afterwards.
//
// Multicast groups and clone sessions are deleted first: on BMv2 a push makes PI forget
// them while the switch keeps them, so that making them again would double every copy.
// RECONCILE_AND_COMMIT is not used, because there it fails with an indirect counter.
func (c *Client) Push(ctx context.Context, p *pipeline.Pipeline) error {
	if !p.Pushable() {
		return ErrNoDevice
	}
	if err := c.clearReplication(ctx); err != nil {
		return err
	}
	_, err := c.rpc.SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: c.device, ElectionId: c.election.Load(), Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
		Config: &p4v1.ForwardingPipelineConfig{
			P4Info: p.Info(), P4DeviceConfig: p.Device(), Cookie: &p4v1.ForwardingPipelineConfig_Cookie{Cookie: p.Cookie()},
		},
	})
	if err != nil {
		return fmt.Errorf("pushing the pipeline: %w", err)
	}
	// BMv2 answers OK to programs that it cannot run, so ask for the result.
	running, err := c.Compare(ctx, p)
	if err == nil && running != Same {
		err = fmt.Errorf("the switch took the pipeline, but does not run it")
	}
	return err
}

// clearReplication deletes the replication engine's entries. A switch that runs no
// pipeline yet, or cannot read these, has nothing to clear.
func (c *Client) clearReplication(ctx context.Context) error {
	var updates []*p4v1.Update
	for _, request := range []*p4v1.Entity{pipeline.Multicast(0), pipeline.CloneSession(0)} {
		list, err := c.Read(ctx, request)
		if err != nil {
			continue
		}
		for _, e := range list {
			updates = append(updates, &p4v1.Update{Type: p4v1.Update_DELETE, Entity: e})
		}
	}
	if len(updates) == 0 {
		return nil
	}
	if err := c.Write(ctx, updates); err != nil {
		return fmt.Errorf("clearing the replication engine: %w", err)
	}
	return nil
}

// Version returns the P4Runtime version that the switch speaks.
func (c *Client) Version(ctx context.Context) (string, error) {
	r, err := c.rpc.Capabilities(ctx, &p4v1.CapabilitiesRequest{})
	return r.GetP4RuntimeApiVersion(), err
}

// UpdateError is one update that a switch refused.
type UpdateError struct {
	Update  *p4v1.Update
	Code    codes.Code
	Message string
}

// WriteError is a write with some refused updates; all others were done.
type WriteError struct {
	Failed []UpdateError
	Total  int
}

// Error prints the count and the first few refusals.
func (e *WriteError) Error() string {
	const most = 3
	var b strings.Builder
	fmt.Fprintf(&b, "the switch refused %d of %d updates: ", len(e.Failed), e.Total)
	for i, f := range e.Failed {
		if i == most {
			fmt.Fprintf(&b, "; and %d more", len(e.Failed)-most)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%v %v: %v", f.Update.GetType(), f.Code, f.Message)
	}
	return b.String()
}

// plainError shows a gRPC error as its message alone, without the text that gRPC and its transport put around it.
type plainError struct{ err error }

// plain returns err in that form; other errors as they are.
func plain(err error) error {
	if _, ok := status.FromError(err); err == nil || !ok {
		return err
	}
	return plainError{err}
}

// Error implements error.
func (e plainError) Error() string {
	text := status.Convert(e.err).Message()
	if inner, ok := strings.CutPrefix(text, `connection error: desc = "`); ok {
		text = strings.TrimPrefix(strings.TrimSuffix(inner, `"`), "transport: ")
	}
	return text
}

// Unwrap returns the gRPC error.
func (e plainError) Unwrap() error { return e.err }

// Unimplemented reports whether a switch said that it does not know a call.
func Unimplemented(err error) bool { return isCode(err, codes.Unimplemented) }

// readError returns a failed Read's own status. By the specification it is in a detail, one for each request, of an
// error with the code UNKNOWN. If several requests failed, the first one's status is returned.
func readError(err error) error {
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.Unknown {
		return err
	}
	for _, d := range st.Details() {
		if e, ok := d.(*p4v1.Error); ok && codes.Code(uint32(e.GetCanonicalCode())) != codes.OK {
			return status.Error(codes.Code(uint32(e.GetCanonicalCode())), e.GetMessage())
		}
	}
	return err
}

// updateErrors reads the details of a failed Write: one p4.v1.Error for each update, in
// order, those with code OK succeeded (specification, "Write RPC error reporting"). It
// reports false when the whole write failed instead.
func updateErrors(err error, batch []*p4v1.Update) ([]UpdateError, bool) {
	st, ok := status.FromError(err)
	if !ok || len(st.Details()) != len(batch) {
		return nil, false
	}
	var list []UpdateError
	for i, d := range st.Details() {
		e, ok := d.(*p4v1.Error)
		if !ok {
			return nil, false
		}
		if code := codes.Code(uint32(e.GetCanonicalCode())); code != codes.OK {
			list = append(list, UpdateError{Update: batch[i], Code: code, Message: e.GetMessage()})
		}
	}
	return list, len(list) > 0
}
