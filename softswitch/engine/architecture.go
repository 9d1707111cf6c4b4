package engine

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/softswitch/bmv2json"
	"github.com/headgate/headgate/softswitch/engine/expr"
	"github.com/headgate/headgate/softswitch/engine/phv"
)

// Architecture is a P4 architecture. It names the blocks of its programs and makes a Model of each
// program.
type Architecture struct {
	Name string
	// Passes are the blocks that a packet passes in ingress and in egress. A program belongs to the
	// architecture if it has the parser of ingress.
	Passes [2]Blocks
	// Scratch returns the number of words that the architecture keeps with each packet of a program.
	// They are 0 in a packet that enters the switch, and count as metadata.
	Scratch func(j *bmv2json.Program) int
	// New makes the model of a program. It runs when the program's headers, state and lists are
	// compiled, and fails the compilation with c.Fail.
	New func(c *Compiler) Model
	// RecirculatePort is the egress port of packets that go back to ingress. They do not wait in a queue: Ingress
	// gets them with this EgressPort. CPUPort is the CPU port's number in the program. 0 means that there is none.
	RecirculatePort, CPUPort uint32
	// Colors are the values of green, yellow and red in the program.
	Colors [3]uint64
}

// Blocks names a parser, a pipeline and a deparser as the program's JSON does; "" means none.
type Blocks struct{ Parser, Pipeline, Deparser string }

// Pass is one of the two passes of a packet through the program.
type Pass int

// The passes.
const (
	Ingress Pass = iota
	Egress
)

// Model is an architecture with the metadata and externs of one program. Its methods may run on
// several goroutines at a time, each with a worker of its own.
type Model interface {
	// Primitive compiles a primitive, or a method of an extern, that only the architecture has. It returns nil for
	// unknown ones.
	Primitive(c *Compiler, j *bmv2json.Primitive) Emit
	// Receive writes the metadata of a packet that arrived.
	Receive(p *Packet)
	// Ingress takes a packet through the first pass, and Egress through the second. They pass the
	// results to out and end the packet, or pass it on.
	Ingress(t *Worker, p *Packet, out Out)
	Egress(t *Worker, p *Packet, out Out)
}

// architectures are the linked-in architectures.
var architectures []*Architecture

// Support links an architecture in. Call it only from package initialisation, because it takes no
// lock.
func Support(a Architecture) bool {
	architectures = append(architectures, &a)
	return true
}

// architecture returns the architecture that a program is written for.
func (c *compiler) architecture(j *bmv2json.Program) *Architecture {
	for _, a := range architectures {
		for i := range j.Parsers {
			if j.Parsers[i].Name == a.Passes[Ingress].Parser {
				return a
			}
		}
	}
	var names string
	for i, a := range architectures {
		if i > 0 {
			names += " or "
		}
		names += `"` + a.Passes[Ingress].Parser + `" (` + a.Name + ")"
	}
	c.Fail("there is no parser named %s", names)
	return nil
}

// Field is a metadata field that the architecture reads or writes, or a word of its scratch. The
// zero value is no field: it reads as 0, and writing it has no effect.
type Field struct {
	word int // plus one
	mask uint64
}

// Set writes the field, modulo its width.
func (f Field) Set(p *Packet, v uint64) {
	if f.word > 0 {
		p.W[f.word-1] = v & f.mask
	}
}

// Get reads the field.
func (f Field) Get(p *Packet) uint64 {
	if f.word == 0 {
		return 0
	}
	return p.W[f.word-1]
}

// Exists reports whether f is a field and not the zero value.
func (f Field) Exists() bool { return f.word > 0 }

// Input finds a field that the architecture writes and never reads. If the program never reads the field, f
// becomes the zero value at the end of the compilation.
func (c *compiler) Input(f *Field, header, name string) {
	c.Output(f, header, name)
	c.inputs = append(c.inputs, f)
}

// Output finds a field that the program writes and the architecture reads.
func (c *compiler) Output(f *Field, header, name string) {
	if r, ok := c.layout.Find(header, name); ok {
		*f = c.Intrinsic(r)
	}
}

// Intrinsic returns a field of at most 64 bits as a Field that the architecture may write.
func (c *compiler) Intrinsic(r phv.Ref) Field {
	if r.IsValidity() || r.F.Variable || r.F.Bits > 64 {
		c.Fail("%s.%s must have 1 to 64 bits", r.H.Name, r.F.Name)
	}
	c.writes(r)
	return Field{r.Word() + 1, r.F.Mask}
}

