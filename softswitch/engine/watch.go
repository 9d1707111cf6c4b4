package engine

import (
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate/softswitch/engine/phv"
	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/units"
)

// Tracer logs the way of packets through the program, in the words of BMv2's log. One serves several
// instances. Its fields do not change.
type Tracer struct {
	Log       *slog.Logger
	Port      int          // of the packets' arrival; AnyPort for all
	Fields    []FieldValue // that a packet must have behind the parser
	PerSecond int64        // of the packets' clock: how many are logged at most; 0: all

	second, left, skipped atomic.Int64
	packets               atomic.Uint64
}

// AnyPort is the Port of a Tracer that logs packets of all ports.
const AnyPort = -1

// FieldValue is a field of a header or of metadata and its value. A field is named as in the program's
// JSON (ipv4.dstAddr), with "hdr." in front or without, or by the end of that name (dstAddr). Of several fields that
// end so, any may have the value.
type FieldValue struct {
	Name  string
	Value *big.Int
}

// wanted is a FieldValue in a program.
type wanted struct {
	fields []phv.Ref
	value  *big.Int
}

// find finds the fields of a tracer in the instance's program.
func (in *Instance) find(fields []FieldValue) {
	for _, f := range fields {
		w := wanted{value: f.Value}
		name := strings.TrimPrefix(f.Name, "hdr.")
		for _, h := range in.prog.layout.List {
			for i := range h.Type.Fields {
				full := h.Name + "." + h.Type.Fields[i].Name
				if (full == name || strings.HasSuffix(full, "."+name)) && !h.Type.Fields[i].Variable {
					w.fields = append(w.fields, phv.Ref{H: h, F: &h.Type.Fields[i]})
				}
			}
		}
		if len(w.fields) == 0 {
			in.opts.Tracer.Log.Warn("no packet is traced: the program has no such field", "field", f.Name)
		}
		in.wanted = append(in.wanted, w)
	}
}

// of reports whether a packet has the value.
func (w *wanted) of(p *Packet) bool {
	for _, r := range w.fields {
		want := make([]uint64, r.F.Words)
		phv.PutWords(want, w.value, r.F.Bits)
		same := p.IsValid(r.H) && w.value.BitLen() <= r.F.Bits
		for i, v := range p.Of(r) {
			same = same && v == want[i]
		}
		if same {
			return true
		}
	}
	return false
}

// admit reports whether a packet's way is logged as far as its port and the rate tell.
func (t *Tracer) admit(port uint32, now units.Time) bool {
	if t.Port != AnyPort && t.Port != int(port) {
		return false
	}
	if t.PerSecond == 0 {
		return true
	}
	if second := int64(now/units.Second) + 1; t.second.Swap(second) != second {
		t.left.Store(t.PerSecond)
		if n := t.skipped.Swap(0); n > 0 {
			t.Log.Info("packets whose way is not logged: --log-level debug logs all", "packets", n, "loggedPerSecond", t.PerSecond)
		}
	}
	if t.left.Add(-1) >= 0 {
		return true
	}
	t.skipped.Add(1)
	return false
}

// watch is what is observed of a packet. Most packets have none, which costs them a comparison a stage.
type watch struct {
	tracer *Tracer // nil: the packet's way is not logged
	id     uint64
	number uint32         // of the copy
	copies *atomic.Uint32 // of the packet so far
	waits  bool           // for the fields that the tracer asks for; lines are kept until then
	lines  []string

	times *stages.Times // nil: the packet is not timed
	last  int64         // end of the last stage
}

// observe begins to observe a packet that arrived.
func (p *Packet) observe(now units.Time) {
	w, o := &watch{}, &p.in.opts
	if t := o.Tracer; t != nil && t.admit(p.IngressPort, now) {
		w.tracer, w.id, w.waits, w.copies = t, t.packets.Add(1)-1, len(p.in.wanted) > 0, new(atomic.Uint32)
		p.watch = w
		p.logf("Processing packet received on port %d", p.IngressPort)
	}
	if o.Times != nil && o.Times.Sample() {
		w.times, w.last = o.Times, o.Times.Now()
		p.watch = w
	}
}

// copied returns the watch of a copy of the packet. Copies are logged and not timed.
func (w *watch) copied() *watch {
	if w == nil || w.tracer == nil {
		return nil
	}
	return &watch{tracer: w.tracer, id: w.id, number: w.copies.Add(1), copies: w.copies}
}

func (p *Packet) traced() bool { return p.watch != nil && p.watch.tracer != nil }

// logf logs a line of a packet's way, if the way is logged.
func (p *Packet) logf(format string, args ...any) {
	w := p.watch
	if w == nil || w.tracer == nil {
		return
	}
	line := fmt.Sprintf(format, args...)
	if w.waits {
		w.lines = append(w.lines, line)
		return
	}
	w.tracer.Log.Debug(line, "packet", fmt.Sprintf("%d.%d", w.id, w.number))
}

// Note adds a line to the packet's way, if that is logged.
func (p *Packet) Note(line string) {
	if p.watch != nil {
		p.logf("%s", line)
	}
}

// done adds a stage that ends to the times.
func (p *Packet) done(s stages.Stage) {
	if p.watch != nil { // the rest is apart, so that this is inlined
		p.watch.done(s)
	}
}

func (w *watch) done(s stages.Stage) {
	if w.times != nil {
		w.last = w.times.Add(s, 1, w.last)
	}
}

// decide logs what was kept of the packet's way, or stops to follow it, once the parser has found the fields that the
// tracer asks for.
func (p *Packet) decide() {
	w := p.watch
	if !w.waits {
		return
	}
	w.waits = false
	p.loadRest()
	for i := range p.in.wanted {
		if !p.in.wanted[i].of(p) {
			w.tracer, w.lines = nil, nil
			return
		}
	}
	for _, line := range w.lines {
		p.logf("%s", line)
	}
	w.lines = nil
}
