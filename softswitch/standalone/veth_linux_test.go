package standalone

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/softswitch/port"
)

// station is the far end of a switch port.
type station struct {
	port.Port
	frames chan []byte
}

func openStation(t *testing.T, name string) *station {
	t.Helper()
	p, source, err := port.OpenInterface(port.Named{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &station{p, make(chan []byte, 4096)}
	done := make(chan error, 1)
	go func() {
		done <- source.Run(ctx, func(b *port.Batch) {
			for _, f := range b.Frames {
				s.frames <- bytes.Clone(f.Data)
			}
			b.Release()
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		p.Close()
	})
	return s
}

// startHere starts `headgate switch` with the interfaces opened on this goroutine, which is
// the one in the network namespace.
func startHere(t *testing.T, args ...string) {
	t.Helper()
	startLogged(t, slog.New(slog.DiscardHandler), args...)
}

func startLogged(t *testing.T, log *slog.Logger, args ...string) {
	t.Helper()
	f, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	sw, err := f.options.build(io.Discard, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sw.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestInterfaces(t *testing.T) {
	eachDriver(t, testInterfaces)
}

func testInterfaces(t *testing.T, driver string, pairs []veth.Pair) {
	dir := t.TempDir()
	startHere(t, "-i", "1@"+pairs[0].Switch, "-i", "2@"+pairs[1].Switch, "--port-driver", driver, "--pcap", dir,
		"--port-rate", "2=8Mbps", "--queue-limit", "2=1000", program(t), "--", "--grpc-server-addr", listen)
	h1, h2 := openStation(t, pairs[0].Host), openStation(t, pairs[1].Host)

	const n = 100 // 64 bytes at 8 Mb/s: 64 us each
	start := time.Now()
	for i := range byte(n) {
		h1.Send(frame(2, i))
	}
	if err := h1.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range byte(n) {
		if f := h2.get(t); f[40] != i || f[5] != 2 {
			t.Fatalf("received frame %d for port %d, want frame %d", f[40], f[5], i)
		}
	}
	if took := time.Since(start); took < (n-1)*64*time.Microsecond {
		t.Errorf("%d frames took %v on a port of 8 Mb/s, want at least %v", n, took, (n-1)*64*time.Microsecond)
	}
	h2.put(t, frame(1, 7))
	if f := h1.get(t); f[40] != 7 {
		t.Errorf("received frame %d, want 7", f[40])
	}
	for name, want := range map[string]int{"s1_in": n, "s1_out": 1, "s2_in": 1, "s2_out": n} {
		if got := numbers(t, filepath.Join(dir, name+".pcap"), want); len(got) != want {
			t.Errorf("%s.pcap holds %d frames, want %d", name, len(got), want)
		}
	}
}

// TestDropsAreSaid: the log says once that a queue was full, and what helps.
func TestDropsAreSaid(t *testing.T) {
	pairs := veth.New(t, 2)
	log := make(lines, 1024)
	startLogged(t, slog.New(slog.NewTextHandler(log, nil)), "-i", "1@"+pairs[0].Switch, "-i", "2@"+pairs[1].Switch, "--port-driver", "afpacket",
		"--port-rate", "2=100kbps", program(t), "--", "--grpc-server-addr", listen)
	h1 := openStation(t, pairs[0].Host)
	for i := range byte(100) {
		h1.Send(frame(2, i))
	}
	if err := h1.Flush(); err != nil {
		t.Fatal(err)
	}
	log.said(t, "level=WARN", "port=2", "interface="+pairs[1].Switch, "reason=queue-full", "--queue-limit")
}

// TestPortZero: port 0 is an ordinary port, with and without a CPU port. testdata/wire.json joins
// ports 0 and 3.
func TestPortZero(t *testing.T) {
	for _, cpu := range [][]string{nil, {"--cpu-port", "510"}} {
		eachDriver(t, func(t *testing.T, driver string, pairs []veth.Pair) {
			args := []string{"-i", "0@" + pairs[0].Switch, "-i", "3@" + pairs[1].Switch, "--port-driver", driver, "testdata/wire.json", "--", "--grpc-server-addr", listen}
			startHere(t, append(args, cpu...)...)
			h0, h3 := openStation(t, pairs[0].Host), openStation(t, pairs[1].Host)
			for i := range byte(5) {
				h0.put(t, frame(0, i))
				if f := h3.get(t); f[40] != i {
					t.Fatalf("frame %d came by port 3, want %d", f[40], i)
				}
				h3.put(t, frame(0, i))
				if f := h0.get(t); f[40] != i {
					t.Fatalf("frame %d came by port 0, want %d", f[40], i)
				}
			}
		})
	}
}