// Require fails the compilation if a field does not exist.
func (c *compiler) Require(f Field, header, name string) {
	if !f.Exists() {
		c.Fail("%s.%s is required and not declared", header, name)
	}
}

// Scratch returns word i of the architecture's scratch as a field of a width up to 64 bits.
func (c *compiler) Scratch(i, bits int) Field {
	return Field{c.layout.Scratch + i + 1, phv.LastMask(bits)}
}

// The methods below compile primitives of an architecture.

// Store stores a number in a field.
func (c *compiler) Store(f Field, n *expr.Node) Emit {
	return func(a *assembler) {
		if f.Exists() {
			a.value(n, uint32(f.word-1), f.mask)
		}
	}
}

// Both lowers two statements.
func Both(x, y Emit) Emit {
	return func(a *assembler) { a.statements([]Emit{x, y}) }
}

// Like compiles a call as a call of primitive op. The first parameter gets type typ.
func (c *compiler) Like(j *bmv2json.Primitive, op, typ string) Emit {
	k := bmv2json.Primitive{Op: op, Parameters: slices.Clone(j.Parameters)}
	if len(k.Parameters) > 0 {
		k.Parameters[0].Type = typ
	}
	return c.primitive(&k)
}

// Compute assigns f(x, y) to argument i.
func (c *compiler) Compute(j *bmv2json.Primitive, i int, x, y *expr.Node, f func(p *Packet, x, y uint64) uint64) Emit {
	return c.computed(c.target(j, i, expr.Data), func(a *assembler, t int, _ *label) {
		x, y := a.operand(x, allBits), a.operand(y, allBits)
		a.call(func(p *Packet) { p.W[t] = f(p, p.W[x], p.W[y]) })
	})
}

// Bytes compiles argument i, a list of fields, headers and constants. The returned function concatenates them
// without gaps. It puts zeros in front, so that the length is a multiple of unit bits.
func (c *compiler) Bytes(j *bmv2json.Primitive, i, unit int) func(p *Packet) []byte {
	k := &calculation{robin: -1}
	c.In("parameters", i, func() {
		var list []bmv2json.Value
		if raw := j.Parameters[i].Value; strings.HasPrefix(string(raw), "[") {
			c.Decode(raw, &list)
		} else {
			list = []bmv2json.Value{*c.Value(raw)}
		}
		bits := 0
		for n := range list {
			if v := &list[n]; v.Type == "hexstr" && v.Bitwidth == 0 {
				v.Bitwidth = 8 * len(c.HexBytes(c.Str(v.Value))) // p4c pads constants to whole bytes
			}
			k.add(c, &list[n])
		}
		for _, in := range k.input {
			bits += in.bits
		}
		if pad := (unit - bits%unit) % unit; pad > 0 {
			k.input = slices.Insert(k.input, 0, calcInput{konst: make([]uint64, phv.Words(pad)), bits: pad})
		}
	})
	c.usesInput(k)
	return k.gather
}

// LearnList compiles argument i, the number of a learn list. A constant must be 0 or the number of a declared
// list.
func (c *compiler) LearnList(j *bmv2json.Primitive, i int) *expr.Node {
	id := c.Data(j, i)
	if id.Kind == expr.Const && id.K.Sign() != 0 && c.learns[int(id.K.Int64())] == nil {
		c.Fail("generate_digest names learn list %v, which is not declared", id.K)
	}
	return id
}

// HeaderField returns a field of argument i, a header that the primitive writes.
func (c *compiler) HeaderField(j *bmv2json.Primitive, i int, name string) Field {
	h := c.headerArg(j, i)
	if h.Kind != expr.Fixed {
		c.Fail("%s wants a fixed header", j.Op)
	}
	c.writesHeader(h)
	if r, ok := h.Header.Field(name); ok && !r.F.Variable && r.F.Bits <= 64 {
		return Field{r.Word() + 1, r.F.Mask}
	}
	return Field{}
}

// finishInputs drops the fields that the program never uses. It runs when everything else is
// compiled.
func (c *compiler) finishInputs() {
	for _, f := range c.inputs {
		if f.Exists() && !c.used[f.word-1] {
			*f = Field{}
		}
	}
}
