// Package bmv2 runs programs on the reference switch, simple_switch of
// p4lang/behavioral-model, where it is installed, so that tests can compare.
package bmv2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// ErrMissing says that simple_switch or its command line is not on the PATH.
var ErrMissing = errors.New("simple_switch and simple_switch_CLI are not on the PATH")

// Job is one run.
type Job struct {
	JSON     string   // path of the program
	Commands []string // of simple_switch_CLI, before the first packet
	Ports    []int    // all ports of the switch
	In       int      // the port that Frames arrive on
	Frames   [][]byte
	Gap      time.Duration // between frames; 2 ms when zero
	Settle   time.Duration // silence that ends the run; 200 ms when zero
}

// Run starts simple_switch, configures it, feeds it the frames one by one and returns
// those that left, per port. Frames go through a named pipe: from capture files the
// switch would read all at once, and its queues of 64 packets would overflow.
func Run(ctx context.Context, j Job) (map[int][][]byte, error) {
	sw, err1 := exec.LookPath("simple_switch")
	cli, err2 := exec.LookPath("simple_switch_CLI")
	if err1 != nil || err2 != nil {
		return nil, ErrMissing
	}
	if j.Gap == 0 {
		j.Gap = 2 * time.Millisecond
	}
	if j.Settle == 0 {
		j.Settle = 200 * time.Millisecond
	}
	dir, err := os.MkdirTemp("", "bmv2-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	doc, err := filepath.Abs(j.JSON)
	if err != nil {
		return nil, err
	}
	thrift, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{"--use-files", "0", "--thrift-port", strconv.Itoa(thrift), "--device-id", strconv.Itoa(thrift)}
	for _, port := range j.Ports {
		base := filepath.Join(dir, "p"+strconv.Itoa(port))
		if port == j.In {
			err = syscall.Mkfifo(base+"_in.pcap", 0o600)
		} else {
			err = os.WriteFile(base+"_in.pcap", pcapHeader(), 0o600)
		}
		if err != nil {
			return nil, err
		}
		args = append(args, "-i", fmt.Sprintf("%d@%s", port, base))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, sw, append(args, doc)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	fed := make(chan error, 1)
	go func() {
		fed <- func() error {
			pipe, err := openPipe(ctx, filepath.Join(dir, fmt.Sprintf("p%d_in.pcap", j.In)))
			if err != nil {
				return err
			}
			defer pipe.Close()
			if _, err := pipe.Write(pcapHeader()); err != nil {
				return err
			}
			if err := configure(ctx, cli, thrift, j.Commands); err != nil {
				return err
			}
			return feed(ctx, pipe, j)
		}()
	}()
	select {
	case err = <-fed:
	case e := <-done:
		return nil, fmt.Errorf("simple_switch ended: %w: %s", e, tail(log.String()))
	}
	if err == nil {
		err = settle(ctx, dir, j.Settle)
	}
	select {
	case e := <-done:
		return nil, fmt.Errorf("simple_switch ended: %w: %s", e, tail(log.String()))
	default:
	}
	cancel()
	<-done
	if err != nil {
		return nil, err
	}
	out := map[int][][]byte{}
	for _, port := range j.Ports {
		frames, err := readPcap(filepath.Join(dir, fmt.Sprintf("p%d_out.pcap", port)))
		if err != nil {
			return nil, err
		}
		if len(frames) > 0 {
			out[port] = frames
		}
	}
	return out, nil
}

// openPipe opens a named pipe for writing once the switch has opened it for reading.
func openPipe(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil || !errors.Is(err, syscall.ENXIO) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func feed(ctx context.Context, pipe io.Writer, j Job) error {
	w := pcapgo.NewWriter(pipe)
	for i, f := range j.Frames {
		ci := gopacket.CaptureInfo{Timestamp: time.Unix(1000000, int64(i)), CaptureLength: len(f), Length: len(f)}
		if err := w.WritePacket(ci, f); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(j.Gap):
		}
	}
	return nil
}

// settle waits until nothing has left the switch for a while.
func settle(ctx context.Context, dir string, quiet time.Duration) error {
	const step = 20 * time.Millisecond
	last := int64(-1)
	for still := time.Duration(0); still < quiet; still += step {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(step):
		}
		if n := outputSize(dir); n != last {
			last, still = n, 0
		}
	}
	return nil
}

func configure(ctx context.Context, cli string, thrift int, commands []string) error {
	if len(commands) == 0 {
		return nil
	}
	addr := "127.0.0.1:" + strconv.Itoa(thrift)
	for range 100 {
		c, err := net.DialTimeout("tcp", addr, 50*time.Millisecond)
		if err == nil {
			c.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cmd := exec.CommandContext(ctx, cli, "--thrift-port", strconv.Itoa(thrift))
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("simple_switch_CLI: %w: %s", err, tail(string(out)))
	}
	if bytes.Contains(out, []byte("Error")) || bytes.Contains(out, []byte("Invalid")) {
		return fmt.Errorf("simple_switch_CLI: %s", tail(string(out)))
	}
	return nil
}

func tail(s string) string {
	if len(s) > 2000 {
		s = s[len(s)-2000:]
	}
	return s
}

func outputSize(dir string) (n int64) {
	files, _ := filepath.Glob(filepath.Join(dir, "*_out.pcap"))
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			n += st.Size()
		}
	}
	return n
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// pcapHeader is the start of a capture file.
func pcapHeader() []byte {
	var b bytes.Buffer
	if err := pcapgo.NewWriter(&b).WriteFileHeader(1<<16, layers.LinkTypeEthernet); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

func readPcap(path string) ([][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var frames [][]byte
	for {
		data, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		frames = append(frames, data)
	}
}
