package engine

// statements brings an action's primitives into the form that is lowered; nil where jumps
// go backwards or to a place that is known only when the action runs.
func (c *compiler) statements(js []jsonPrimitive, steps []step) []statement {
	body := make([]statement, len(js))
	for i := range js {
		if steps[i].jump {
			if steps[i].to <= i {
				return nil
			}
			body[i] = statement{kind: doJump, to: steps[i].to}
			if steps[i].cond != nil {
				body[i].cond = nonzero(c.dataArg(&js[i], 0)).form()
			}
			continue
		}
		body[i] = c.statement(&js[i])
		if body[i].kind == doCall {
			body[i].call = steps[i].run
		}
	}
	return body
}

// statement finds the form of a primitive; what has none is called.
func (c *compiler) statement(j *jsonPrimitive) statement {
	arith := map[string]string{"add": "+", "subtract": "-", "bit_xor": "^", "bit_or": "|", "bit_and": "&", "shift_left": "<<", "shift_right": ">>"}
	switch j.Op {
	case "assign", "modify_field":
		return c.setTo(c.target(j, 0), c.dataArg(j, 1))
	case "add_to_field", "subtract_from_field":
		op := "+"
		if j.Op == "subtract_from_field" {
			op = "-"
		}
		return c.setTo(c.target(j, 0), c.arith(op, c.typedArg(j, 0, xData).data, c.dataArg(j, 1)))
	case "register_read":
		r, dst, index := c.registerNamed(c.nameArg(j, 1, "register_array")), c.target(j, 0), c.dataArg(j, 2)
		if narrow(dst) && !dst.ref.f.sat && r.bits <= 64 && isIndex(index) {
			return statement{kind: doRead, word: dst.ref.word(), mask: dst.ref.f.mask, array: r.index, index: index.form()}
		}
	case "register_write":
		r := c.registerNamed(c.nameArg(j, 0, "register_array"))
		return c.writeTo(r, c.dataArg(j, 1), c.dataArg(j, 2))
	case "count":
		if index := c.dataArg(j, 1); isIndex(index) {
			return statement{kind: doCount, array: c.counterBy[c.nameArg(j, 0, "counter_array")].index, index: index.form()}
		}
	case "exit", "assert", "assume":
		return statement{kind: doCall, exits: true}
	default:
		if op := arith[j.Op]; op != "" {
			return c.setTo(c.target(j, 0), c.arith(op, c.dataArg(j, 1), c.dataArg(j, 2)))
		}
	}
	return statement{kind: doCall}
}

// narrow reports whether a target is a field of at most 64 bits.
func narrow(v *lvalue) bool {
	return v.ref != nil && v.ref.f != nil && !v.ref.f.vl && v.ref.f.bits <= 64
}

// isIndex reports whether a number beyond the end of an array is one as a word, too.
func isIndex(e *dexpr) bool { return e.fitsU64() || e.fitsI64() }

func (c *compiler) setTo(v *lvalue, src *dexpr) statement {
	switch {
	case narrow(v):
		return statement{kind: doSet, word: v.ref.word(), mask: v.ref.f.mask, value: fit(v.ref.f, src).form()}
	case v.reg != nil:
		return c.writeTo(v.reg, v.idx, src)
	}
	return statement{kind: doCall}
}

func (c *compiler) writeTo(r *registerSpec, index, src *dexpr) statement {
	if r.bits > 64 || !isIndex(index) {
		return statement{kind: doCall}
	}
	return statement{kind: doWrite, array: r.index, index: index.form(), value: src.form(), mask: lastMask(r.bits)}
}
