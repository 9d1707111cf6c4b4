package port_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/softswitch/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver runs a port's source and hands its frames to a channel.
type receiver struct {
	port   port.Port
	frames chan []byte
	cancel context.CancelFunc
	done   chan error
}

func open(t *testing.T, name string) *receiver {
	t.Helper()
	p, src, err := port.OpenInterface(port.Named{Number: 5, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return receive(t, name, p, src)
}

// receive collects the frames of port 5 until the test ends.
func receive(t *testing.T, name string, p port.Port, src port.Source) *receiver {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &receiver{p, make(chan []byte, 8192), cancel, make(chan error, 1)}
	go func() {
		r.done <- src.Run(ctx, func(b *port.Batch) {
			for _, f := range b.Frames {
				if f.Port != 5 {
					t.Errorf("frame of port %d, want 5", f.Port)
				}
				r.frames <- bytes.Clone(f.Data)
			}
			b.Release()
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-r.done; err != nil {
			t.Errorf("%s: Run = %v", name, err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: Close = %v", name, err)
		}
	})
	return r
}

func (r *receiver) expect(t *testing.T, want []byte) {
	t.Helper()
	select {
	case got := <-r.frames:
		if !bytes.Equal(got, want) {
			t.Fatalf("received %d bytes %.60x\nwant %d bytes %.60x", len(got), got, len(want), want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("no frame, want %.60x", want)
	}
}

// frame is an Ethernet frame of an experimental type (IEEE 802 local experimental).
func frame(seq uint32, n int) []byte {
	f := make([]byte, n)
	copy(f, []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x88, 0xb5})
	binary.BigEndian.PutUint32(f[14:], seq)
	return f
}

func TestInterface(t *testing.T) {
	p := veth.New(t, 1)[0]
	sw, host := open(t, p.Switch), open(t, p.Host)

	t.Run("frames keep content and order", func(t *testing.T) {
		// The destination is none of the interfaces' addresses: promiscuous.
		const n = 3000
		for i := range uint32(n) {
			host.port.Send(frame(i, 60+int(i%1400)))
			if i%500 == 499 {
				if err := host.port.Flush(); err != nil {
					t.Fatal(err)
				}
				for j := i - 499; j <= i; j++ {
					sw.expect(t, frame(j, 60+int(j%1400)))
				}
			}
		}
		if len(host.frames) != 0 {
			t.Errorf("the sender received %d of its own frames", len(host.frames))
		}
	})
	t.Run("tags stay", func(t *testing.T) {
		for _, tag := range [][]byte{{0x81, 0, 0xa0, 5}, {0x88, 0xa8, 0, 7, 0x81, 0, 0, 9}} {
			plain := frame(1, 100)
			tagged := append(append(bytes.Clone(plain[:12]), tag...), plain[12:]...)
			sw.port.Send(tagged)
			if err := sw.port.Flush(); err != nil {
				t.Fatal(err)
			}
			host.expect(t, tagged)
		}
	})
	t.Run("a frame too long is refused and counted", func(t *testing.T) {
		sw.port.Send(frame(1, 1600))
		sw.port.Send(frame(2, 100))
		if err := sw.port.Flush(); err != nil {
			t.Fatal(err)
		}
		host.expect(t, frame(2, 100))
		if c := sw.port.Counters(); c.TxErrors != 1 {
			t.Errorf("counters %+v, want one transmit error", c)
		}
	})
	// Not a subtest: those run on goroutines outside the namespace.
	if !sw.port.Up() {
		t.Error("the port is down")
	}
	veth.SetUp(t, p.Switch, false)
	if sw.port.Up() {
		t.Error("the port of an interface that is down is up")
	}
	sw.port.Send(frame(3, 100))
	if err := sw.port.Flush(); err != nil {
		t.Fatal(err)
	}
	veth.SetUp(t, p.Switch, true)
	// The carrier takes a moment; until then frames are lost.
	for range 500 {
		host.port.Send(frame(4, 100))
		if err := host.port.Flush(); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-sw.frames:
			if !bytes.Equal(got, frame(4, 100)) {
				t.Errorf("received %x", got)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("no frame after the interface came up again")
}

func TestNoSuchInterface(t *testing.T) {
	_, _, err := port.OpenInterface(port.Named{Number: 3, Name: "nosuch0"})
	if err == nil || !strings.HasPrefix(err.Error(), `port 3: no network interface "nosuch0": want one of lo`) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkInterface(b *testing.B) {
	p := veth.New(b, 1)[0]
	tx, _, err := port.OpenInterface(port.Named{Number: 1, Name: p.Host})
	if err != nil {
		b.Fatal(err)
	}
	defer tx.Close()
	rx, src, err := port.OpenInterface(port.Named{Number: 2, Name: p.Switch})
	if err != nil {
		b.Fatal(err)
	}
	defer rx.Close()
	ctx, cancel := context.WithCancel(b.Context())
	got, done := make(chan int, 64), make(chan error)
	go func() {
		done <- src.Run(ctx, func(b *port.Batch) { got <- len(b.Frames); b.Release() })
	}()
	b.ReportAllocs()
	f := frame(1, 128)
	under, lost := 0, 0
	for b.Loop() {
		tx.Send(f)
		for under++; under >= 512; {
			if err := tx.Flush(); err != nil {
				b.Fatal(err)
			}
			select {
			case n := <-got:
				under -= n
			case <-time.After(100 * time.Millisecond):
				lost, under = lost+under, 0
			}
		}
	}
	cancel()
	go func() {
		for range got {
		}
	}()
	<-done
	close(got)
	if lost > 0 {
		b.Logf("%d of %d frames lost", lost, b.N)
	}
}
