package standalone

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/internal/veth"
)

// output keeps what is written to it, by several goroutines.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// has waits for a line that a pattern matches and returns its groups.
func (o *output) has(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for end := time.Now().Add(hang); ; time.Sleep(5 * time.Millisecond) {
		if found := re.FindStringSubmatch(o.String()); found != nil {
			return found
		}
		if time.Now().After(end) {
			t.Fatalf("nothing matches %q in:\n%s", pattern, o)
		}
	}
}

// TestObserved: while the switch runs, its packets, drops by reason and the paths of packets can
// be seen by SIGUSR1, as OpenMetrics, by gNMI and in the log.
func TestObserved(t *testing.T) {
	eachDriver(t, func(t *testing.T, driver string, pairs []veth.Pair) {
		veth.SetUp(t, "lo", true)
		f, err := parse([]string{"-i", "1@" + pairs[0].Switch, "-i", "2@" + pairs[1].Switch, "--port-driver", driver, "--log-console", "--trace", "port=2",
			"--stats", "--metrics", "127.0.0.1:0", program(t), "--", "--grpc-server-addr", "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		var out output
		log, _, closeLog, err := f.options.logger(&out, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		sw, err := f.options.build(&out, log)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.options.drive(ctx, sw, &out, log) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if err := closeLog(); err != nil {
				t.Error(err)
			}
			if n := strings.Count(out.String(), "STAGE"); n != 2 {
				t.Errorf("%d reports, want one at the signal and one at the end", n)
			}
		})
		grpcAddr := out.has(t, `Server listening on (\S+)`)[1]
		metricsAddr := out.has(t, `msg=metrics address=(\S+)`)[1]
		h1, h2 := openStation(t, pairs[0].Host), openStation(t, pairs[1].Host)
		for i := range byte(10) {
			h1.put(t, frame(2, i)) // is not logged
			_ = h2.get(t)
		}
		h2.put(t, frame(1, 7))
		_ = h1.get(t)
		h2.put(t, frame(3, 8)) // to a port that is not there
		for _, line := range []string{`Processing packet received on port 2"`, `Parser 'parser': start"`, `Transmitting packet of size \d+ out of port 1"`, `Transmitting packet of size \d+ out of port 3"`} {
			out.has(t, line)
		}
		if n := strings.Count(out.String(), "Processing packet received on port 1"); n > 0 {
			t.Errorf("%d packets of another port than --trace names are logged", n)
		}
		if err := unix.Kill(os.Getpid(), unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		out.has(t, `^PORT +INTERFACE +STATE`)
		out.has(t, `^1 +\S+ +up +10 +\d+ +1 `)
		out.has(t, `^- +- +unknown-port +1$`)
		out.has(t, `^receive +\d+ +\d+$`)
		out.has(t, `^flush +\d+ +\d+$`)

		req, _ := http.NewRequest(http.MethodGet, "http://"+metricsAddr+"/metrics", nil)
		req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		reply, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, _ := io.ReadAll(reply.Body)
		for _, want := range []string{
			`headgate_switch_packets_total{direction="in",interface="` + pairs[0].Switch + `",port="1"} 10.0`,
			`headgate_switch_dropped_packets_total{interface="",port="",reason="unknown-port"} 1.0`,
			`headgate_switch_dropped_packets_total{interface="` + pairs[1].Switch + `",port="2",reason="queue-full"} 0.0`,
			"# EOF",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("metrics lack %s:\n%s", want, text)
			}
		}

		raw, err := net.Dial("tcp", grpcAddr) // gRPC would connect on a thread that is not in the namespace
		if err != nil {
			t.Fatal(err)
		}
		conn, err := grpc.NewClient("passthrough:"+grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return raw, nil }))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		path := &gpb.Path{Elem: []*gpb.PathElem{
			{Name: "interfaces"}, {Name: "interface", Key: map[string]string{"name": "1"}}, {Name: "drops"},
			{Name: "drop", Key: map[string]string{"reason": "ingress"}}, {Name: "state"}, {Name: "packets"},
		}}
		got, err := gpb.NewGNMIClient(conn).Get(ctx, &gpb.GetRequest{Path: []*gpb.Path{path}, Encoding: gpb.Encoding_PROTO})
		if err != nil || len(got.GetNotification()) != 1 || len(got.Notification[0].GetUpdate()) != 1 {
			t.Errorf("gNMI: %v, %v", got, err)
		}
	})
}

// TestLogNobodyReads: packets are forwarded while the log of their paths goes to a pipe that nobody
// reads, as to a terminal that is held by Ctrl-S.
func TestLogNobodyReads(t *testing.T) {
	eachDriver(t, func(t *testing.T, driver string, pairs []veth.Pair) {
		f, err := parse([]string{"-i", "1@" + pairs[0].Switch, "-i", "2@" + pairs[1].Switch, "--port-driver", driver, "--log-console", "-L", "debug", program(t), "--", "--grpc-server-addr", listen})
		if err != nil {
			t.Fatal(err)
		}
		console, in := io.Pipe()
		log, out, closeLog, err := f.options.logger(in, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		sw, err := f.options.build(out, log)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.options.drive(ctx, sw, out, log) }()
		t.Cleanup(func() {
			cancel()
			if err := errors.Join(<-ended, console.Close(), closeLog()); err != nil {
				t.Error(err)
			}
		})
		h1, h2 := openStation(t, pairs[0].Host), openStation(t, pairs[1].Host)
		for i := range 2000 {
			h1.put(t, frame(2, byte(i)))
			_ = h2.get(t)
		}
	})
}

// TestTraceFlags: --trace, --log-level and the log's destination decide which packets' paths are
// logged.
func TestTraceFlags(t *testing.T) {
	const console = "--log-console"
	for _, c := range []struct {
		args []string
		logs string // what is logged: none, some, all, or the fault
	}{
		{nil, "none"},
		{[]string{console}, "some"},
		{[]string{"--log-file", "x"}, "none"},
		{[]string{"--log-file", "x", "-L", "info"}, "none"},
		{[]string{"--log-file", "x", "-L", "debug"}, "all"},
		{[]string{"--log-file", "x", "--trace", "port=0"}, "all"},
		{[]string{console, "-L", "info"}, "none"},
		{[]string{console, "-L", "debug"}, "all"},
		{[]string{console, "-L", "trace"}, "all"},
		{[]string{console, "--trace", "port=0"}, "all"},
		{[]string{console, "--trace", "ipv4.dstAddr=10.0.0.1", "--trace", "ethernet.srcAddr=02:00:00:00:00:01", "--trace", "x.y=0x10"}, "all"},
		{[]string{"--trace", "port=1"}, "want --log-console or --log-file"},
		{[]string{console, "-L", "warn", "--trace", "port=1"}, "want trace or debug"},
		{[]string{console, "--trace", "port=512"}, "want a port of 0 to 511"},
		{[]string{console, "--trace", "port"}, "want port=N or FIELD=VALUE"},
		{[]string{console, "--trace", "ttl=-1"}, "want port=N or FIELD=VALUE"},
	} {
		f, err := parse(append(c.args, "--no-p4"))
		got := "none"
		switch {
		case err != nil:
			got = err.Error()
		case f.options.Tracer == nil:
		case f.options.Tracer.Limit != nil:
			got = "some"
		default:
			got = "all"
		}
		if !strings.Contains(got, c.logs) {
			t.Errorf("%q: %s, want %s", c.args, got, c.logs)
		}
	}
}
