package port_test

import (
	"context"
	"testing"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/softswitch/port"
)

// TestTransmitter sends received frames back in full batches. After the last batch, no further
// call would make the kernel send what the txWorker left in the ring.
func TestTransmitter(t *testing.T) {
	p := veth.New(t, 1)[0]
	driver, src := openXDP(t, p.Switch)
	host := receiveXDP(t, p.Host)
	ctx, cancel := context.WithCancel(context.Background())
	begun, gate, done := make(chan int), make(chan struct{}), make(chan error)
	go func() {
		done <- src.Run(ctx, func(b *port.Batch) {
			if len(b.Frames) == 1 {
				begun <- cap(b.Frames)
				<-gate
			}
			for _, f := range b.Frames {
				driver.Send(f.Data)
			}
			if err := driver.Flush(); err != nil {
				t.Error(err)
			}
			b.Release()
		})
	}()
	for range 20 {
		host.port.Send(frame(0, 100))
		if err := host.port.Flush(); err != nil {
			t.Fatal(err)
		}
		n := uint32(20 * <-begun)
		for i := range n {
			host.port.Send(frame(1+i, 100))
			if err := host.port.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		gate <- struct{}{}
		for i := range 1 + n {
			host.expect(t, frame(i, 100))
		}
	}
	if c := driver.Counters(); c != (port.Counters{}) {
		t.Errorf("counters %+v, want none", c)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := driver.Close(); err != nil {
		t.Error(err)
	}
}
