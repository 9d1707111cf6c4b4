package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A member can run under user-mode Linux, a Linux kernel that is a process. A test then sets that kernel's wall
// clock, not the machine's.

// kernel is the program of Debian's package user-mode-linux.
const (
	kernel        = "linux.uml"
	kernelPackage = "user-mode-linux"
)

// beKernel in the environment makes the test's binary that kernel. beGuest makes it the kernel's first process, with
// folder, name and address of a member, separated by commas.
const (
	beKernel = "HEADGATE_TEST_KERNEL"
	beGuest  = "HEADGATE_TEST_GUEST"
)

// Ports of a guest: one leads to the member's socket, one takes orders.
const (
	guestAPI    = 9700
	guestOrders = 9701
)

// kernelArgs are the arguments of a member's kernel; a tap connects it to the others. Kernel 6.1 cannot restore the
// state of processors with AVX-512. So becomeKernel hides AVX-512, and no thread may use registers that are not
// restored.
func (c *trio) kernelArgs(n *node, tap string) []string {
	binary, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	return []string{
		kernel, "mem=768M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", "init=" + binary, "uml_dir=" + c.dir, "quiet", "con=null", "con0=fd:0,fd:1",
		"vec0:transport=tap,ifname=" + tap + ",depth=64,gro=1", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GODEBUG=cpu.avx=off,cpu.avx2=off,cpu.avx512f=off", beGuest + "=" + strings.Join([]string{c.dir, n.name, ip(n.index())}, ","),
	}
}

// becomeKernel replaces this process by the kernel. The kernel does not find NT_X86_XSTATE and saves only SSE's
// registers.
func becomeKernel(args []string) error {
	const xstate = 0x202
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // of seccomp_data: nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PTRACE, Jf: 5},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // args[0], the request
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: ^uint32(unix.PTRACE_GETREGSET ^ unix.PTRACE_SETREGSET)},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.PTRACE_GETREGSET & unix.PTRACE_SETREGSET, Jf: 2},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 32}, // args[2], the set
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: xstate, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, args, os.Environ())
}

// guest is the first process under the kernel. It runs a member, and ends with it.
func guest(member string) error {
	part := strings.Split(member, ",")
	dir, name, ip := part[0], part[1], part[2]
	state := filepath.Join(dir, name)
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"tmpfs", state}} {
		if err := unix.Mount("none", m.at, m.kind, 0, ""); err != nil {
			return err
		}
	}
	for _, command := range []string{"link set lo up", "link set vec0 up", "address add " + ip + "/24 dev vec0"} {
		if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, out)
		}
	}
	api, err := net.Listen("tcp", fmt.Sprintf("%s:%d", ip, guestAPI))
	if err != nil {
		return err
	}
	orders, err := net.Listen("tcp", fmt.Sprintf("%s:%d", ip, guestOrders))
	if err != nil {
		return err
	}
	socket := filepath.Join(state, "socket")
	go forward(api, socket)
	again := make(chan chan struct{})
	go obey(orders, again)
	for {
		cmd := memberCommand(dir, name, socket)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
		if err := cmd.Start(); err != nil {
			return err
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case err := <-done:
			return errors.Join(errors.New("the member has ended"), err)
		case started := <-again:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-done
			close(started)
		}
	}
}

// forward connects TCP connections to a Unix socket.
func forward(from net.Listener, socket string) {
	for {
		in, err := from.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			defer out.Close()
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = io.Copy(out, in); _ = out.(*net.UnixConn).CloseWrite() })
			wg.Go(func() { _, _ = io.Copy(in, out); _ = in.(*net.TCPConn).CloseWrite() })
			wg.Wait()
		}()
	}
}

// obey takes one order per connection: a duration by which to set the wall clock, or "again" to restart the
// member. The answer is the wall clock.
func obey(from net.Listener, again chan<- chan struct{}) {
	for {
		conn, err := from.Accept()
		if err != nil {
			return
		}
		order, _ := bufio.NewReader(conn).ReadString('\n')
		if order = strings.TrimSpace(order); order == "again" {
			ended := make(chan struct{})
			again <- ended
			<-ended
		} else if by, err := time.ParseDuration(order); err == nil {
			now := syscall.NsecToTimeval(time.Now().Add(by).UnixNano())
			if err := syscall.Settimeofday(&now); err != nil {
				fmt.Println("the clock was not set:", err)
			}
		}
		_, _ = fmt.Fprintln(conn, time.Now().UnixNano())
		_ = conn.Close()
	}
}
