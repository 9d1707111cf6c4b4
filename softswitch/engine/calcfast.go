package engine

import "encoding/binary"

// calcRun is a run of inputs under one validity: the header's valid word, or −1 for
// metadata and constants. Runs cover whole bytes, so that skipping one keeps the rest
// aligned; within a run, fields are gathered in groups of at most 64 bits.
type calcRun struct {
	valid  int
	groups []calcGroup
}

type calcGroup struct {
	parts []calcPart
	konst uint64
	bytes int
}

// calcPart is a field, moved left to its place in the group.
type calcPart struct {
	word  int
	shift uint8
}

func (g *calcGroup) load(p *Packet) uint64 {
	v := g.konst
	for i := range g.parts {
		v |= p.w[g.parts[i].word] << (g.parts[i].shift & 63)
	}
	return v
}

// compile finds runs and groups; calculations that do not fit them stay with gather's bit
// by bit way.
func (k *calculation) compile() {
	var runs []calcRun
	words := true // every run is of whole 16-bit words
	for i := 0; i < len(k.input); {
		run := calcRun{valid: k.input[i].validWord()}
		j := i
		for j < len(k.input) && k.input[j].validWord() == run.valid {
			j++
		}
		groups, ok := groupInputs(k.input[i:j])
		if !ok {
			return
		}
		for _, g := range groups {
			words = words && g.bytes%2 == 0
		}
		run.groups = groups
		runs = append(runs, run)
		i = j
	}
	k.runs = runs
	k.sum = words && k.algo == "csum16"
}

func (in *calcInput) validWord() int {
	if in.konst != nil || in.h.metadata {
		return -1
	}
	return in.h.valid
}

// calcPiece is an input of at most 64 bits, or one word of a wider one.
type calcPiece struct {
	word  int // −1 for a constant
	konst uint64
	bits  int
}

// calcPieces lists the words of inputs, the most significant first; nil where an input's
// length is not fixed.
func calcPieces(ins []calcInput) []calcPiece {
	var list []calcPiece
	for i := range ins {
		in := &ins[i]
		if in.konst == nil && (in.f == nil || in.f.f != nil && in.f.f.vl) {
			return nil
		}
		for k := (in.bits+63)/64 - 1; k >= 0; k-- {
			p := calcPiece{word: -1, bits: min(64, in.bits-64*k)}
			if in.konst != nil {
				p.konst = in.konst[k]
			} else {
				p.word = in.f.word() + k
			}
			list = append(list, p)
		}
	}
	return list
}

// groupInputs packs inputs into groups of whole 16-bit words where it can, else of bytes.
func groupInputs(ins []calcInput) ([]calcGroup, bool) {
	list := calcPieces(ins)
	if list == nil {
		return nil, false
	}
	var groups []calcGroup
	first, bits := 0, 0
	flush := func(end int) {
		g := calcGroup{bytes: bits / 8}
		at := bits
		for _, p := range list[first:end] {
			at -= p.bits
			if p.word < 0 {
				g.konst |= p.konst << at
			} else {
				g.parts = append(g.parts, calcPart{word: p.word, shift: uint8(at)})
			}
		}
		groups = append(groups, g)
		first, bits = end, 0
	}
	for i, p := range list {
		if bits+p.bits > 64 {
			if bits%8 != 0 {
				return nil, false
			}
			flush(i)
		}
		bits += p.bits
		if bits%16 == 0 && bits >= 32 {
			flush(i + 1)
		}
	}
	if bits%8 != 0 {
		return nil, false
	}
	if bits > 0 {
		flush(len(list))
	}
	return groups, true
}

// gatherRuns writes the input as bytes.
func (k *calculation) gatherRuns(p *Packet) []byte {
	b := p.bits.b[:0]
	for i := range k.runs {
		r := &k.runs[i]
		if r.valid >= 0 && p.w[r.valid] == 0 {
			continue
		}
		for j := range r.groups {
			g := &r.groups[j]
			n := len(b) + g.bytes
			b = binary.BigEndian.AppendUint64(b, g.load(p)<<(64-8*uint(g.bytes)))[:n]
		}
	}
	if k.payload {
		b = append(b, p.payload()...)
	}
	p.bits.b = b
	return b
}

// checksum adds the input up without writing it anywhere (RFC 1071: sums of wider words
// give the same checksum).
func (k *calculation) checksum(p *Packet) uint64 {
	var sum uint64
	for i := range k.runs {
		r := &k.runs[i]
		if r.valid >= 0 && p.w[r.valid] == 0 {
			continue
		}
		for j := range r.groups {
			v := r.groups[j].load(p)
			sum += v>>32 + v&0xffffffff
		}
	}
	if k.payload {
		sum = sumWords(sum, p.payload())
	}
	return foldSum(sum)
}
