package symbolic

import "testing"

func TestMathUnit(t *testing.T) {
	double := MathUnit{Scale: -6, Data: [16]uint8{0: 3, 8: 128, 144, 160, 176, 192, 208, 224, 240}}
	for x, want := range map[uint32]uint32{0: 3, 1: 2, 5: 10, 15: 30, 16: 32, 17: 32, 31: 60, 0x10000000: 0x20000000} {
		if got := double.Execute(x); got != want {
			t.Errorf("2·%d is %d, want %d", x, got, want)
		}
	}
}
