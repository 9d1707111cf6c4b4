package p4

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/tests/switchtest"
)

// shell runs commands of p4 for one switch.
type shell struct {
	address string
	device  uint64
}

// rig is a switch, with files of Headgate's program to load.
type rig struct {
	shell
	*switchtest.Switch
	info, program string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := switchtest.New(t, 7)
	s.Start()
	r := &rig{shell: shell{s.Address(), 7}, Switch: s, info: filepath.Join(t.TempDir(), "headgate.p4info.txtpb"), program: filepath.Join(t.TempDir(), "headgate.json")}
	for file, text := range map[string][]byte{r.info: p4src.P4Info, r.program: p4src.JSON()} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// call runs a command of p4 and returns what it prints.
func (s shell) call(ctx context.Context, out *bytes.Buffer, args ...string) error {
	return s.root(out, append([]string{"p4"}, args...)...).ExecuteContext(ctx)
}

// root returns the command line for the switch; args begin with p4, or with __complete p4.
func (s shell) root(out io.Writer, args ...string) *cobra.Command {
	root := &cobra.Command{Use: "headgate", SilenceUsage: true, SilenceErrors: true}
	command.AddServerFlags(root)
	root.AddCommand(Commands()...)
	root.SetOut(out)
	root.SetErr(io.Discard)
	at := slices.Index(args, "p4") + 1
	root.SetArgs(slices.Insert(slices.Clone(args), at, "--switch", s.address, "--device-id", fmt.Sprint(s.device)))
	return root
}

func (s shell) must(t *testing.T, args ...string) string {
	t.Helper()
	t.Helper()
	var out bytes.Buffer
	if err := s.call(t.Context(), &out, args...); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

// TestSession is a shell session: commands read entries back in the words that wrote them.
func TestSession(t *testing.T) {
	r := newRig(t)
	var out bytes.Buffer
	if err := r.call(t.Context(), &out, "tables"); err == nil || !strings.Contains(err.Error(), "headgate p4 load") {
		t.Errorf("tables without a pipeline: %v, want what to do", err)
	}
	r.must(t, "load", r.info, r.program)
	if got := r.must(t, "tables", "ipv4_lpm"); !strings.Contains(got, "dst_addr lpm 32") {
		t.Errorf("tables: %s", got)
	}
	for _, tt := range []struct{ write, read, want string }{
		{"insert member ecmp 3 set_next_hop port=3 src_mac=02:00:00:01:00:03 dst_mac=06:00:0a:00:01:01", "member",
			"ingress.routing.ecmp member 3 → set_next_hop(port=3, src_mac=02:00:00:01:00:03, dst_mac=06:00:0a:00:01:01)"},
		{"insert group ecmp 2 3*4", "group ecmp", "ingress.routing.ecmp group 2 → members 3×4"},
		{"insert ipv4_lpm dst_addr=10.0.3.255/22 group=2", "ipv4_lpm", "ingress.routing.ipv4_lpm dst_addr=10.0.0.0/22 → group 2"},
		{"insert table ingress.punt.punt_table ether_type=0x88cc&0xff00 priority=4 punt_to_cpu reason=2", "punt_table",
			"ingress.punt.punt_table ether_type=0x8800&0xff00 priority 4 → punt_to_cpu(reason=2)"},
		{"insert multicast 5 1 2", "multicast", "multicast group 5 → ports 1, 2"},
		{"insert clone 9 4", "clone", "clone session 9 → ports 4"},
		{"modify default maxqd_scale set_scale shift=3", "default maxqd_scale", "egress.maxqd.maxqd_scale default → set_scale(shift=3)"},
	} {
		words := append([]string{"write"}, strings.Fields(tt.write)...)
		before := r.Entities()
		dry := r.must(t, append(slices.Clone(words), "--dry-run")...)
		if after := r.Entities(); after != before {
			t.Errorf("%s: a dry run made %d entities %d", tt.write, before, after)
		}
		if wet := r.must(t, words...); wet != dry || !strings.Contains(wet, tt.want) {
			t.Errorf("%s: printed %q, dry run %q, want %q", tt.write, wet, dry, tt.want)
		}
		if got := r.must(t, append([]string{"read"}, strings.Fields(tt.read)...)...); strings.TrimSpace(got) != tt.want {
			t.Errorf("read %s: %q, want %q", tt.read, got, tt.want)
		}
	}
	var list []struct {
		Kind  string
		Match map[string]string
	}
	if err := json.Unmarshal([]byte(r.must(t, "read", "ipv4_lpm", "-o", "json")), &list); err != nil || len(list) != 1 || list[0].Match["dst_addr"] != "10.0.0.0/22" {
		t.Errorf("JSON: %+v, %v", list, err)
	}
	r.must(t, "write", "delete", "ipv4_lpm", "dst_addr=10.0.0.0/22")
	if got := r.must(t, "read", "ipv4_lpm"); got != "" {
		t.Errorf("after the delete: %q", got)
	}
}

// TestRefused: an error names the field, its value and the allowed values, and nothing is written.
func TestRefused(t *testing.T) {
	r := newRig(t)
	r.must(t, "load", r.info, r.program)
	file := filepath.Join(t.TempDir(), "entries")
	if err := os.WriteFile(file, []byte("# two\ninsert multicast 1 2\n\ninsert ipv4_lpm dst_addr=10.0.0.300/8 group=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := r.Entities()
	for _, tt := range []struct{ args, want string }{
		{"write put ipv4_lpm", `"put" is not allowed: want insert, modify or delete`},
		{"write insert ipv4 x=1", `no table "ipv4"; it has`},
		{"write insert ipv4_lpm dst=1 group=1", `no key "dst"; it has dst_addr`},
		{"write insert ipv4_lpm dst_addr=10.0.0.0/33 group=1", "prefix length is 33, want 0 to 32"},
		{"write insert ipv4_lpm dst_addr=0x100000000 group=1", "has 33 bits, want at most 32"},
		{"write insert ipv4_lpm dst_addr=10.0.0.0/8 group=none", `group: "none" is not allowed`},
		{"write insert ipv4_lpm dst_addr=10.0.0.0/8", "the entry has no action"},
		{"write insert punt_table priority=1 punt_to_cpu why=1", `no parameter "why"; it has reason`},
		{"write insert punt_table priority=1 punt_to_cpu", `parameter "reason" is missing`},
		{"write insert group ecmp x 1", `"x" is not allowed`},
		{"write insert counter nothing 1 packets=1", `no counter "nothing"`},
		{"write modify register nothing 1 1", `no register "nothing"`},
		{"write modify register last_delay 1", "want register NAME INDEX VALUE"},
		{"write -f " + file, file + ":4: "},
		{"read register nothing", `no register "nothing"`},
		{"read counter x y", `"y" is not allowed`},
		{"packet-out nothing=1 00", `no field "nothing"`},
		{"packet-out 0", "want pairs of hexadecimal digits"},
		{"tables -o xml", `--output: "xml" is not allowed: want table, wide, json or yaml`},
		{"tables --p4info " + file, "neither a P4Info"},
	} {
		var out bytes.Buffer
		if err := r.call(t.Context(), &out, strings.Fields(tt.args)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.args, err, tt.want)
		}
	}
	if n := r.Entities() - before; n != 0 {
		t.Errorf("%d entities were written", n)
	}
}

// TestHeld: a primary controller keeps its switch unless the new election id is higher.
func TestHeld(t *testing.T) {
	r := newRig(t)
	r.must(t, "load", r.info, r.program)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.call(ctx, &bytes.Buffer{}, "watch", "--election-id", "9") }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	var err error
	for range 100 {
		if err = r.call(t.Context(), &bytes.Buffer{}, "write", "insert", "multicast", "1", "2"); err != nil {
			break
		}
		_ = r.call(t.Context(), &bytes.Buffer{}, "write", "delete", "multicast", "1") // may be another primary's by then
		time.Sleep(20 * time.Millisecond)
	}
	if err == nil || !strings.Contains(err.Error(), "another controller is primary, with election id 9: --election-id with a higher number") {
		t.Errorf("error %v, want whose the switch is", err)
	}
	r.must(t, "write", "insert", "multicast", "2", "2", "--election-id", "10")
}

// lines is a writer that sends each write to a channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// expect waits for the next line and checks that it contains a text.
func (l lines) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case line := <-l:
		if !strings.Contains(line, want) {
			t.Errorf("printed %q, want %q", line, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%q was not printed", want)
	}
}

// watch runs the command watch until the test ends.
func (s shell) watch(t *testing.T, flags ...string) lines {
	ctx, stop := context.WithCancel(context.Background())
	out := make(lines, 16)
	done := make(chan error, 1)
	go func() { done <- s.root(out, append([]string{"p4", "watch"}, flags...)...).ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		for {
			select {
			case <-out: // printed while the command ran
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				return
			}
		}
	})
	return out
}

// TestWatchAndPacketOut: watch prints a packet-in by its fields; packet-out sends the given bytes.
func TestWatchAndPacketOut(t *testing.T) {
	r := newRig(t)
	r.must(t, "load", r.info, r.program)
	sent := make(chan *p4v1.PacketOut, 1)
	r.OnPacket(func(p *p4v1.PacketOut) { sent <- p })
	r.must(t, "packet-out", "egress_port=3", "ff:ff:ff:ff:ff:ff", "--timeout", "3s")
	select {
	case p := <-sent:
		if len(p.GetPayload()) != 6 {
			t.Errorf("sent %x", p.GetPayload())
		}
	case <-time.After(3 * time.Second):
		t.Error("the packet did not arrive")
	}
	out := r.watch(t)
	out.expect(t, "primary")
	r.PacketIn(&p4v1.PacketIn{Payload: []byte{1, 2}, Metadata: []*p4v1.PacketMetadata{{MetadataId: 1, Value: []byte{4}}}})
	out.expect(t, "packet-in  ingress_port=4")
}

// TestCompletion: the shell completes words from the switch's program.
func TestCompletion(t *testing.T) {
	r := newRig(t)
	r.must(t, "load", r.info, r.program)
	for _, tt := range []struct{ typed, want string }{
		{"write ins", "insert"},
		{"write insert ipv4_", "ipv4_lpm"},
		{"write insert punt_table e", "ether_type="},
		{"write insert punt_table ether_type=1 punt_to", "punt_to_cpu"},
		{"write insert punt_table ether_type=1 punt_to_cpu r", "reason="},
		{"write insert ipv4_lpm g", "group="},
		{"read cou", "counter"},
		{"tables punt", "punt_table"},
	} {
		var out bytes.Buffer
		if err := r.root(&out, append([]string{"__complete", "p4"}, strings.Fields(tt.typed)...)...).Execute(); err != nil || !slices.Contains(strings.Split(out.String(), "\n"), tt.want) {
			t.Errorf("%s: %q, %v, want %q", tt.typed, out.String(), err, tt.want)
		}
	}
}
