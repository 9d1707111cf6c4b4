package port

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hang is when a test gives up. What it waits for takes milliseconds; this is for a machine
// with other work.
const hang = 30 * time.Second

// reading runs a reader on one end of a pair of sockets; the returned functions tell how
// often it found an error, and end it.
func reading(t *testing.T) (peer int, frames chan uint32, failures func() int, end func() error) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	frames = make(chan uint32, 1024)
	failed := make(chan struct{}, 1024)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	fill := func(b *Batch) bool {
		var f [4]byte
		for len(b.Frames) < cap(b.Frames) {
			if n, _, err := unix.Recvfrom(fds[0], f[:], unix.MSG_DONTWAIT); err != nil || n != len(f) {
				break
			}
			b.Add(1, f[:])
		}
		return len(b.Frames) > 0
	}
	go func() {
		done <- newPool(batches).read(ctx, fds[0], fill, func() { failed <- struct{}{} }, func(b *Batch) {
			for _, f := range b.Frames {
				frames <- binary.BigEndian.Uint32(f.Data)
			}
			b.Release()
		})
	}()
	end = func() error {
		cancel()
		defer unix.Close(fds[0])
		select {
		case err := <-done:
			return err
		case <-time.After(hang):
			t.Fatal("the reader did not end")
			return nil
		}
	}
	return fds[1], frames, func() int { return len(failed) }, end
}

// TestRead: frames keep their order and none is left behind, whether the reader rests or
// waits when they come.
func TestRead(t *testing.T) {
	peer, frames, failures, end := reading(t)
	defer unix.Close(peer)
	next := uint32(0)
	for _, n := range []uint32{1, 3 * busyBatch, 1, 1, 100, 1} {
		for i := range n {
			if _, err := unix.Write(peer, binary.BigEndian.AppendUint32(nil, next+i)); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			select {
			case got := <-frames:
				if got != next {
					t.Fatalf("frame %d, want %d", got, next)
				}
				next++
			case <-time.After(hang):
				t.Fatalf("frame %d did not come", next)
			}
		}
	}
	if n := failures(); n != 0 {
		t.Errorf("%d errors", n)
	}
	if err := end(); err != nil { // while it waits
		t.Error(err)
	}
}

// TestReadError: a socket that reports nothing but an error is looked at now and then, and
// the reader still ends when it is told to.
func TestReadError(t *testing.T) {
	peer, _, failures, end := reading(t)
	unix.Close(peer)
	begin := time.Now()
	for failures() < 3 && time.Since(begin) < hang {
		time.Sleep(errorPause / 10)
	}
	if n, most := failures(), 2+int(time.Since(begin)/errorPause); n < 3 || n > most {
		t.Errorf("%d errors in %v, want 3 to %d", n, time.Since(begin), most)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
