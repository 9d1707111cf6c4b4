package symbolic

import "slices"

// fcs is the length of Ethernet's checksum, which the chip counts.
const fcs = 4

// Arrived is a packet that has passed ingress.
type Arrived struct {
	Dropped            bool
	Port, Queue, Class uint32
	Digest             []uint64 // the fields of flow_digest_t, nil without one
	Data               []byte   // the packet as egress gets it
	Length             int      // as it arrived, with Ethernet's checksum
	Choice             uint32   // the hash that chose a next hop
}

// Departure is the traffic manager's metadata for a departing packet.
type Departure struct {
	Found, Left uint32 // depth of its queue at its arrival and departure, in cells
	Delay       uint32 // ns
	Time        uint64 // ns
}

// Left is egress's result for a packet.
type Left struct {
	Frame   []byte // nil if it ends here
	Report  []byte // its mirror copy, as it reaches the CPU port; nil without one
	Session uint64 // of the mirror copy
}

// begin makes the headers and metadata of a pipe and runs its parser over data.
func (r *run) begin(parser string, data []byte) (p *packet, hdr, meta, intrinsic *slot) {
	p = &packet{data: data}
	in := r.chip.pipe[parser]
	args := []*slot{{t: in.u.params[0].typ, obj: p}}
	for _, v := range in.u.params[1:] {
		args = append(args, r.chip.place(v.typ))
	}
	r.apply(in, args)
	return p, args[1], args[2], args[3]
}

// zero makes a place that the chip has cleared.
func (r *run) zero(control string, param int) *slot {
	s := r.chip.place(r.chip.pipe[control].u.params[param].typ)
	for _, f := range s.f {
		f.n = 0
	}
	return s
}

// with prepends one of the chip's own headers.
func (r *run) with(header string, fields map[string]uint64, pad uint64, data []byte) []byte {
	h := r.chip.place(r.prog.types[header])
	for k, n := range fields {
		h.f[k].n = mask(n, h.f[k].t.width)
	}
	return slices.Concat(flat(value{slot: h}), make([]byte, pad/8), data)
}

// end runs a deparser and appends the unparsed payload.
func (r *run) end(deparser string, hdr, meta, deparse *slot, rest []byte) []byte {
	out := &packet{}
	r.apply(r.chip.pipe[deparser], []*slot{{t: &typ{kind: 'x'}, obj: out}, hdr, meta, deparse})
	return append(out.data, rest...)
}

func caught(err *error) {
	switch e := recover().(type) {
	case nil:
	case error:
		*err = e
	default:
		panic(e)
	}
}

// Ingress processes a frame that arrived on a port.
func (c *Chip) Ingress(port uint32, frame []byte) (a Arrived, err error) {
	defer caught(&err)
	r := &run{chip: c, prog: c.prog, accessed: map[*register]bool{}, bytes: len(frame) + fcs}
	pad := r.eval(c.prog.consts["PORT_METADATA_SIZE"], nil).n
	p, hdr, meta, intrinsic := r.begin("IngressParser", r.with("ingress_intrinsic_metadata_t", map[string]uint64{"ingress_port": uint64(port)}, pad, frame))
	fromParser, deparse, tm := r.zero("ingress", 3), r.zero("ingress", 4), r.zero("ingress", 5)
	fromParser.f["parser_err"].n, fromParser.f["global_tstamp"].n = r.parserError, mask(c.Now, 48)
	r.parserError = 0
	r.apply(c.pipe["ingress"], []*slot{hdr, meta, intrinsic, fromParser, deparse, tm})
	if deparse.f["drop_ctl"].n&1 != 0 {
		return Arrived{Dropped: true}, nil
	}
	a = Arrived{Port: uint32(tm.f["ucast_egress_port"].n), Queue: uint32(tm.f["qid"].n), Class: uint32(tm.f["ingress_cos"].n), Length: r.bytes, Choice: r.choice}
	a.Data = r.end("IngressDeparser", hdr, meta, deparse, p.data[p.at/8:])
	a.Digest = r.digest
	return a, nil
}

// Egress sends a packet out of its port.
func (c *Chip) Egress(a Arrived, d Departure) (l Left, err error) {
	defer caught(&err)
	l, mirrored, err := c.egress(a, d)
	if err != nil || mirrored == nil {
		return l, err
	}
	copied, _, err := c.egress(Arrived{Port: a.Port, Data: mirrored}, d)
	l.Report = copied.Frame
	return l, err
}

// egress is one egress pass; mirrored is the header in front of a mirror copy.
func (c *Chip) egress(a Arrived, d Departure) (l Left, mirrored []byte, err error) {
	r := &run{chip: c, prog: c.prog, accessed: map[*register]bool{}, bytes: len(a.Data) + fcs}
	p, hdr, meta, intrinsic := r.begin("EgressParser", r.with("egress_intrinsic_metadata_t", map[string]uint64{
		"egress_port": uint64(a.Port), "enq_qdepth": uint64(d.Found), "deq_qdepth": uint64(d.Left), "deq_timedelta": uint64(d.Delay), "pkt_length": uint64(a.Length)}, 0, a.Data))
	fromParser, deparse := r.zero("egress", 3), r.zero("egress", 4)
	fromParser.f["global_tstamp"].n = mask(d.Time, 48)
	r.apply(c.pipe["egress"], []*slot{hdr, meta, intrinsic, fromParser, deparse, r.zero("egress", 5)})
	out := r.end("EgressDeparser", hdr, meta, deparse, p.data[p.at/8:])
	l.Session = r.session
	if deparse.f["drop_ctl"].n&1 == 0 {
		l.Frame = out
	}
	if r.mirrored {
		mirrored = append(flat(r.mirror), out...)
	}
	return l, mirrored, nil
}

// Counter returns a cell of a counter, by its name in P4Info.
func (c *Chip) Counter(name string, index uint64) Count { return c.counters[name].cells[index] }

// Register returns a cell of a register, by its name in P4Info.
func (c *Chip) Register(name string, index uint64) uint64 { return c.registers[name].cells[index] }

// SetRegister writes a cell of a register.
func (c *Chip) SetRegister(name string, index, n uint64) { c.registers[name].cells[index] = n }

// EntryCount returns the direct counters of a table's entries, in order of insertion.
func (c *Chip) EntryCount(table string) (all []Count) {
	for _, e := range c.tables[table].list {
		all = append(all, e.counts[0])
	}
	return all
}
