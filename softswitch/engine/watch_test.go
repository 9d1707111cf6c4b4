package engine

import (
	"bytes"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/time/rate"

	"github.com/headgate/headgate/softswitch/stages"
	"github.com/headgate/headgate/units"
)

// tracing returns a tracer that writes each line's words and the packet's number.
func tracing(to *bytes.Buffer) *Tracer {
	h := slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}})
	return &Tracer{Log: slog.New(h), Port: AnyPort}
}

// TestTrace: the log of a packet uses the words of BMv2's sources (1.15.5).
func TestTrace(t *testing.T) {
	var log bytes.Buffer
	in := New(loadFile(t, "l3"), Options{Tracer: tracing(&log)})
	addL3(t, in, 4)
	var out sink
	out.pass(in, 1, ipv4Frame(0x0b000001, 60), 0)
	text := log.String()
	at := 0
	for _, want := range []string{
		`Processing packet received on port 1`,
		`Parser 'parser': start`,
		`Parser 'parser' entering state 'start'`,
		`Extracting header 'eth'`,
		`Parser state 'start': key is 0800`,
		`Bytes parsed: 14`,
		`Extracting header 'ipv4'`,
		`has no switch, going to default next state`,
		`Parser 'parser': end`,
		`Pipeline 'ingress': start`,
		`Applying table '`,
		`Looking up key:`,
		`: hit with handle`,
		`Action entry is `,
		`Pipeline 'ingress': end`,
		`Egress port is `,
		`Pipeline 'egress': start`,
		`Pipeline 'egress': end`,
		`Deparser 'deparser': start`,
		`Deparsing header 'eth'`,
		`Deparsing header 'ipv4'`,
		`Deparser 'deparser': end`,
		`Transmitting packet of size 60 out of port `,
	} {
		next := strings.Index(text[at:], want)
		if next < 0 {
			t.Fatalf("no line with %q behind the line before:\n%s", want, text)
		}
		at += next + len(want)
	}
}

// TestTraceOfDrops: the log says where a packet was dropped, and the Out is told the reason.
func TestTraceOfDrops(t *testing.T) {
	var log bytes.Buffer
	in := New(loadFile(t, "l3"), Options{Tracer: tracing(&log)})
	addL3(t, in, 4)
	var out sink
	out.pass(in, 1, ipv4Frame(0xc0000001, 60), 0)
	if out.drops != [Drops]int{DropIngress: 1} || !strings.Contains(log.String(), "Dropping packet at the end of ingress") {
		t.Errorf("drops %v:\n%s", out.drops, &log)
	}
	log.Reset()
	out.pass(in, 1, ipv4Frame(0x0b000001, 60)[:20], 0)
	if !strings.Contains(log.String(), "Exception while parsing: PacketTooShort") {
		t.Errorf("a frame of 20 bytes:\n%s", &log)
	}
}

// TestTraceFilter: only packets of the port with the field's value are logged, each from its
// arrival on.
func TestTraceFilter(t *testing.T) {
	for _, c := range []struct {
		name  string
		port  int
		field string
		value int64
		want  string // packets logged of the four
	}{
		{"port", 2, "", 0, "2"},
		{"field", AnyPort, "hdr.ipv4.dst", 0x0b000101, "3"},
		{"end of a name", AnyPort, "dst", 0x0b000101, "3"},
		{"field that no table reads", AnyPort, "ipv4.src", 0x0a000001, "0123"},
		{"port and field", 1, "ipv4.dst", 0x0b000001, "01"},
		{"no such field", AnyPort, "tcp.dstPort", 80, ""},
		{"value beyond the field", AnyPort, "ipv4.ttl", 64 + 256, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			tracer := tracing(&log)
			tracer.Port = c.port
			if c.field != "" {
				tracer.Fields = []FieldValue{{c.field, big.NewInt(c.value)}}
			}
			in := New(loadFile(t, "l3"), Options{Tracer: tracer})
			addL3(t, in, 4)
			log.Reset()
			logged := ""
			for i, p := range []struct{ port, dst uint32 }{{1, 0x0b000001}, {1, 0x0b000001}, {2, 0x0b000001}, {1, 0x0b000101}} {
				log.Reset()
				var out sink
				out.pass(in, p.port, ipv4Frame(p.dst, 60), 0)
				if strings.Contains(log.String(), "Processing packet received") && strings.Contains(log.String(), "Transmitting") {
					logged += string(rune('0' + i))
				} else if log.Len() > 0 {
					t.Errorf("packet %d has half a log:\n%s", i, &log)
				}
			}
			if logged != c.want {
				t.Errorf("logged packets %q, want %q", logged, c.want)
			}
		})
	}
}

// TestTraceRate: no more packets are logged than the limit and the log's output allow, and the log
// counts the others.
func TestTraceRate(t *testing.T) {
	var log bytes.Buffer
	tracer := tracing(&log)
	tracer.Limit = rate.NewLimiter(3, 1)
	behind := false
	tracer.Behind = func() bool { return behind }
	in := New(loadFile(t, "l3"), Options{Tracer: tracer})
	for i := range 30 {
		behind = i >= 10 && i < 20
		var out sink
		out.pass(in, 1, ipv4Frame(1, 60), units.Time(i)*units.Second/10)
	}
	n, text := strings.Count(log.String(), "Processing packet"), log.String()
	if n != 6 || !strings.Contains(text, "packets=7") || !strings.Contains(text, "packets=10") {
		t.Errorf("%d packets logged, want three in the first and in the third second, and lines that say packets=7 and packets=10:\n%s", n, text)
	}
}

// TestTracedPacketsAreTreatedAlike compares switches that log and time packets with switches that
// do not, on random packets. It runs the test programs and Headgate's own, which runs as Go unless
// packets are logged.
func TestTracedPacketsAreTreatedAlike(t *testing.T) {
	programs := map[string]*Program{"headgate": loadOwn(t)}
	for _, name := range []string{"arith", "control", "flow", "headers", "l3", "left", "loops", "match", "state", "sums"} {
		programs[name] = loadFile(t, name)
	}
	for name, prog := range programs {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			plain, traced := New(prog, Options{Queues: 8}), New(prog, Options{Queues: 8, Tracer: tracing(&log), Times: stages.New()})
			if name == "headgate" {
				plain = fillOwn(t, prog)
				traced = fillOwn(t, prog)
				traced.opts.Tracer, traced.observed = tracing(&log), true
			}
			w := twins{replicating(plain), replicating(traced)}
			r := rand.New(rand.NewPCG(5, 6))
			frames := ownFrames()
			for i := range 300 {
				if i%20 == 10 {
					w.reconfigure(t, r, 5)
				}
				frame := slices.Clone(frames[r.IntN(len(frames))])
				for range r.IntN(6) {
					frame[r.IntN(60)] = byte(r.Uint32() >> r.IntN(9))
				}
				frame = frame[:len(frame)-r.IntN(2)*r.IntN(len(frame))]
				w.pass(t, ownPort(byte(r.Uint32())), frame, units.Time(i)*units.Microsecond)
			}
			w.compareRegisters(t)
			if log.Len() == 0 {
				t.Error("nothing was logged")
			}
		})
	}
}
