package doctor

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/controller"
	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/internal/testcert"
	"github.com/headgate/headgate/softswitch"
	"github.com/headgate/headgate/softswitch/tm"
	"github.com/headgate/headgate/tests/switchtest"
)

// load returns a fabric of one switch.
func load(t *testing.T, address, more string) *config.Config {
	t.Helper()
	text := fmt.Sprintf("name: f\nswitches: [{name: s1, device_id: 1, address: %q%s\n", address, more)
	c, err := config.Parse("f.yaml", []byte(text), nil, controller.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lines formats findings without remedies. Each finding that is no success needs a remedy, unless
// it was not checked.
func lines(t *testing.T, list ...Finding) string {
	t.Helper()
	var out []string
	for _, f := range list {
		if f.Remedy == "" && f.Verdict != OK && f.Verdict != Info {
			t.Errorf("%+v has no remedy", f)
		}
		if f.Verdict == Info {
			out = append(out, f.Text)
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s", f.Verdict, f.Text))
	}
	return strings.Join(out, "\n")
}

func TestCertificates(t *testing.T) {
	a, other := testcert.New(t, t.TempDir()), testcert.New(t, t.TempDir())
	now := time.Now()
	until := func(name string, left time.Duration) { a.IssueUntil(t, now.Add(left), name, name) }
	until("good", 400*24*time.Hour)
	until("week", 7*24*time.Hour+time.Minute)
	until("past", -time.Minute)
	until("open", 400*24*time.Hour)
	until("group", 400*24*time.Hour)
	other.IssueUntil(t, now.Add(400*24*time.Hour), "stranger", "stranger")
	for name, mode := range map[string]os.FileMode{"good.key": 0o600, "week.key": 0o600, "past.key": 0o600, "open.key": 0o604, "group.key": 0o640} {
		if err := os.Chmod(a.File(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(a.File("empty.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		set  files
		want string // the beginning of the only finding of its kind, "" for none
	}{
		{"good", files{cert: a.File("good.pem"), key: a.File("good.key"), host: "127.0.0.1"}, ""},
		{"unspecified", files{cert: a.File("good.pem"), key: a.File("good.key"), host: "0.0.0.0"}, ""},
		{"another name", files{cert: a.File("good.pem"), key: a.File("good.key"), host: "192.0.2.1"}, "WARN: cert "},
		{"soon", files{cert: a.File("week.pem"), key: a.File("week.key")}, "WARN: cert " + a.File("week.pem") + ": expires in 7 days"},
		{"expired", files{cert: a.File("past.pem"), key: a.File("past.key")}, "FAIL: cert " + a.File("past.pem") + ": expired on "},
		{"for others", files{cert: a.File("open.pem"), key: a.File("open.key")}, "FAIL: key " + a.File("open.key") + " has mode 0604"},
		{"for a group", files{cert: a.File("group.pem"), key: a.File("group.key")}, "WARN: key " + a.File("group.key") + " has mode 0640"},
		{"another's key", files{cert: a.File("good.pem"), key: a.File("week.key")}, "FAIL: cert " + a.File("good.pem") + " and key "},
		{"missing", files{cert: a.File("none.pem"), key: a.File("good.key")}, "FAIL: cert and key: "},
		{"no certificate", files{ca: a.File("empty.pem")}, "FAIL: ca: " + a.File("empty.pem") + " holds no certificate"},
		{"no ca", files{ca: a.File("none.pem")}, "FAIL: ca: "},
		{"unsigned", files{ca: a.File("empty.pem"), cert: a.File("good.pem"), key: a.File("good.key"), signed: true}, "FAIL: cert " + a.File("good.pem") + ": x509: "},
	} {
		got := lines(t, c.set.check(nil, now)...)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	c := load(t, "127.0.0.1:1", fmt.Sprintf(", tls: {ca: %q, cert: %q, key: %q}}]", a.File("good.pem"), a.File("past.pem"), a.File("past.key")))
	if got := Certificates(c, nil, now); len(got) != 1 || got[0].Subject != "switches[0].tls" || got[0].Verdict != Fail {
		t.Errorf("%+v", got)
	}
	if got := lines(t, Certificates(load(t, "127.0.0.1:1", "}]"), nil, now)...); got != "not checked: it names none" {
		t.Error(got)
	}
}

func TestClock(t *testing.T) {
	at := func(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }
	for there, want := range map[float64]string{
		10: "ok: no difference", 11: "ok: no difference", 10.5: "ok: no difference", 12.5: "WARN: differs from this machine's by 1.5s",
		8.5: "WARN: differs from this machine's by 1.5s", 100: "FAIL: differs", 11.5: "ok",
	} {
		if got := lines(t, Clock(at(there), at(10), at(11))); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s, want %s", there, got, want)
		}
	}
}

func TestHostClocks(t *testing.T) {
	at := func(seconds float64) *timestamppb.Timestamp { return timestamppb.New(time.Unix(0, int64(seconds*1e9))) }
	for want, r := range map[string]*pb.HostReport{
		"ok: no difference from the controller's was seen, to within 20ms":  {Sent: at(9.98), Time: at(10)},
		"ok: no difference from the controller's was seen, to within 900ms": {Sent: at(10.9), Time: at(10)},
		"WARN: is ahead of the controller's by 1.5s at least":               {Sent: at(11.5), Time: at(10)},
		"WARN: is behind the controller's by 2s, or less if its report":     {Sent: at(8), Time: at(10)},
		"FAIL: is behind the controller's by 1h0m0s, or less":               {Sent: at(10), Time: at(3610)},
		"not checked: this version of the host's agent does not":            {Time: at(10)},
	} {
		r.Host = "h1"
		got := HostClocks([]*pb.HostReport{r})
		if len(got) != 1 || got[0].Subject != "host h1" || !strings.HasPrefix(lines(t, got...), want) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	if got := lines(t, HostClocks(nil)...); got != "not checked: no host is attached" {
		t.Error(got)
	}
}

func TestBuild(t *testing.T) {
	for there, want := range map[string]string{"v1": "ok: v1", "v2": "WARN: v2"} {
		if got := lines(t, Build(there, "v1")); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", there, got, want)
		}
	}
}

func TestListeners(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		listen  string
		answers bool
		want    string
	}{
		{"127.0.0.1:0", false, "ok: is free"},
		{taken.Addr().String(), false, "WARN: is taken by a process"},
		{taken.Addr().String(), true, "not checked: is taken; a controller answers"},
		{"192.0.2.77:9600", false, "not checked: is an address of another machine"},
	} {
		cfg := load(t, "127.0.0.1:1", fmt.Sprintf("}]\ncontroller: {listen: %q, metrics: \"off\"}", c.listen))
		if got := lines(t, Listeners(t.Context(), cfg, c.answers)...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.listen, got, c.want)
		}
	}
}

func TestSwitches(t *testing.T) {
	s, err := softswitch.NewOnLoop(clock.NewLoop(), softswitch.Config{Name: "s1", DeviceID: 1, CPUPort: 510, Traffic: tm.Config{Queues: 8}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	addr, err := s.ServeGRPC(switchtest.Loopback(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ address, more, want string }{
		{addr.String(), "}]", "ok: answers, P4Runtime 1."},
		{"127.0.0.1:1", "}]", "FAIL: does not answer from this machine: "},
		{addr.String(), ", tls: {ca: none.pem}}]", "FAIL: tls.ca: "},
	} {
		if got := lines(t, Switches(t.Context(), load(t, c.address, c.more), nil)...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s%s: %s, want %s", c.address, c.more, got, c.want)
		}
	}
}

func TestController(t *testing.T) {
	for state, want := range map[pb.SwitchStatus_State]string{
		pb.SwitchStatus_STATE_READY:        "ok: ready, runs the wanted program 00000000000000ab: e\nits target cannot poll: one queue",
		pb.SwitchStatus_STATE_BACKUP:       "WARN: backup: e\n",
		pb.SwitchStatus_STATE_DEGRADED:     "FAIL: degraded: e\n",
		pb.SwitchStatus_STATE_DISCONNECTED: "FAIL: disconnected: e\n",
	} {
		got := lines(t, Controller([]*pb.SwitchStatus{{Name: "s1", State: state, Error: "e", Program: 0xab, Capabilities: []*pb.Capability{
			{Name: "poll", Detail: "one queue"}, {Name: "read", Supported: true},
		}}})...)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s, want %s", state, got, want)
		}
	}
}
