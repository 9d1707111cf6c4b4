package engine

import (
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate/headgate/softswitch/engine/phv"
	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/units"
)

// Tracer logs the path of packets through the program, in the words of BMv2's log. Several
// instances may share one. Its fields must not change.
type Tracer struct {
	Log    *slog.Logger
	Port   int           // port on which the packets arrive; AnyPort for all
	Fields []FieldValue  // values that a packet must have after the parser
	Limit  *rate.Limiter // limit of the packets logged, by the packets' clock; nil for none
	Behind func() bool   // reports that the log has much to write, so that no packet is added to it; nil for never

	second, skipped atomic.Int64
	packets         atomic.Uint64
}

// AnyPort makes a Tracer log packets of all ports.
const AnyPort = -1

// FieldValue is a field of a header or of metadata, and its value. The field's name is that of the
// program's JSON (ipv4.dstAddr), with or without "hdr." in front, or the end of that name
// (dstAddr). If several names end so, any of these fields may have the value.
type FieldValue struct {
	Name  string
	Value *big.Int
}

// wanted is a FieldValue with the fields of the program that it names.
type wanted struct {
	fields []phv.Ref
	value  *big.Int
}

// find looks up the tracer's fields in the instance's program.
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

// of reports whether one of the fields has the value in packet p.
func (w *wanted) of(p *Packet) bool {
	for _, r := range w.fields {
		want := make([]uint64, r.F.Words)
		phv.PutWords(want, w.value, r.F.Bits)
		same := p.IsValid(r.H) && w.value.BitLen() <= r.F.Bits
		for i, v := range p.Field(r) {
			same = same && v == want[i]
		}
		if same {
			return true
		}
	}
	return false
}

// admit reports whether the port, the rate and the log allow to log a packet.
func (t *Tracer) admit(port uint32, now units.Time) bool {
	if t.Port != AnyPort && t.Port != int(port) {
		return false
	}
	if second := int64(now/units.Second) + 1; t.second.Swap(second) != second {
		if n := t.skipped.Swap(0); n > 0 {
			t.Log.Info("packets were not logged; --log-level debug logs as many as the log's output takes", "packets", n)
		}
	}
	if (t.Limit == nil || t.Limit.AllowN(time.Unix(0, int64(now/units.Nanosecond)), 1)) && (t.Behind == nil || !t.Behind()) {
		return true
	}
	t.skipped.Add(1)
	return false
}

// watch is the state of observing a packet: logging its path, timing its stages, or both. Most
// packets have no watch. It costs them one comparison per stage.
type watch struct {
	tracer *Tracer // nil: the packet is not logged
	id     uint64
	number uint32         // number of this copy
	copies *atomic.Uint32 // copies of the packet so far
	waits  bool           // the parser has not found the tracer's fields yet; lines holds the log until then
	lines  []string

	parsed bool // the parser has run, and the pipeline behind it has not begun

	times *stages.Times // nil: the packet is not timed
	last  int64         // when the last stage ended
}

// observe starts to observe a packet that has arrived.
func (p *Packet) observe(now units.Time) {
	w, o := &watch{}, &p.in.opts
	if t := o.Tracer; t != nil && t.admit(p.IngressPort, now) {
		w.tracer, w.id, w.waits, w.copies = t, t.packets.Add(1)-1, len(p.in.wanted) > 0, new(atomic.Uint32)
		p.watch = w
		p.Logf("Processing packet received on port %d", p.IngressPort)
	}
	if o.Times != nil && o.Times.Sample() {
		w.times, w.last = o.Times, o.Times.Now()
		p.watch = w
	}
}

// copied returns the watch for a copy of the packet. Copies are logged but not timed.
func (w *watch) copied() *watch {
	if w == nil || w.tracer == nil {
		return nil
	}
	return &watch{tracer: w.tracer, id: w.id, number: w.copies.Add(1), copies: w.copies}
}

// Watched reports whether the packet is logged or timed. Callers of Logf with arguments ask first,
// because the arguments take memory.
func (p *Packet) Watched() bool { return p.watch != nil }

func (p *Packet) traced() bool { return p.watch != nil && p.watch.tracer != nil }

// Logf logs a line of the packet's path, if the packet is logged.
func (p *Packet) Logf(format string, args ...any) {
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

// Note adds a line to the packet's log, if the packet is logged.
func (p *Packet) Note(line string) {
	if p.watch != nil {
		p.Logf("%s", line)
	}
}

// done adds the time of a stage that has ended.
func (p *Packet) done(s stages.Stage) {
	if p.watch != nil {
		p.watch.done(s)
	}
}

// done is not inlined, so that Packet.done is.
//
//go:noinline
func (w *watch) done(s stages.Stage) {
	if w.times != nil {
		w.last = w.times.Add(s, 1, w.last)
	}
}

// watchParser runs the parser of a packet that is observed.
func (p *Packet) watchParser(ps *parser) {
	if p.traced() {
		p.parseLogged(ps)
	} else if ps.native != nil {
		ps.native(p)
	} else {
		p.states(ps.start)
	}
	p.watch.parsed = true
}

// watchPipeline runs the pipeline of a pass for a packet that is observed. It begins with the end of
// the parser's stage, because a check for that in Parse would cost all other packets.
func (p *Packet) watchPipeline(pass Pass) {
	if p.watch.parsed {
		p.watch.parsed = false
		p.decide()
		p.done(stages.Parse)
	}
	s := &p.in.prog.passes[pass]
	if p.traced() {
		p.follow(s.name, s.first)
	} else {
		p.exec(s.pc)
	}
	p.done(s.stage)
}

// decide runs when the parser has ended. It logs the lines held so far if the packet has the
// values that the tracer asks for. Otherwise it stops logging the packet.
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
		p.Logf("%s", line)
	}
	w.lines = nil
}
