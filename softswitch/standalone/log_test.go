package standalone

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestIgnoredFlags: scripts written for BMv2 give flags that have no effect here. Standard error
// says nothing about them; the log does.
func TestIgnoredFlags(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		args, out, errors string // what the outputs contain; "" is that they say nothing of it
	}{
		{"--no-p4 --thrift-port 9090 --nanolog ipc:///x -- --grpc-server-addr " + listen, "", ""},
		{"--no-p4 --thrift-port 9090 --log-console -- --grpc-server-addr " + listen, "--thrift-port has no effect", ""},
		{"--no-p4 --log-console -L warn --thrift-port 9090 -- --grpc-server-addr " + listen, "", ""},
		{"--no-p4 -- --grpc-server-addr " + listen + " --grpc-server-cert c", "", "certificates and"},
	} {
		var out, errors strings.Builder
		if err := Main(ended, strings.Fields(tt.args), &out, &errors); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), tt.out) || tt.out == "" && strings.Contains(out.String(), "effect") {
			t.Errorf("%s: standard output\n%s\nwant %q", tt.args, out.String(), tt.out)
		}
		if !strings.Contains(errors.String(), tt.errors) || tt.errors == "" && errors.Len() > 0 {
			t.Errorf("%s: standard error\n%s\nwant %q", tt.args, errors.String(), tt.errors)
		}
	}
}

// TestHangup: a switch continues after SIGHUP and logs that.
func TestHangup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := Main(ctx, strings.Fields("--no-p4 --log-console -- --grpc-server-addr "+listen), in, in)
		in.Close()
		result <- err
	}()
	seen := 0
	for scan := bufio.NewScanner(out); scan.Scan(); {
		switch line := scan.Text(); {
		case strings.HasPrefix(line, "Server listening on "), strings.Contains(line, "SIGHUP") && seen == 1:
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			seen++
		case strings.Contains(line, "SIGHUP"):
			seen++
			cancel() // twice SIGHUP, and it is there to be ended
		}
	}
	if err := <-result; err != nil || seen != 3 {
		t.Errorf("the switch ended with %v after %d lines, want 3", err, seen)
	}
}
