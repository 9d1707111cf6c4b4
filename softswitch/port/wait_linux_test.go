package port

import (
	"context"
	"encoding/binary"
	"maps"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hang is the time after which a test gives up. The awaited event takes milliseconds; the rest is for a busy
// machine.
const hang = 30 * time.Second

// pipeInput is one end of a pair of sockets, whose frames are four bytes long.
type pipeInput struct {
	fd     int
	port   uint32
	errors atomic.Int32
	fills  atomic.Int32
}

func (p *pipeInput) descriptors() []int { return []int{p.fd} }
func (p *pipeInput) failed()            { p.errors.Add(1) }

func (p *pipeInput) fill(b *Batch) bool {
	p.fills.Add(1)
	begin := len(b.Frames)
	var f [4]byte
	for len(b.Frames) < cap(b.Frames) {
		if n, _, err := unix.Recvfrom(p.fd, f[:], unix.MSG_DONTWAIT); err != nil || n != len(f) {
			break
		}
		b.Add(p.port, f[:])
	}
	return len(b.Frames) > begin
}

// reading runs one reader of n pairs of sockets until the returned function ends it, and hands
// frames to the channels.
func reading(t *testing.T, n int, busy time.Duration) (peers []int, inputs []*pipeInput, frames []chan uint32, end func() error) {
	t.Helper()
	var sources []Source
	for i := range n {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		in := &pipeInput{fd: fds[0], port: uint32(i)}
		peers, inputs, frames = append(peers, fds[1]), append(inputs, in), append(frames, make(chan uint32, 1024))
		sources = append(sources, newReader(in))
	}
	source := Gather(sources, 1, busy)[0]
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- source.Run(ctx, func(b *Batch) {
			for _, f := range b.Frames {
				frames[f.Port] <- binary.BigEndian.Uint32(f.Data)
			}
			b.Release()
		})
	}()
	end = func() error {
		cancel()
		for _, in := range inputs {
			defer unix.Close(in.fd)
		}
		select {
		case err := <-done:
			return err
		case <-time.After(hang):
			t.Fatal("the reader did not end")
			return nil
		}
	}
	return peers, inputs, frames, end
}

// send writes n frames, numbered from first.
func send(t *testing.T, peer int, first, n uint32) {
	t.Helper()
	for i := range n {
		if _, err := unix.Write(peer, binary.BigEndian.AppendUint32(nil, first+i)); err != nil {
			t.Fatal(err)
		}
	}
}

// expect receives n frames, numbered from first.
func expect(t *testing.T, frames chan uint32, first, n uint32) {
	t.Helper()
	for i := range n {
		select {
		case got := <-frames:
			if got != first+i {
				t.Fatalf("frame %d, want %d", got, first+i)
			}
		case <-time.After(hang):
			t.Fatalf("frame %d did not come", first+i)
		}
	}
}

// TestRead: frames of each interface keep their order and none is left behind, whether the reader
// sleeps or waits when they arrive.
func TestRead(t *testing.T) {
	for _, ports := range []int{1, 3} {
		peers, inputs, frames, end := reading(t, ports, 0)
		next := uint32(0)
		for _, n := range []uint32{1, 3 * busyBatch, 1, 1, 100, 1} {
			for _, peer := range peers {
				send(t, peer, next, n)
			}
			for _, f := range frames {
				expect(t, f, next, n)
			}
			next += n
		}
		for i, in := range inputs {
			if n := in.errors.Load(); n != 0 {
				t.Errorf("interface %d of %d: %d errors", i, ports, n)
			}
		}
		if err := end(); err != nil { // while it waits
			t.Error(err)
		}
		for _, peer := range peers {
			unix.Close(peer)
		}
	}
}

