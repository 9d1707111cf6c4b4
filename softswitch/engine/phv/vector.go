package phv

import "slices"

// Vector is the packet header vector of one packet.
type Vector struct {
	W    []uint64 // see Layout; the temporaries of lowered code follow the layout
	VL   []byte   // bytes of variable-length fields
	Args []uint64 // parameters of the running action
}

// Words returns the words of a header.
func (v *Vector) Words(h *Header) []uint64 { return v.W[h.Base : h.Base+h.Type.Words] }

// Field returns the words of a field.
func (v *Vector) Field(r Ref) []uint64 { return v.W[r.Word() : r.Word()+r.F.Words] }

// Variable returns the content of a variable-length field.
func (v *Vector) Variable(r Ref) []byte {
	return v.VL[r.H.VLOff : r.H.VLOff+int(v.W[r.Word()]/8)]
}

// variableRoom returns the whole memory of a header's variable-length field.
func (v *Vector) variableRoom(h *Header) []byte { return v.VL[h.VLOff : h.VLOff+h.Type.VLMax] }

// IsValid reports whether a header is valid. Metadata is always valid.
func (v *Vector) IsValid(h *Header) bool { return h.Metadata || v.W[h.Valid] != 0 }

// MarkValid makes a header valid and the other headers of its union invalid.
func (v *Vector) MarkValid(h *Header) {
	if h.Union != nil {
		v.Invalidate(h.Union.Elems)
	}
	v.W[h.Valid] = 1
}

// Invalidate makes headers invalid.
func (v *Vector) Invalidate(hs []*Header) {
	for _, h := range hs {
		v.W[h.Valid] = 0
	}
}

// Length returns the length of a header on the wire, in bytes.
func (v *Vector) Length(h *Header) int {
	n := h.Type.Bits
	if h.Type.VL >= 0 {
		n += int(v.W[h.Base+h.Type.Fields[h.Type.VL].Word])
	}
	return n / 8
}

// Assign copies a header and its validity.
func (v *Vector) Assign(dst, src *Header) {
	if !v.IsValid(src) {
		v.W[dst.Valid] = 0
		return
	}
	v.MarkValid(dst)
	copy(v.Words(dst), v.Words(src))
	copy(v.variableRoom(dst), v.variableRoom(src))
}

// AssignAll copies headers to others, one by one.
func (v *Vector) AssignAll(dst, src []*Header) {
	for i := range dst {
		v.Assign(dst[i], src[i])
	}
}

// AssignStack copies a stack to another of the same type and size.
func (v *Vector) AssignStack(dst, src *Stack) {
	v.W[dst.Next] = v.W[src.Next]
	for i := range dst.Elems {
		v.AssignAll(dst.Elems[i], src.Elems[i])
	}
}

// swap exchanges two elements of a stack and their validities.
func (v *Vector) swap(as, bs []*Header) {
	for i := range as {
		a, b := as[i], bs[i]
		swapAll(v.Words(a), v.Words(b))
		swapAll(v.variableRoom(a), v.variableRoom(b))
		v.W[a.Valid], v.W[b.Valid] = v.W[b.Valid], v.W[a.Valid]
	}
}

func swapAll[E any](x, y []E) {
	for i := range x {
		x[i], y[i] = y[i], x[i]
	}
}

// Push moves the elements of a stack back by n and makes the first n elements invalid. BMv2 does
// not make unions invalid.
func (v *Vector) Push(s *Stack, n uint64) {
	size := uint64(len(s.Elems))
	n = min(n, size)
	if n == 0 {
		return
	}
	v.W[s.Next] = min(size, v.W[s.Next]+n)
	for i := size - 1; i >= n; i-- {
		v.swap(s.Elems[i], s.Elems[i-n])
	}
	for _, e := range s.Elems[:n] {
		v.Invalidate(e)
	}
}

// Pop moves the elements of a stack forward by n and makes the last n elements invalid.
func (v *Vector) Pop(s *Stack, n uint64) {
	size := uint64(len(s.Elems))
	n = min(n, size)
	if n == 0 {
		return
	}
	v.W[s.Next] -= min(v.W[s.Next], n)
	for i := range size - n {
		v.swap(s.Elems[i], s.Elems[i+n])
	}
	for _, e := range s.Elems[size-n:] {
		v.Invalidate(e)
	}
}

// Same reports whether both headers are valid and have the same type and content.
func (v *Vector) Same(a, b *Header) bool {
	if a == nil || b == nil || a.Type != b.Type || !v.IsValid(a) || !v.IsValid(b) || !slices.Equal(v.Words(a), v.Words(b)) {
		return false
	}
	if a.Type.VL < 0 {
		return true
	}
	f := &a.Type.Fields[a.Type.VL]
	return string(v.Variable(Ref{a, f})) == string(v.Variable(Ref{b, f}))
}

// ValidMember returns the valid header of a union and its index, or nil if none is valid.
func (v *Vector) ValidMember(u *Union) (h *Header, at int) {
	if u != nil {
		for i, h := range u.Elems {
			if v.W[h.Valid] != 0 {
				return h, i
			}
		}
	}
	return nil, 0
}

// SameUnion reports whether the same header is valid in both unions, with the same content.
func (v *Vector) SameUnion(a, b *Union) bool {
	x, i := v.ValidMember(a)
	y, j := v.ValidMember(b)
	return i == j && v.Same(x, y)
}
