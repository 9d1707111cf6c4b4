package psa_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/softswitch/p4rt/schema"
	"github.com/headgate/headgate/softswitch/stf"
	"github.com/headgate/headgate/units"
)

func load(t testing.TB, file string) *engine.Program {
	t.Helper()
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := engine.Load(doc)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return prog
}

// run runs the STF tests of a folder that has the compiled programs beside them.
func run(t *testing.T, json, pattern string) {
	t.Helper()
	tests, err := filepath.Glob(pattern)
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests in %s: %v", pattern, err)
	}
	for _, file := range tests {
		name := strings.TrimSuffix(filepath.Base(file), ".stf")
		t.Run(name, func(t *testing.T) {
			prog := load(t, filepath.Join(json, name+".json"))
			test, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer test.Close()
			if err := stf.Run(prog, test, engine.Options{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestWays runs the test that psa_switch passes, too, except where the package comment says so.
func TestWays(t *testing.T) { run(t, "testdata", "testdata/*.stf") }

// learner keeps what a packet of learn.p4 causes.
type learner struct {
	in      *engine.Instance
	digests [][][]byte
	port    uint32
	frame   []byte
}

func (l *learner) Enqueue(p *engine.Packet)     { l.in.Egress(p, 0, l) }
func (l *learner) Recirculate(p *engine.Packet) { l.in.Ingress(p, 0, l) }
func (l *learner) Transmit(port uint32, frame []byte) {
	l.port, l.frame = port, append([]byte(nil), frame...)
}
func (l *learner) Digest(_ string, fields [][]byte) { l.digests = append(l.digests, fields) }
func (l *learner) Dropped(uint32, engine.Drop)      {}

// TestLearn takes packets to and from the CPU port, whose number the program knows as
// PSA_PORT_CPU, and between ports. Each sends a digest.
func TestLearn(t *testing.T) {
	l := &learner{in: engine.New(load(t, "testdata/learn.json"), engine.Options{CPUPort: 100})}
	send := func(port uint32, frame string) (uint32, string) {
		l.in.Ingress(l.in.Receive(port, []byte(frame), units.Time(0)), 0, l)
		return l.port, string(l.frame)
	}
	const frame = "dddddd" + "ssssss" + "\x08\x00payload"
	if port, got := send(3, frame); port != 100 || got != "\x00\x03"+frame {
		t.Errorf("packet-in leaves on port %d as %q", port, got)
	}
	if port, got := send(100, "\x00\x07"+frame); port != 7 || got != frame {
		t.Errorf("packet-out leaves on port %d as %q", port, got)
	}
	call := engine.ActionCall{Name: "In.to_port", Args: [][]byte{{9}}}
	if _, err := l.in.AddEntry("In.routes", []engine.Match{{Value: []byte("dddddd")}}, 0, engine.Target{Call: &call}, 0); err != nil {
		t.Fatal(err)
	}
	if port, got := send(3, frame); port != 9 || got != frame {
		t.Errorf("the entry sends to port %d %q", port, got)
	}
	if len(l.digests) != 3 || string(l.digests[0][0]) != "ssssss" || string(l.digests[0][1]) != "\x00\x00\x00\x03" {
		t.Errorf("digests are %x", l.digests)
	}
}

// TestP4Info binds the P4Info of each program, as a P4Runtime client pushes it, to the program.
func TestP4Info(t *testing.T) {
	for _, name := range []string{"ways", "learn", "l3"} {
		text, err := os.ReadFile("testdata/" + name + ".p4info.txtpb")
		if err != nil {
			t.Fatal(err)
		}
		var info p4configv1.P4Info
		if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, &info); err != nil {
			t.Fatal(err)
		}
		s, err := schema.Parse(&info)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Bind(load(t, "testdata/"+name+".json")); err != nil {
			t.Fatal(err)
		}
		if absent := s.AllAbsent(); len(absent) > 0 {
			t.Errorf("%s: the program lacks %v", name, absent)
		}
	}
}

// TestP4C runs p4c's tests of PSA if P4C names a checkout and p4c-bm2-psa is on the PATH.
func TestP4C(t *testing.T) {
	p4c := os.Getenv("P4C")
	if p4c == "" {
		t.Skip("P4C names no checkout of p4c")
	}
	tests, dir := filepath.Join(p4c, "testdata/p4_16_samples"), t.TempDir()
	programs, _ := filepath.Glob(filepath.Join(tests, "psa-*.stf"))
	for _, stf := range programs {
		name := strings.TrimSuffix(filepath.Base(stf), ".stf")
		cmd := exec.Command("p4c-bm2-psa", "--arch", "psa", "-I", filepath.Join(p4c, "p4include"), "-o", filepath.Join(dir, name+".json"), filepath.Join(tests, name+".p4"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	run(t, dir, filepath.Join(tests, "psa-*.stf"))
}
