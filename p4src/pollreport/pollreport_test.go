package pollreport

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

// golden has a different value in every field.
const golden = "01fe" + "abcd" + "010203040506" + "0a0b0c0d0e0f" + "112233445566" + "00000007" +
	"00000000" + "00000001" + "00000002" + "00000003" + "00000004" + "00000005" + "00000006" + "ffffffff"

func TestParse(t *testing.T) {
	b, err := hex.DecodeString(golden + "c0ffee")
	if err != nil {
		t.Fatal(err)
	}
	got, rest, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	want := Report{
		Port: 510, LastDelay: 0xabcd, Time: 0x010203040506, DepartedBytes: 0x0a0b0c0d0e0f,
		DepartedPackets: 0x112233445566, AdmissionDrops: 7,
		QueueBytes: [8]uint32{0, 1, 2, 3, 4, 5, 6, 0xffffffff},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !bytes.Equal(rest, []byte{0xc0, 0xff, 0xee}) {
		t.Errorf("rest is %x", rest)
	}
	if again := got.Append(nil); !bytes.Equal(again, b[:Size]) {
		t.Errorf("encoded as %x", again)
	}
}

func TestParseShort(t *testing.T) {
	for _, n := range []int{0, 1, Size - 1} {
		if _, _, err := Parse(make([]byte, n)); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: error %v, want %v", n, err, ErrShort)
		}
	}
}

func FuzzParse(f *testing.F) {
	b, _ := hex.DecodeString(golden)
	f.Add(b)
	f.Add([]byte{})
	f.Add(append(b, 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := Parse(b)
		if err != nil {
			return
		}
		again, rest2, err := Parse(r.Append(nil))
		if err != nil || again != r || len(rest2) != 0 || len(rest) != len(b)-Size {
			t.Fatalf("%x: %+v became %+v (%v)", b, r, again, err)
		}
	})
}
