// Package control is a small P4Runtime client for tests. It writes entities with generated ids as they are, and
// keeps no state. It does not use the controller's session on purpose, so that the two do not share mistakes.
package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/internal/bytestring"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
)

// callTimeout bounds each call: the slowest is a pipeline push to a busy BMv2.
const callTimeout = 20 * time.Second

// ErrTimeout says that the switch did not answer in time.
var ErrTimeout = errors.New("no answer in time")

// Client is the primary controller of a switch. It is owned by one goroutine.
type Client struct {
	device    uint64
	election  *p4v1.Uint128
	stub      p4v1.P4RuntimeClient
	stream    p4v1.P4Runtime_StreamChannelClient
	stop      context.CancelFunc
	packetIns chan *p4v1.PacketIn
	digests   chan *p4v1.DigestList
	idle      chan *p4v1.IdleTimeoutNotification
	answers   chan *p4v1.StreamMessageResponse // all others
	done      chan struct{}
}

// New becomes primary on a switch.
func New(conn *grpc.ClientConn, device uint64) (*Client, error) {
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{
		device: device, election: &p4v1.Uint128{Low: 1}, stub: p4v1.NewP4RuntimeClient(conn), stop: stop,
		packetIns: make(chan *p4v1.PacketIn, 4096), answers: make(chan *p4v1.StreamMessageResponse, 64),
		digests: make(chan *p4v1.DigestList, 4096), idle: make(chan *p4v1.IdleTimeoutNotification, 4096),
		done: make(chan struct{}),
	}
	var err error
	if c.stream, err = c.stub.StreamChannel(ctx, grpc.WaitForReady(true)); err != nil {
		stop()
		return nil, err
	}
	go c.receive()
	if err := c.arbitrate(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) receive() {
	defer close(c.done)
	for {
		m, err := c.stream.Recv()
		if err != nil {
			return
		}
		switch x := m.GetUpdate().(type) {
		case *p4v1.StreamMessageResponse_Packet:
			c.packetIns <- x.Packet
		case *p4v1.StreamMessageResponse_Digest:
			c.digests <- x.Digest
		case *p4v1.StreamMessageResponse_IdleTimeoutNotification:
			c.idle <- x.IdleTimeoutNotification
		default:
			c.answers <- m
		}
	}
}

// Sync waits until the switch has handled all earlier messages. It relies on the order of the answers. Each time
// the client asks with a higher election id, because PI's server does not answer a bid with an id that it already
// has.
func (c *Client) Sync() error {
	c.election = &p4v1.Uint128{Low: c.election.Low + 1}
	return c.arbitrate()
}

func (c *Client) arbitrate() error {
	err := c.stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{DeviceId: c.device, ElectionId: c.election}}})
	if err != nil {
		return err
	}
	m, err := next(c, c.answers, "arbitration", callTimeout)
	if err != nil {
		return err
	}
	if a := m.GetArbitration(); a == nil || a.GetStatus().GetCode() != 0 {
		return fmt.Errorf("not primary: %v", m)
	}
	return nil
}

// Close ends the stream.
func (c *Client) Close() {
	c.stop()
	<-c.done
}

// P4Info returns the P4Info of Headgate's program.
func P4Info() (*p4configv1.P4Info, error) {
	info := new(p4configv1.P4Info)
	return info, prototext.Unmarshal(p4src.P4Info, info)
}

// Push makes Headgate's program the running one.
func (c *Client) Push() error {
	info, err := P4Info()
	if err != nil {
		return err
	}
	return c.PushProgram(info, p4src.JSON())
}

// PushProgram makes a program in BMv2's JSON the running one.
func (c *Client) PushProgram(info *p4configv1.P4Info, json []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err := c.stub.SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: c.device, ElectionId: c.election,
		Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
		Config: &p4v1.ForwardingPipelineConfig{P4Info: info, P4DeviceConfig: json},
	})
	return err
}

// Write writes updates in one batch.
func (c *Client) Write(updates ...*p4v1.Update) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_, err := c.stub.Write(ctx, &p4v1.WriteRequest{DeviceId: c.device, ElectionId: c.election, Updates: updates})
	return err
}

