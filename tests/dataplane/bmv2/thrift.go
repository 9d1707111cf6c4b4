package bmv2

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
)

// queueService is the part of BMv2's Thrift service SimpleSwitch (targets/simple_switch/
// thrift/simple_switch.thrift) that makes ports slow: P4Runtime has no word for it. Its
// calls return 0 whatever happens.
type queueService struct {
	transport thrift.TTransport
	client    thrift.TClient
}

// dialQueues connects to the Thrift server of a simple_switch.
func dialQueues(ctx context.Context, port int) (*queueService, error) {
	conf := &thrift.TConfiguration{ConnectTimeout: time.Second, SocketTimeout: 5 * time.Second}
	socket := thrift.NewTSocketConf(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), conf)
	transport := thrift.NewTBufferedTransport(socket, 4096)
	for transport.Open() != nil { // it starts to listen some time after the process
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("thrift server on port %d: %w", port, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	protocol := thrift.NewTMultiplexedProtocol(thrift.NewTBinaryProtocolConf(transport, conf), "simple_switch")
	return &queueService{transport, thrift.NewTStandardClient(protocol, protocol)}, nil
}

func (q *queueService) close() error { return q.transport.Close() }

// setRate paces every queue of a port; 0 is unlimited.
func (q *queueService) setRate(ctx context.Context, port uint32, packetsPerSecond int) error {
	return q.call(ctx, "set_egress_queue_rate", arguments{i32(int32(port)), i64(int64(packetsPerSecond))})
}

// setDepth bounds every queue of a port.
func (q *queueService) setDepth(ctx context.Context, port uint32, packets int) error {
	return q.call(ctx, "set_egress_queue_depth", arguments{i32(int32(port)), i32(int32(packets))})
}

func (q *queueService) call(ctx context.Context, method string, args arguments) error {
	if _, err := q.client.Call(ctx, method, args, result{}); err != nil {
		return fmt.Errorf("thrift: %s: %w", method, err)
	}
	return nil
}

// argument writes one value of a call.
type argument struct {
	kind  thrift.TType
	write func(ctx context.Context, p thrift.TProtocol) error
}

func i32(v int32) argument {
	return argument{thrift.I32, func(ctx context.Context, p thrift.TProtocol) error { return p.WriteI32(ctx, v) }}
}

func i64(v int64) argument {
	return argument{thrift.I64, func(ctx context.Context, p thrift.TProtocol) error { return p.WriteI64(ctx, v) }}
}

// arguments is the argument struct of a call, with fields numbered from 1.
type arguments []argument

// Write implements thrift.TStruct.
func (a arguments) Write(ctx context.Context, p thrift.TProtocol) error {
	if err := p.WriteStructBegin(ctx, "args"); err != nil {
		return err
	}
	for i, arg := range a {
		if err := p.WriteFieldBegin(ctx, "", arg.kind, int16(i+1)); err != nil {
			return err
		}
		if err := arg.write(ctx, p); err != nil {
			return err
		}
		if err := p.WriteFieldEnd(ctx); err != nil {
			return err
		}
	}
	if err := p.WriteFieldStop(ctx); err != nil {
		return err
	}
	return p.WriteStructEnd(ctx)
}

// Read implements thrift.TStruct; arguments are only written.
func (a arguments) Read(ctx context.Context, p thrift.TProtocol) error {
	return p.Skip(ctx, thrift.STRUCT)
}

// result reads over the result of a call: it is always 0.
type result struct{}

// Read implements thrift.TStruct.
func (result) Read(ctx context.Context, p thrift.TProtocol) error { return p.Skip(ctx, thrift.STRUCT) }

// Write implements thrift.TStruct; results are only read.
func (result) Write(context.Context, thrift.TProtocol) error { return nil }
