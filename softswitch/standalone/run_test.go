package standalone

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program is the path of the echo program, which forwards by the sixth byte of a frame.
func program(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../testdata/echo.json")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// frame goes to a port and carries a number.
func frame(port, number byte) []byte {
	f := make([]byte, 64)
	f[5], f[40] = port, number
	return f
}

// run runs `headgate switch` until the test ends or stop is called, which returns its
// error, and waits for it to listen. The lines of its output come from lines.
func run(t *testing.T, args ...string) (stop func() error, lines func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := Main(ctx, args, in, in)
		in.Close()
		result <- err
	}()
	var all []string
	ready, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			all = append(all, scan.Text())
			if strings.HasPrefix(scan.Text(), "Server listening on ") {
				close(ready)
			}
		}
	}()
	var err error
	stopped := false
	stop = func() error {
		if !stopped {
			stopped = true
			cancel()
			err = <-result
			<-read
		}
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the switch ended with: %v", err)
		}
	})
	select {
	case <-ready:
	case <-read:
		t.Fatalf("the switch did not start: %v", stop())
	case <-time.After(hang):
		t.Fatal("the switch does not listen")
	}
	return stop, func() []string { _ = stop(); return all }
}

func writePcap(t *testing.T, path string, frames ...[]byte) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := pcapgo.NewWriter(file)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.UnixMicro(int64(i)), CaptureLength: len(f), Length: len(f)}, f); err != nil {
			t.Fatal(err)
		}
	}
}

// numbers returns the numbers of the frames in a capture file, once there are n of them.
func numbers(t *testing.T, path string, n int) (got []byte) {
	t.Helper()
	for deadline := time.Now().Add(hang); ; time.Sleep(5 * time.Millisecond) {
		got = got[:0]
		if file, err := os.Open(path); err == nil {
			r, err := pcapgo.NewReader(file)
			for err == nil {
				var data []byte
				if data, _, err = r.ReadPacketData(); err == nil {
					got = append(got, data[40])
				}
			}
			file.Close()
		}
		if len(got) >= n {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s holds %v, want %d frames", path, got, n)
		}
	}
}

const listen = "127.0.0.1:0"

// hang is the time after which a test gives up. The awaited event takes milliseconds; the rest is for a busy
// machine.
const hang = 30 * time.Second

func TestPcapFiles(t *testing.T) {
	json := program(t)
	t.Chdir(t.TempDir())
	writePcap(t, "a_in.pcap", frame(2, 10), frame(1, 11), frame(0, 12), frame(2, 13))
	writePcap(t, "b_in.pcap", frame(1, 20))
	_, lines := run(t, "-i", "1@a", "-i", "2@b", "--use-files", "0", "--log-console", json, "--", "--grpc-server-addr", listen)
	if got := numbers(t, "a_out.pcap", 2); string(got) != "\x14\x0b" { // by time: b's first frame before a's second
		t.Errorf("a_out.pcap holds %v", got)
	}
	if got := numbers(t, "b_out.pcap", 2); string(got) != "\x0a\x0d" {
		t.Errorf("b_out.pcap holds %v", got)
	}
	out := lines()
	if len(out) < 3 || out[0] != "Adding interface a as port 1 (files)" || out[1] != "Adding interface b as port 2 (files)" {
		t.Errorf("output %q", out)
	}
	if all := strings.Join(out, "\n"); !strings.Contains(all, "msg=port port=1 interface=a rxFrames=4 txFrames=2") {
		t.Errorf("no summary in the log:\n%s", all)
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{"--no-p4 -i 1@nosuch0", `--interface 1@nosuch0: port 1: no network interface "nosuch0": want one of `},
		{"--no-p4 --use-files 0 -i 1@nosuch", "--use-files: open nosuch_in.pcap: no such file"},
		{filepath.Join(dir, "none.json"), "program: open "},
		{bad, "program " + bad + ": "},
		{"--no-p4 -- --grpc-server-addr nowhere", "P4Runtime server: listen tcp: address nowhere: missing port"},
		{"--no-p4 -- --grpc-server-ssl --grpc-server-cert /none --grpc-server-key /none", "--grpc-server-cert: open /none"},
		{"--no-p4 --log-file " + dir, "--log-file: open "},
	} {
		err := Main(t.Context(), strings.Fields(tt.args), io.Discard, io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v\nwant %s", tt.args, err, tt.want)
		}
	}
}

func TestUsageAndVersions(t *testing.T) {
	for args, want := range map[string]string{
		"--help":         "--interface PORT@NAME",
		"--no-p4 -- -h":  "--grpc-server-addr HOST:PORT",
		"--json-version": "2.24\n",
		"-v":             "\n",
	} {
		var out strings.Builder
		if err := Main(t.Context(), strings.Fields(args), &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", args, err, out.String())
		}
	}
	if strings.Contains(Usage(), "nanolog") {
		t.Error("the usage shows flags without effect")
	}
}

func ExampleUsage() {
	fmt.Println(strings.SplitN(Usage(), "\n", 2)[0])
	// Output: Flags:
}