// Read reads entities in one request.
func (c *Client) Read(entities ...*p4v1.Entity) (all []*p4v1.Entity, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	stream, err := c.stub.Read(ctx, &p4v1.ReadRequest{DeviceId: c.device, Entities: entities})
	for err == nil {
		var m *p4v1.ReadResponse
		m, err = stream.Recv()
		all = append(all, m.GetEntities()...)
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return all, nil
}

// Counter reads one cell of an indirect counter.
func (c *Client) Counter(id uint32, index int64) (packets, bytes int64, err error) {
	cells, err := c.Read(p4rtmsg.Entity(&p4v1.CounterEntry{CounterId: id, Index: &p4v1.Index{Index: index}}))
	if err == nil && len(cells) != 1 {
		err = fmt.Errorf("counter %#x, index %d: %d entities, want 1", id, index, len(cells))
	}
	if err != nil {
		return 0, 0, err
	}
	data := cells[0].GetCounterEntry().GetData()
	return data.GetPacketCount(), data.GetByteCount(), nil
}

// Counters reads the packets of all cells of an indirect counter.
func (c *Client) Counters(id uint32) ([]int64, error) {
	cells, err := c.Read(p4rtmsg.Entity(&p4v1.CounterEntry{CounterId: id}))
	packets := make([]int64, len(cells))
	for i, e := range cells {
		packets[i] = e.GetCounterEntry().GetData().GetPacketCount()
	}
	return packets, err
}

// PacketOut is a packet from the controller; see constants.p4 for the modes.
type PacketOut struct {
	Port    uint32
	Queue   uint32
	Mode    uint32
	Payload []byte
}

// Send sends a packet-out.
func (c *Client) Send(p PacketOut) error {
	return c.stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{
		Payload: p.Payload,
		Metadata: []*p4v1.PacketMetadata{
			{MetadataId: ids.MetaPacketOutEgressPort, Value: p4rtmsg.Uint(uint64(p.Port))},
			{MetadataId: ids.MetaPacketOutQueue, Value: p4rtmsg.Uint(uint64(p.Queue))},
			{MetadataId: ids.MetaPacketOutMode, Value: p4rtmsg.Uint(uint64(p.Mode))},
		},
	}}})
}

// PacketIn is a packet to the controller.
type PacketIn struct {
	Port    uint32
	Queue   uint32
	Reason  uint32
	Payload []byte
}

// Receive returns the next packet-in, waiting for it for at most wait.
func (c *Client) Receive(wait time.Duration) (PacketIn, error) {
	m, err := next(c, c.packetIns, "packet-in", wait)
	if err != nil {
		return PacketIn{}, err
	}
	p := PacketIn{Payload: m.GetPayload()}
	for _, md := range m.GetMetadata() {
		v := uint32(bytestring.Low64(md.GetValue()))
		switch md.GetMetadataId() {
		case ids.MetaPacketInIngressPort:
			p.Port = v
		case ids.MetaPacketInQueue:
			p.Queue = v
		case ids.MetaPacketInReason:
			p.Reason = v
		}
	}
	return p, nil
}

// next returns the next value from one of the client's channels.
func next[T any](c *Client, from <-chan T, what string, wait time.Duration) (v T, err error) {
	select {
	case v = <-from: // taken even if wait is 0
		return v, nil
	default:
	}
	select {
	case v = <-from:
		return v, nil
	case <-c.done:
		return v, errors.New("the switch ended the stream")
	case <-time.After(wait):
		return v, fmt.Errorf("%s: %w", what, ErrTimeout)
	}
}

// Digest returns the next digest, waiting for it for at most wait.
func (c *Client) Digest(wait time.Duration) (*p4v1.DigestList, error) {
	return next(c, c.digests, "digest", wait)
}

// Acknowledge acknowledges a digest.
func (c *Client) Acknowledge(d *p4v1.DigestList) error {
	return c.stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_DigestAck{
		DigestAck: &p4v1.DigestListAck{DigestId: d.GetDigestId(), ListId: d.GetListId()}}})
}

// Idle returns the next idle notification, waiting for it for at most wait.
func (c *Client) Idle(wait time.Duration) (*p4v1.IdleTimeoutNotification, error) {
	return next(c, c.idle, "idle notification", wait)
}
