package conformance

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/internal/p4rtmsg"
)

// program is one of testdata, with the ids of the objects that its P4Info names. An unknown name ends the test.
type program struct {
	t    *testing.T
	json []byte
	info p4configv1.P4Info
}

func loadProgram(t *testing.T, name string) *program {
	t.Helper()
	p := &program{t: t}
	var err error
	if p.json, err = os.ReadFile(filepath.Join("testdata", name+".json")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", name+".p4info.txtpb"))
	if err != nil {
		t.Fatal(err)
	}
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, &p.info); err != nil { // p4c writes fields that the Go module of P4Runtime does not have yet
		t.Fatal(err)
	}
	return p
}

func (p *program) config() *p4v1.ForwardingPipelineConfig {
	return &p4v1.ForwardingPipelineConfig{P4Info: &p.info, P4DeviceConfig: p.json}
}

// find returns the object of a kind with an alias.
func find[T interface{ GetPreamble() *p4configv1.Preamble }](p *program, all []T, name string) T {
	p.t.Helper()
	for _, x := range all {
		if x.GetPreamble().GetAlias() == name {
			return x
		}
	}
	p.t.Fatalf("the P4Info has no %q", name)
	panic("unreachable")
}

func (p *program) table(name string) uint32 {
	return find(p, p.info.Tables, name).Preamble.Id
}

func (p *program) profile(name string) uint32 {
	return find(p, p.info.ActionProfiles, name).Preamble.Id
}

func (p *program) digest(name string) uint32 {
	return find(p, p.info.Digests, name).Preamble.Id
}

// action is a call with its arguments in order.
func (p *program) action(name string, args ...uint64) *p4v1.Action {
	p.t.Helper()
	info := find(p, p.info.Actions, name)
	if len(info.Params) != len(args) {
		p.t.Fatalf("action %s has %d parameters", name, len(info.Params))
	}
	a := &p4v1.Action{ActionId: info.Preamble.Id}
	for i, arg := range args {
		a.Params = append(a.Params, &p4v1.Action_Param{ParamId: info.Params[i].Id, Value: number(arg)})
	}
	return a
}

// do is a table entry's action.
func (p *program) do(name string, args ...uint64) *p4v1.TableAction {
	p.t.Helper()
	return p4rtmsg.Call(p.action(name, args...))
}

// entry is a table entry whose only key matches m.
func (p *program) entry(table string, m *p4v1.FieldMatch, priority int32, action *p4v1.TableAction) *p4v1.TableEntry {
	p.t.Helper()
	info := find(p, p.info.Tables, table)
	e := &p4v1.TableEntry{TableId: info.Preamble.Id, Priority: priority, Action: action}
	if m != nil {
		m.FieldId = info.MatchFields[0].Id
		e.Match = []*p4v1.FieldMatch{m}
	}
	return e
}

// number is a value in P4Runtime's canonical form: big-endian without leading zeros, and
// one zero byte for 0.
func number(v uint64) []byte {
	b := bytes.TrimLeft(binary.BigEndian.AppendUint64(nil, v), "\x00")
	if len(b) == 0 {
		return []byte{0}
	}
	return b
}

func exact(v uint64) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: number(v)}}}
}

func lpm(v uint64, length int32) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: number(v), PrefixLen: length}}}
}

func ternary(v, mask uint64) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldMatchType: &p4v1.FieldMatch_Ternary_{
		Ternary: &p4v1.FieldMatch_Ternary{Value: number(v), Mask: number(mask)}}}
}

func optional(v uint64) *p4v1.FieldMatch {
	return &p4v1.FieldMatch{FieldMatchType: &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: number(v)}}}
}

// The compiled program belongs to the sources. This is checked only with the compiler version that was used.
func TestProgramsAreCurrent(t *testing.T) {
	used, err := os.ReadFile("testdata/compiler")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("p4c-bm2-ss"); err != nil {
		t.Skip("p4c-bm2-ss is not on the PATH")
	}
	dir := t.TempDir()
	if out, err := exec.Command("make", "-C", "testdata", "OUT="+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if at, err := os.ReadFile(filepath.Join(dir, "compiler")); err != nil || string(at) != string(used) {
		t.Skipf("this is %s, the programs are from %s (%v)", bytes.TrimSpace(at), bytes.TrimSpace(used), err)
	}
	for _, path := range made {
		name := filepath.Base(path)
		fresh, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil || !bytes.Equal(fresh, kept) {
			t.Errorf("%s is not what make compiles (%v)", name, err)
		}
	}
	sources, err := filepath.Glob("testdata/*.p4")
	if err != nil || 2*len(sources)+1 != len(made) {
		t.Errorf("%d files of %d programs %s", len(made), len(sources), strings.Join(made, " "))
	}
}
