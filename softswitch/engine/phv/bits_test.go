package phv

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// A field of any width at any offset is read back as it was written, and the bits around it stay.
func TestFieldsRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for bits := range 200 {
		for off := range 9 {
			z := new(big.Int).SetUint64(rng.Uint64())
			z.Mul(z, z).Mul(z, z)
			want := make([]uint64, max(1, Words(bits)))
			PutWords(want, z, bits)
			frame := bytes.Repeat([]byte{0xff}, 40)
			WriteField(frame, off, want, bits)
			got := make([]uint64, len(want))
			ReadField(got, frame, off, bits)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%d bits at %d: got %x, want %x", bits, off, got, want)
				}
			}
			if before, after := ReadBits(frame, 0, off), ReadBits(frame, off+bits, 16); before != 1<<off-1 || after != 0xffff {
				t.Fatalf("%d bits at %d: the bits around are %x and %x", bits, off, before, after)
			}
		}
	}
}

// A Writer's numbers, joined, are one long number.
func TestWriter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var w Writer
	for range 500 {
		w.Reset()
		whole, total := new(big.Int), 0
		for range 1 + rng.IntN(8) {
			bits := rng.IntN(140)
			z := new(big.Int).SetUint64(rng.Uint64())
			z.Mul(z, new(big.Int).SetUint64(rng.Uint64()))
			words := make([]uint64, Words(bits))
			PutWords(words, z, bits)
			w.Append(words, bits)
			z.And(z, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), big.NewInt(1)))
			whole.Or(whole.Lsh(whole, uint(bits)), z)
			total += bits
		}
		w.AppendBytes([]byte{0xa5})
		whole.Or(whole.Lsh(whole, 8), big.NewInt(0xa5))
		total += 8
		n := (total + 7) / 8
		want := whole.Lsh(whole, uint(8*n-total)).FillBytes(make([]byte, n))
		if w.Bits != total || !bytes.Equal(w.B, want) {
			t.Fatalf("%d bits %x, want %d bits %x", w.Bits, w.B, total, want)
		}
	}
}

func TestPutWords(t *testing.T) {
	for _, tt := range []struct {
		k    string
		bits int
		want []uint64
	}{
		{"0", 8, []uint64{0}},
		{"-1", 8, []uint64{0xff}},
		{"256", 8, []uint64{0}},
		{"-1", 65, []uint64{^uint64(0), 1}},
		{"-0x10000000000000000", 128, []uint64{0, ^uint64(0)}},
		{"0x123456789abcdef0123456789", 100, []uint64{0xcdef0123456789 | 0xab<<56, 0x123456789}},
	} {
		k, ok := new(big.Int).SetString(tt.k, 0)
		if !ok {
			t.Fatal(tt.k)
		}
		got := make([]uint64, len(tt.want))
		PutWords(got, k, tt.bits)
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s in %d bits: %x, want %x", tt.k, tt.bits, got, tt.want)
			}
		}
	}
}

// TestPutBytes compares with big integers.
func TestPutBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 10000 {
		bits, b := 1+r.IntN(200), make([]byte, r.IntN(30))
		for i := range b {
			b[i] = byte(r.Uint32() >> r.IntN(32))
		}
		got, want := make([]uint64, Words(bits)), make([]uint64, Words(bits))
		got[0] = 7
		z := new(big.Int).SetBytes(b)
		PutWords(want, z, bits)
		if fits := PutBytes(got, b, bits); !slices.Equal(got, want) || fits != (z.BitLen() <= bits) {
			t.Fatalf("%x in %d bits: %x, fits %v, want %x", b, bits, got, fits, want)
		}
	}
}
