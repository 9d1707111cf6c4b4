package engine

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/hash"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// calculation is a hash or checksum over fields, headers, constants and the payload. It
// concatenates the fields without padding, and skips the fields of invalid headers.
type calculation struct {
	input      []calcInput
	payload    bool
	hash       hash.Func
	robin      int // index of its round-robin state in the instance, −1 for none
	consistent bool
	csum       bool         // the algorithm is the Internet checksum
	ipv4       bool         // the old checksum type ipv4
	whole      []wholeField // the inputs if all are fields of one to eight bytes; else nil
	bytes      int          // their length
}

// wholeField is a field of one to eight bytes.
type wholeField struct {
	valid int // word of its header's validity, −1 for metadata
	word  uint32
	shift uint8 // moves the field to the top of 64 bits
	bytes uint8
}

// calcInput is one part of the input: a field, or a constant.
type calcInput struct {
	ref   phv.Ref
	konst []uint64
	bits  int
}

// calculation compiles a hash.
func (c *compiler) calculation(algo string, input []bmv2json.Value) *calculation {
	k := &calculation{robin: -1}
	switch algo {
	case "round_robin", "round_robin_consistent":
		k.robin, k.consistent = c.robins, algo == "round_robin_consistent"
		c.robins++
	default:
		if k.hash = hash.Named(algo); k.hash == nil {
			c.Fail("unknown hash algorithm %q", algo)
		}
	}
	for i := range input {
		c.In("input", i, func() { k.add(c, &input[i]) })
	}
	k.csum = algo == "csum16"
	if !slices.ContainsFunc(k.input, func(in calcInput) bool { return in.konst != nil || in.ref.F.Variable || in.bits%8 != 0 || in.bits > 64 }) {
		for _, in := range k.input {
			f := wholeField{in.ref.H.Valid, uint32(in.ref.Word()), uint8(64 - in.bits), uint8(in.bits / 8)}
			if in.ref.H.Metadata {
				f.valid = -1
			}
			k.whole = append(k.whole, f)
			k.bytes += in.bits / 8
		}
	}
	return k
}

func (k *calculation) add(c *compiler, in *bmv2json.Value) {
	switch in.Type {
	case "field":
		c.unread(func() { k.addField(c.fieldValue(in.Value)) }) // see usesInput
	case "hexstr":
		if in.Bitwidth < 1 || in.Bitwidth > bmv2json.MaxBits {
			c.Fail("bitwidth of a constant is %d, allowed are 1 to %d", in.Bitwidth, bmv2json.MaxBits)
		}
		v := make([]uint64, phv.Words(in.Bitwidth))
		phv.PutWords(v, c.Hex(c.Str(in.Value)), in.Bitwidth)
		k.input = append(k.input, calcInput{konst: v, bits: in.Bitwidth})
	case "header":
		k.addHeader(c.headerNamed(c.Str(in.Value)))
	case "payload":
		k.payload = true
	default:
		c.Fail("unknown input type %q, allowed are field, hexstr, header and payload", in.Type)
	}
}

func (k *calculation) addField(r phv.Ref) {
	k.input = append(k.input, calcInput{ref: r, bits: r.F.Bits})
}

func (k *calculation) addHeader(h *phv.Header) {
	for i := range h.Type.Fields {
		k.addField(phv.Ref{H: h, F: &h.Type.Fields[i]})
	}
}

// usesInput records which fields a calculation reads.
func (c *compiler) usesInput(k *calculation) {
	for i := range k.input {
		if in := &k.input[i]; in.konst == nil {
			c.uses(in.ref)
		}
	}
}

// output computes the hash.
func (k *calculation) output(p *Packet) uint64 {
	b := k.gather(p)
	if k.robin >= 0 {
		return p.in.robins[k.robin].Next(k.consistent, b)
	}
	return k.hash(b)
}

// gather returns the input as bytes.
func (k *calculation) gather(p *Packet) []byte {
	w := &p.input
	w.Reset()
	if k.whole != nil {
		k.gatherBytes(p)
	} else {
		k.gatherBits(p)
	}
	if k.payload { // BMv2 appends the payload on a byte boundary
		w.B = append(w.B, p.payload()...)
	}
	return w.B
}

func (k *calculation) gatherBits(p *Packet) {
	w := &p.input
	for i := range k.input {
		switch in := &k.input[i]; {
		case in.konst != nil:
			w.Append(in.konst, in.bits)
		case !p.IsValid(in.ref.H):
		case in.ref.F.Variable:
			w.AppendBytes(p.Variable(in.ref))
		default:
			w.Append(p.Field(in.ref), in.bits)
		}
	}
}

// gatherBytes writes eight bytes for each field. The next field overwrites the bytes beyond the
// field's width.
func (k *calculation) gatherBytes(p *Packet) {
	b, n := slices.Grow(p.input.B, k.bytes+8)[:k.bytes+8], 0
	for i := range k.whole {
		if f := &k.whole[i]; f.valid < 0 || p.W[f.valid] != 0 {
			binary.BigEndian.PutUint64(b[n:n+8], p.W[f.word]<<(f.shift&63))
			n += int(f.bytes)
		}
	}
	p.input.B = b[:n]
}

// selector compiles the hash of an action selector. The JSON may leave out the type of its inputs.
func (c *compiler) selector(j *bmv2json.Selector) (k *calculation) {
	c.In("selector", -1, func() {
		input := slices.Clone(j.Input)
		for i := range input {
			if strings.TrimSpace(input[i].Type) == "" {
				input[i].Type = "field"
			}
		}
		k = c.calculation(j.Algo, input)
		c.usesInput(k)
	})
	return k
}
