package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// widths are the widths of the fields in random expressions.
var widths = []int{1, 7, 8, 16, 31, 32, 33, 48, 63, 64, 65, 127, 128, 130}

// randomFields lays out fields from a word on, two of each width, one of them signed.
func randomFields(word int) (fields []*expr.Node, words int) {
	for _, w := range widths {
		for _, signed := range []bool{false, w > 1} {
			fields = append(fields, expr.NewWord(word+words, w, signed))
			words += phv.Words(w)
		}
	}
	return fields, words
}

func randomNumber(r *rand.Rand, fields []*expr.Node, depth int) *expr.Node {
	if depth == 0 || r.IntN(6) == 0 {
		switch r.IntN(4) {
		case 0:
			return expr.NewInt(r.Int64() >> r.IntN(64))
		case 1:
			return expr.NewInt(int64(r.IntN(70)))
		}
		return fields[r.IntN(len(fields))]
	}
	operand := func() *expr.Node { return randomNumber(r, fields, depth-1) }
	switch op := expr.Operator(r.IntN(int(expr.SubNatural) + 3)); op {
	case expr.SubNatural + 1:
		return expr.NewChoose(randomCondition(r, fields, depth-1), operand(), operand())
	case expr.SubNatural + 2:
		return expr.NewNumber(randomCondition(r, fields, depth-1))
	case expr.Wrap, expr.Saturate, expr.SaturateNatural:
		return expr.NewOp(op, operand(), expr.NewInt(int64(widths[1+r.IntN(len(widths)-1)])))
	case expr.ShiftLeft:
		return expr.NewOp(op, operand(), expr.NewOp(expr.SaturateNatural, operand(), expr.NewInt(7)))
	case expr.Min, expr.SubNatural: // these take only numbers that are not negative
		l := expr.NewOp(expr.SaturateNatural, operand(), expr.NewInt(60))
		return expr.NewOp(op, l, expr.NewOp(expr.SaturateNatural, operand(), expr.NewInt(64)))
	default:
		return expr.NewOp(op, operand(), operand())
	}
}

func randomCondition(r *rand.Rand, fields []*expr.Node, depth int) *expr.Node {
	if depth > 0 {
		k := []expr.Kind{expr.And, expr.Or, expr.Not, expr.Compare}[r.IntN(4)]
		if k != expr.Compare {
			return expr.NewLogic(k, randomCondition(r, fields, depth-1), randomCondition(r, fields, depth-1))
		}
	}
	l, rel := randomNumber(r, fields, depth), expr.Relation(r.IntN(6))
	if r.IntN(3) == 0 {
		return expr.NewCompare(rel, l, l)
	}
	return expr.NewCompare(rel, l, randomNumber(r, fields, depth))
}

// TestRandomExpressions compares lowered expressions with the evaluator.
func TestRandomExpressions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		prog := &Program{layout: &phv.Layout{}}
		fields, words := randomFields(0)
		prog.code.base = uint32(words)
		a := assembler{code: &prog.code}
		a.emit(instr{op: opEnd})
		n := randomNumber(r, fields, 1+r.IntN(4))
		bits := widths[r.IntN(len(widths))]
		d := a.newTemps(phv.Words(bits))
		pc := uint32(len(a.list))
		a.store(n, d, bits)
		a.emit(instr{op: opEnd})
		p := New(prog, Options{}).get()
		for range 8 {
			for _, f := range fields {
				w := p.W[f.Word : f.Word+phv.Words(f.Width)]
				for i := range w {
					w[i] = []uint64{0, 1, allBits, allBits >> 1, 1 << 63, r.Uint64(), r.Uint64() >> r.IntN(64)}[r.IntN(7)]
				}
				w[len(w)-1] &= phv.LastMask(f.Width)
			}
			p.exec(pc)
			want := make([]uint64, phv.Words(bits))
			p.eval.Store(n, want, bits)
			if got := p.W[d : d+uint32(len(want))]; !slices.Equal(got, want) {
				t.Fatalf("%s = %x, the evaluator gives %x", text(n, p.W), got, want)
			}
		}
	}
}

// text returns an expression as text, with its fields' values.
func text(n *expr.Node, w []uint64) string {
	switch n.Kind {
	case expr.Const:
		return n.K.String()
	case expr.Field:
		return fmt.Sprintf("%x:%d,%v", w[n.Word:n.Word+phv.Words(n.Width)], n.Width, n.Signed)
	case expr.Op:
		return fmt.Sprintf("(%s op%d %s)", text(n.L, w), n.Op, text(n.R, w))
	case expr.Compare:
		return fmt.Sprintf("(%s rel%d %s)", text(n.L, w), n.Rel, text(n.R, w))
	case expr.Number:
		return "num" + text(n.Cond, w)
	case expr.Choose:
		return fmt.Sprintf("(%s ? %s : %s)", text(n.Cond, w), text(n.L, w), text(n.R, w))
	case expr.Not:
		return "not" + text(n.L, w)
	}
	return fmt.Sprintf("(%s log%d %s)", text(n.L, w), n.Kind, text(n.R, w))
}