// TestReadLoneFrames: a reader that waits for the next of several lone frames uses no processor time, does
// not keep the garbage collector from stopping all goroutines, and ends when its context does.
func TestReadLoneFrames(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	peers, inputs, frames, end := reading(t, 1, 0)
	defer unix.Close(peers[0])
	for i := range uint32(20) {
		send(t, peers[0], i, 1)
		expect(t, frames[0], i, 1)
		runtime.GC()
	}
	before := inputs[0].fills.Load()
	time.Sleep(3 * held)
	if n := inputs[0].fills.Load() - before; n > 10 {
		t.Errorf("without frames the reader looked %d times", n)
	}
	send(t, peers[0], 20, 2)
	expect(t, frames[0], 20, 2)
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestReadError: a socket that reports only errors is tried now and then and delays no other
// socket. The reader still ends when its context does.
func TestReadError(t *testing.T) {
	peers, inputs, frames, end := reading(t, 2, 0)
	defer unix.Close(peers[1])
	unix.Close(peers[0])
	failures := func() int { return int(inputs[0].errors.Load()) }
	begin := time.Now()
	sent := uint32(0)
	for failures() < 3 && time.Since(begin) < hang {
		send(t, peers[1], sent, 1)
		expect(t, frames[1], sent, 1)
		sent++
		time.Sleep(errorPause / 10)
	}
	if n, most := failures(), 2+int(time.Since(begin)/errorPause); n < 3 || n > most {
		t.Errorf("%d errors in %v, want 3 to %d", n, time.Since(begin), most)
	}
	if n := inputs[1].errors.Load(); n != 0 {
		t.Errorf("%d errors of the other interface, want none", n)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestBusyPoll: after a frame a reader looks for more for a time, or waits at once.
func TestBusyPoll(t *testing.T) {
	for _, busy := range []time.Duration{0, hang} {
		peers, inputs, frames, end := reading(t, 1, busy)
		defer unix.Close(peers[0])
		send(t, peers[0], 1, 1)
		expect(t, frames[0], 1, 1)
		const many = 1000
		for deadline := time.Now().Add(hang / 2); busy > 0 && inputs[0].fills.Load() < many && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if busy == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if n := inputs[0].fills.Load(); busy > 0 != (n >= many) {
			t.Errorf("busy for %v: %d looks", busy, n)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

// TestGather: n readers share interfaces evenly, and other sources stay.
func TestGather(t *testing.T) {
	for _, c := range []struct {
		interfaces, n int
		want          []int // interfaces of each reader
	}{{4, 1, []int{4}}, {5, 2, []int{2, 3}}, {2, 8, []int{1, 1}}, {0, 1, nil}} {
		sources := []Source{&Files{}}
		for range c.interfaces {
			sources = append(sources, newReader(&pipeInput{}))
		}
		got := Gather(sources, c.n, 0)
		if _, ok := got[0].(*Files); !ok || len(got) != 1+len(c.want) {
			t.Fatalf("%+v: %d sources, the first one %T", c, len(got), got[0])
		}
		for i, want := range c.want {
			if r := got[1+i].(*reader); len(r.inputs) != want {
				t.Errorf("%+v: reader %d has %d interfaces", c, i, len(r.inputs))
			}
		}
	}
}

// TestFrameSize: there is room for a frame with two tags, and an odd number of cache lines.
func TestFrameSize(t *testing.T) {
	for _, mtu := range []int{68, 1500, 9000, 65000} {
		n := frameSize(mtu)
		if n < mtu+linkHeader+2*vlanTag+ringHeader || n > ringBlock || n%64 != 0 || n/64%2 != 1 {
			t.Errorf("MTU %d: %d bytes", mtu, n)
		}
	}
}

// TestListeners: of the lines of /proc/net/packet only those of sockets that receive and are not
// our own count.
func TestListeners(t *testing.T) {
	const text = `sk               RefCnt Type Proto  Iface R Rmem   User   Inode
0000000000000000 3      3    0003   7     1 0      0      100
0000000000000000 3      3    0000   8     0 0      0      101
0000000000000000 3      3    88cc   9     1 0      0      102
0000000000000000 3      3    0003   0     1 0      0      103
short line
0000000000000000 3      3    xyz    5     1 0      0      104
`
	got := parseListeners([]byte(text), map[uint64]bool{100: true})
	want := map[int]string{
		9: "a packet socket listens (inode 102 in /proc/net/packet)",
		0: "a packet socket listens (inode 103 in /proc/net/packet)",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func FuzzListeners(f *testing.F) {
	f.Add([]byte("0 3 3 0003 7 1 0 0 100\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for index, why := range parseListeners(text, nil) {
			if why == "" {
				t.Errorf("interface %d: no reason", index)
			}
		}
	})
}
