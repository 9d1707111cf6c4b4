package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// kind is which switch runs.
type kind int

const (
	ours    kind = iota // with AF_PACKET
	oursXDP             // with AF_XDP
	bmv2
)

func (k kind) String() string { return [...]string{"embedded", "embedded, xdp", "BMv2"}[k] }

// target is a running switch.
type target struct {
	cmd  *exec.Cmd
	dir  string
	done chan error
}

const address = "127.0.0.1:9559"

// start runs a switch with a program and its entries. Both take the same flags.
func (o *options) start(k kind, p *program, dir string, flags ...string) (*target, error) {
	args := append([]string{"--device-id", "1", "--no-p4"}, flags...)
	args = append(args, "--", "--grpc-server-addr", address, "--cpu-port", "510", "--priority-queues", "8")
	name := o.bmv2
	if k != bmv2 {
		name, args = o.headgate, append([]string{"switch"}, args...)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	t := &target{cmd: exec.Command(name, args...), dir: dir, done: make(chan error, 1)}
	t.cmd.Dir, t.cmd.Stdout, t.cmd.Stderr = dir, log, log
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { t.done <- t.cmd.Wait() }()
	if err := configure(p); err != nil {
		text, _ := os.ReadFile(log.Name())
		t.stop()
		return nil, fmt.Errorf("%w: %s", err, text[max(0, len(text)-500):])
	}
	return t, nil
}

func (t *target) stop() {
	_ = t.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-t.done:
	case <-time.After(3 * time.Second):
		_ = t.cmd.Process.Kill()
		<-t.done
	}
	for range 100 { // the next one needs the port
		l, err := net.Listen("tcp", address)
		if err == nil {
			l.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// cpu is the processor time that the switch has used, in user and kernel mode (proc(5)).
func (t *target) cpu() (user, system time.Duration) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(t.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+2:]))
	u, _ := strconv.Atoi(f[11])
	s, _ := strconv.Atoi(f[12])
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
	return time.Duration(u) * tick, time.Duration(s) * tick
}

// configure pushes the program and writes its entries.
func configure(p *program) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	stub := p4v1.NewP4RuntimeClient(conn)
	stream, err := stub.StreamChannel(ctx, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	id := &p4v1.Uint128{Low: 1}
	err = stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: id}}})
	if err != nil {
		return err
	}
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	if a := m.GetArbitration(); a == nil || a.GetStatus().GetCode() != 0 {
		return errors.New("not the primary controller")
	}
	_, err = stub.SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: 1, ElectionId: id, Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
		Config: &p4v1.ForwardingPipelineConfig{P4Info: p.info, P4DeviceConfig: p.json},
	})
	if err != nil {
		return fmt.Errorf("pushing the program: %w", err)
	}
	if _, err = stub.Write(ctx, &p4v1.WriteRequest{DeviceId: 1, ElectionId: id, Updates: p.entries}); err != nil {
		return fmt.Errorf("writing entries: %w", err)
	}
	return nil
}
