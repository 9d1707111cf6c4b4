package port

import (
	"bytes"
	"testing"
)

func TestBatch(t *testing.T) {
	p := newPool(batches, batchFrames, batchBytes)
	b := p.get(t.Context())
	frame := bytes.Repeat([]byte{7}, 1500)
	n := 0
	for b.Add(uint32(n), frame) {
		n++
	}
	if n != batchBytes/1500 {
		t.Errorf("%d frames of 1500 bytes fit, want %d", n, batchBytes/1500)
	}
	frame[0] = 9 // the batch has a copy
	if f := b.Frames[3]; f.Port != 3 || len(f.Data) != 1500 || f.Data[0] != 7 {
		t.Errorf("frame 3 = port %d, %d bytes, first %d", f.Port, len(f.Data), f.Data[0])
	}
	b.Release()
	for range batches { // take the one released last
		b = p.get(t.Context())
	}
	if n = 0; len(b.Frames) != 0 {
		t.Errorf("a released batch holds %d frames", len(b.Frames))
	}
	for b.Add(1, frame[:60]) {
		n++
	}
	if n != batchFrames {
		t.Errorf("%d frames of 60 bytes fit, want %d", n, batchFrames)
	}
	b.Release()
	b = p.get(t.Context())
	if !b.Add(1, make([]byte, batchBytes+1)) {
		t.Error("an empty batch refuses a frame larger than a batch")
	}
	if b.Add(1, frame) {
		t.Error("and takes another one")
	}
}
