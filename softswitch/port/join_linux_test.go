package port

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/internal/veth"
)

// leaving returns the frames of a batch, with their virtio_net headers in front, as the kernel reads
// them.
func (t *txBatch) leaving() (all [][]byte) {
	t.finish()
	for i := range t.frames {
		all = append(all, unsafe.Slice(t.vecs[i].Base, t.vecs[i].Len))
	}
	return all
}

// joinable makes longSegments true until the test ends.
func joinable(t *testing.T) {
	longSegments.Store(true)
	t.Cleanup(func() { longSegments.Store(false) })
}

// TestJoin: cutting a joined batch by its virtio_net headers gives back the added frames, bit for bit. The frames
// are parts of one segment, or differ from such parts by a byte, by their order, or by a missing one.
func TestJoin(t *testing.T) {
	joinable(t)
	rapid.Check(t, func(t *rapid.T) {
		var want [][]byte
		for range rapid.IntRange(1, 3).Draw(t, "streams") {
			f := drawn(t)
			whole, _ := transportOf(f)
			if whole.protocol == protocolTCP && rapid.Bool().Draw(t, "plain flags") {
				f[whole.segment+13] &^= 0x81
				whole.complete(f)
			}
			parts, _ := whole.split(nil, nil, f, rapid.SampledFrom([]int{700, 1400}).Draw(t, "size"))
			if len(parts) == 0 {
				continue
			}
			if rapid.Bool().Draw(t, "change") {
				p := parts[rapid.IntRange(0, len(parts)-1).Draw(t, "part")]
				p[rapid.IntRange(0, min(len(p), whole.segment+40)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
				if s, ok := transportOf(p); ok && rapid.Bool().Draw(t, "right checksum") {
					s.complete(p)
				}
			}
			switch i := rapid.IntRange(0, len(parts)-1).Draw(t, "where"); rapid.IntRange(0, 3).Draw(t, "order") {
			case 0:
				parts = slices.Delete(parts, i, i+1)
			case 1:
				parts[0], parts[i] = parts[i], parts[0]
			}
			want = append(want, parts...)
		}
		b := txBatch{}
		b.init(1500)
		var got [][]byte
		for _, f := range want {
			if !b.add(f) {
				t.Fatal("the batch is full")
			}
		}
		for _, f := range b.leaving() {
			header, frame := f[:vnetHeader], f[vnetHeader:]
			if header[1] == 0 {
				got = append(got, frame)
				continue
			}
			whole, ok := transportOf(frame)
			if !ok || !whole.partial(frame) || int(binary.NativeEndian.Uint16(header[6:])) != whole.segment {
				t.Fatalf("joined frame %x %x", header, frame)
			}
			parts, _ := whole.split(nil, nil, frame, int(binary.NativeEndian.Uint16(header[4:])))
			got = append(got, parts...)
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("%d frames leave, which differ from the %d that were added", len(got), len(want))
		}
	})
}

// TestJoinWhole: the parts of a segment of 64 KB, and of one whose last part is short, leave as one
// frame. While no host uses segmentation offload each leaves by itself.
func TestJoinWhole(t *testing.T) {
	parts := segments(64_948, 1448)
	for _, on := range []bool{true, false} {
		if on {
			joinable(t)
		} else {
			longSegments.Store(false)
		}
		b := txBatch{}
		b.init(1500)
		for _, p := range parts {
			b.add(p)
		}
		if n := len(b.leaving()); n != map[bool]int{true: 1, false: len(parts)}[on] {
			t.Errorf("joining %v: %d parts leave as %d frames", on, len(parts), n)
		}
	}
}

// TestCutAtReceive: a segment that a host leaves uncut arrives as frames of the MTU, whether or not it fits a
// slot of the receive ring.
func TestCutAtReceive(t *testing.T) {
	p := veth.New(t, 1)[0]
	joinable(t)
	host, _, err := OpenInterface(Named{Number: 1, Name: p.Host})
	if err != nil {
		t.Fatal(err)
	}
	sw, source, err := OpenInterface(Named{Number: 2, Name: p.Switch})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	received, done := make(chan []byte, 1024), make(chan error, 1)
	go func() {
		done <- source.Run(ctx, func(b *Batch) {
			for _, f := range b.Frames {
				received <- bytes.Clone(f.Data)
			}
			b.Release()
		})
	}()
	defer func() {
		cancel()
		if err := errors.Join(<-done, host.Close(), sw.Close()); err != nil {
			t.Error(err)
		}
	}()
	const size = 1448
	for _, data := range []int{size + 1, size + 56, size + 112, size + 200, 2 * size, 3*size + 7, 44 * size} {
		parts := segments(data, size)
		for _, f := range parts {
			host.Send(f)
		}
		if err := host.Flush(); err != nil {
			t.Fatal(err)
		}
		for i, want := range parts {
			select {
			case got := <-received:
				if !bytes.Equal(got, want) {
					t.Fatalf("segment of %d bytes: frame %d has %d bytes, want %d", data, i, len(got), len(want))
				}
			case <-time.After(hang):
				t.Fatalf("segment of %d bytes: frame %d does not come", data, i)
			}
		}
	}
	if c := host.Counters(); c.TxErrors != 0 {
		t.Errorf("%d frames were refused", c.TxErrors)
	}
}

// segments returns the frames that an interface cuts from a TCP segment of n bytes of data, size bytes each.
func segments(data, size int) [][]byte {
	f := make([]byte, linkHeader+20+32+data)
	for i := range f {
		f[i] = byte(i)
	}
	copy(f[12:], []byte{0x08, 0x00, 0x45, 0, byte((52 + data) >> 8), byte(52 + data), 0, 1, 0x40, 0, 64, protocolTCP})
	s := f[linkHeader+20:]
	s[12], s[13] = 0x80, tcpACK|tcpPush
	whole, _ := transportOf(f)
	parts, _ := whole.split(nil, nil, f, size)
	return parts
}

// BenchmarkJoin cuts a segment of 64 KB and joins its parts.
func BenchmarkJoin(b *testing.B) {
	longSegments.Store(true)
	defer longSegments.Store(false)
	f := make([]byte, linkHeader+65_000)
	copy(f[12:], []byte{0x08, 0x00, 0x45, 0, 65_000 >> 8, 65_000 & 0xff, 0, 1, 0x40, 0, 64, protocolTCP})
	f[linkHeader+20+12], f[linkHeader+20+13] = 0x50, tcpACK
	whole, _ := transportOf(f)
	var parts [][]byte
	var memory []byte
	t := txBatch{}
	t.init(1500)
	b.SetBytes(int64(len(f)))
	for b.Loop() {
		parts, memory = whole.split(parts[:0], memory[:0], f, 1448)
		for _, p := range parts {
			t.add(p)
		}
		t.finish()
		t.frames, t.slab, t.start = t.frames[:0], t.slab[:0], 0
	}
}
