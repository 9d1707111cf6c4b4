package expr

import (
	"math/big"
	"testing"
)

// The evaluator computes constants, also while the tree is built.
func TestOperators(t *testing.T) {
	for _, tt := range []struct {
		l    int64
		op   string
		r    int64
		want int64
	}{
		{7, "+", -9, -2}, {7, "-", 9, -2}, {-3, "*", 5, -15},
		{-7, "/", 2, -3}, {7, "/", 0, 0}, {-7, "%", 2, -1}, {7, "%", 0, 0},
		{6, "&", 3, 2}, {6, "|", 3, 7}, {6, "^", 3, 5},
		{3, "<<", 4, 48}, {3, "<<", -1, 3}, {-5, ">>", 1, -3},
		{200, "two_comp_mod", 8, -56}, {-129, "two_comp_mod", 8, 127},
		{200, "sat_cast", 8, 127}, {-200, "sat_cast", 8, -128}, {5, "sat_cast", 8, 5},
		{300, "usat_cast", 8, 255}, {-1, "usat_cast", 8, 0}, {9, "usat_cast", 8, 9},
	} {
		n := NewOp(Operators[tt.op], NewInt(tt.l), NewInt(tt.r))
		var e Evaluator
		z := new(big.Int)
		if e.Data(n, z); z.Int64() != tt.want {
			t.Errorf("%d %s %d = %v, want %d", tt.l, tt.op, tt.r, z, tt.want)
		}
		if n.Kind != Const {
			t.Errorf("%d %s %d is not a constant", tt.l, tt.op, tt.r)
		}
		if lo := new(big.Int).Neg(new(big.Int).Lsh(one, uint(n.Range.Bits))); z.BitLen() > n.Range.Bits && z.Cmp(lo) != 0 || z.Sign() < 0 && !n.Range.Signed {
			t.Errorf("%d %s %d = %v is outside of its range %+v", tt.l, tt.op, tt.r, z, n.Range)
		}
	}
}

func TestRelations(t *testing.T) {
	for text, rel := range Relations {
		for _, pair := range [][2]int64{{1, 2}, {2, 1}, {2, 2}} {
			l, r := NewInt(pair[0]), NewInt(pair[1])
			holds := NewCompare(rel, l, r).K.Sign() != 0
			if NewCompare(rel^1, l, r).K.Sign() != 0 == holds {
				t.Errorf("%v %s: the opposite relation holds as well, or neither", pair, text)
			}
			if NewCompare(rel.Mirrored(), r, l).K.Sign() != 0 != holds {
				t.Errorf("%v %s: the mirrored relation differs", pair, text)
			}
		}
	}
}

func TestOrZero(t *testing.T) {
	x := &Node{Type: Data, Kind: Field, Range: Range{Bits: 32}}
	if got := NewOp(BitOr, x, NewInt(0)); got != x {
		t.Errorf("x | 0 is %+v, want x", got)
	}
	if got := NewOp(BitOr, x, NewInt(1)); got == x {
		t.Error("x | 1 is x")
	}
}
