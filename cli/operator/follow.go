package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/internal/screen"
)

// follower turns a stream into lines or a live table. record is called with every message, in order.
// After it lines is called, or on a terminal draw. The calls never overlap.
type follower[M proto.Message] struct {
	record func(M)
	lines  func(M) []string
	draw   func(w io.Writer) // nil: write lines on a terminal too
}

// follow runs until the stream or ctx ends. The end of ctx is no error.
func follow[M any, P interface {
	*M
	proto.Message
}](ctx context.Context, e *env, stream grpc.ServerStreamingClient[M], f follower[P]) error {
	if f.record == nil {
		f.record = func(P) {}
	}
	receive := func(show func(P) error) error {
		for {
			m, err := stream.Recv()
			switch {
			case ctx.Err() != nil || errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			if err := show(m); err != nil {
				return err
			}
		}
	}
	switch {
	case e.Format != command.Table:
		return receive(func(m P) error { return e.line(m) })
	case e.Terminal && f.draw != nil:
		var mu sync.Mutex
		live := screen.Screen{In: e.In, Out: e.Out, Every: 200 * time.Millisecond, Whole: true, Picture: func(int) string {
			mu.Lock()
			defer mu.Unlock()
			var out bytes.Buffer
			// Writing a table to memory cannot fail.
			_ = (command.Output{Out: &out}).Tabs(f.draw)
			return out.String()
		}}
		return live.Run(ctx, func() error {
			return receive(func(m P) error {
				mu.Lock()
				defer mu.Unlock()
				f.record(m)
				return nil
			})
		})
	}
	return receive(func(m P) error {
		f.record(m)
		for _, l := range f.lines(m) {
			if _, err := fmt.Fprintln(e.Out, command.Clean(l)); err != nil {
				return err
			}
		}
		return nil
	})
}
