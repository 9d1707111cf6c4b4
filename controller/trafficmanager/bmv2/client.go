package bmv2

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/apache/thrift/lib/go/thrift"
)

// Client is a connection to the service SimpleSwitch (targets/simple_switch/thrift/ simple_switch.thrift in
// behavioral-model). One goroutine at a time may use it. A call ends at the latest with its context. A call that
// fails closes the connection.
type Client struct {
	conn   net.Conn
	client thrift.TClient
}

// Dial connects to the service at host:port.
func Dial(ctx context.Context, address string) (*Client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("thrift: %w", err)
	}
	return newClient(conn), nil
}

// newClient returns a client that uses conn.
func newClient(conn net.Conn) *Client {
	conf := &thrift.TConfiguration{}
	transport := thrift.NewTBufferedTransport(thrift.NewTSocketFromConnConf(conn, conf), 4096)
	protocol := thrift.NewTMultiplexedProtocol(thrift.NewTBinaryProtocolConf(transport, conf), "simple_switch")
	return &Client{conn, thrift.NewTStandardClient(protocol, protocol)}
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// SetQueueRate paces every queue of a port by itself, in packets per second; 0 is unlimited.
func (c *Client) SetQueueRate(ctx context.Context, port uint32, packetsPerSecond int64) error {
	return c.call(ctx, setRate, int32(port), packetsPerSecond)
}

// SetQueueDepth sets how many packets every queue of a port holds.
func (c *Client) SetQueueDepth(ctx context.Context, port uint32, packets int32) error {
	return c.call(ctx, setDepth, int32(port), packets)
}

// The calls that are used.
const (
	setRate  = "set_egress_queue_rate"
	setDepth = "set_egress_queue_depth"
	elapsed  = "get_time_elapsed_us"
)

// Ping makes sure that the switch answers.
func (c *Client) Ping(ctx context.Context) error { return c.call(ctx, elapsed) }

func (c *Client) call(ctx context.Context, method string, args ...any) error {
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer stop()
	_, err := c.client.Call(ctx, method, arguments(args), result{})
	if err == nil {
		return nil
	}
	c.conn.Close()
	if ctx.Err() != nil {
		err = context.Cause(ctx) // the cause, rather than that the connection is closed
	}
	return fmt.Errorf("thrift: %s: %s: %w", c.conn.RemoteAddr(), method, err)
}

// arguments are the arguments of a call, each an int32 or int64: a struct with fields numbered from 1.
type arguments []any

// Write implements thrift.TStruct. The binary protocol sends no names, and only a stop mark after the last field.
func (a arguments) Write(ctx context.Context, p thrift.TProtocol) (err error) {
	for i, arg := range a {
		switch v := arg.(type) {
		case int32:
			err = errors.Join(p.WriteFieldBegin(ctx, "", thrift.I32, int16(i+1)), p.WriteI32(ctx, v))
		case int64:
			err = errors.Join(p.WriteFieldBegin(ctx, "", thrift.I64, int16(i+1)), p.WriteI64(ctx, v))
		}
		if err != nil {
			return err
		}
	}
	return p.WriteFieldStop(ctx)
}

// Read implements thrift.TStruct; arguments are only written.
func (arguments) Read(ctx context.Context, p thrift.TProtocol) error {
	return p.Skip(ctx, thrift.STRUCT)
}

// result skips the result of a call.
type result struct{}

// Read implements thrift.TStruct.
func (result) Read(ctx context.Context, p thrift.TProtocol) error { return p.Skip(ctx, thrift.STRUCT) }

// Write implements thrift.TStruct; results are only read.
func (result) Write(context.Context, thrift.TProtocol) error { return nil }
