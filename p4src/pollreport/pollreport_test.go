package pollreport

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
)

// golden has a different value in every field.
const golden = "01fe" + "abcd" + "010203040506" + "0a0b0c0d0e0f" + "112233445566" + "00000007" +
	"00000000" + "00000001" + "00000002" + "00000003" + "00000004" + "00000005" + "00000006" + "ffffffff" +
	"0188" + "0405060708ff" + "000000a0" + "000000a1" +
	"00000010" + "00000011" + "00000012" + "00000013" + "00000014" + "00000015" + "00000016" + "00000017" +
	"00000020" + "00000021" + "00000022" + "00000023" + "00000024" + "00000025" + "00000026" + "00000027" +
	"00000030" + "00000031" + "00000032" + "00000033" + "00000034" + "00000035" + "00000036" + "00000037" +
	"00000040" + "00000041" + "00000042" + "00000043" + "00000050" + "00000051" + "00000052" + "80000053"

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
		Buffer: Buffer{
			PortPaused: true, PausedQueues: 0x88, LastPause: 0x0405060708ff, PortShared: 0xa0, Insured: 0xa1,
			Private:  [8]uint32{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17},
			Shared:   [8]uint32{0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27},
			Headroom: [8]uint32{0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37},
			Used:     Pools{0x40, 0x41, 0x42, 0x43},
			Peak:     Pools{0x50, 0x51, 0x52, 0x80000053},
		},
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !bytes.Equal(rest, []byte{0xc0, 0xff, 0xee}) {
		t.Errorf("rest is %x", rest)
	}
	if all := got.Buffer.Paused(); all != 0xff {
		t.Errorf("a paused port has paused classes %08b, want all", all)
	}
	if some := (&Buffer{PausedQueues: 0x88}).Paused(); some != 0x88 {
		t.Errorf("paused classes %08b, want 10001000", some)
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

// TestPortOnly: a report from a program without buffer accounts.
func TestPortOnly(t *testing.T) {
	b, err := hex.DecodeString("03fe" + golden[4:2*portSize] + "c0ffee")
	if err != nil {
		t.Fatal(err)
	}
	got, rest, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	want := Report{
		PortOnly: true, Port: 510, LastDelay: 0xabcd, Time: 0x010203040506, DepartedBytes: 0x0a0b0c0d0e0f,
		DepartedPackets: 0x112233445566, AdmissionDrops: 7, QueueBytes: [8]uint32{0, 1, 2, 3, 4, 5, 6, 0xffffffff},
	}
	if got != want || !bytes.Equal(rest, []byte{0xc0, 0xff, 0xee}) {
		t.Errorf("got %+v and %x, want %+v", got, rest, want)
	}
	if again := got.Append(nil); !bytes.Equal(again, b[:portSize]) {
		t.Errorf("encoded as %x", again)
	}
	if _, _, err := Parse(b[:portSize-1]); !errors.Is(err, ErrShort) {
		t.Errorf("a byte less: error %v, want %v", err, ErrShort)
	}
	for _, first := range []byte{0x04, 0x06, 0xfe} {
		b[0] = first
		if _, _, err := Parse(b); !errors.Is(err, ErrLayout) {
			t.Errorf("first byte %#x: error %v, want %v", first, err, ErrLayout)
		}
	}
}

func FuzzParse(f *testing.F) {
	b, _ := hex.DecodeString(golden)
	f.Add(b)
	f.Add([]byte{})
	f.Add(append([]byte{0x02}, b[1:]...))
	f.Add(append(b, 1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := Parse(b)
		if err != nil {
			return
		}
		again, rest2, err := Parse(r.Append(nil))
		if err != nil || !reflect.DeepEqual(again, r) || len(rest2) != 0 || len(rest) != len(b)-len(r.Append(nil)) {
			t.Fatalf("%x: %+v became %+v (%v)", b, r, again, err)
		}
	})
}
