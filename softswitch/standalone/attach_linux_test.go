package standalone

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/cli/p4"
	"github.com/headgate/headgate/internal/veth"
)

// TestInterfacesComeAndGo: a port gets its interface back after the interface was deleted and made
// again, or moved to another network namespace and back. "headgate p4 port" adds and removes ports by gNMI. The test
// runs a process of its own, so that all threads are in the namespace, as in a real switch.
func TestInterfacesComeAndGo(t *testing.T) {
	const inside = "HEADGATE_TEST_INSIDE"
	if driver := os.Getenv(inside); driver != "" {
		comeAndGo(t, driver)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: making network interfaces needs root")
	}
	for _, driver := range []string{"afpacket", "xdp", "auto"} {
		t.Run(driver, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestInterfacesComeAndGo$", "-test.v")
			cmd.Env = append(os.Environ(), inside+"="+driver)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func comeAndGo(t *testing.T, driver string) {
	veth.SetUp(t, "lo", true)
	veth.Add(t, "s1", "h1")
	veth.Add(t, "s2", "h2")
	if driver == "xdp" {
		needXDP(t, "s1")
	}
	const address = "127.0.0.1:9559"
	startHere(t, "-i", "1@s1", "-i", "2@s2", "--port-driver", driver, program(t), "--", "--grpc-server-addr", address)
	h2 := openStation(t, "h2")
	number := byte(0)
	// passes waits until frames pass between port 2 and another one.
	passes := func(what, host string, n byte) {
		t.Helper()
		h := openStation(t, host)
		for end := time.Now().Add(hang); ; {
			number++
			h.put(t, frame(2, number))
			h2.put(t, frame(n, number))
			got := 0
			for _, s := range []*station{h, h2} {
				if s.gets(number) {
					got++
				}
			}
			if got == 2 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: no frames pass between ports 2 and %d", what, n)
			}
		}
	}
	passes("at the start", "h1", 1)

	for i := range 3 {
		link, err := netlink.LinkByName("s1")
		if err == nil {
			err = netlink.LinkDel(link)
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			time.Sleep(700 * time.Millisecond) // longer than watchPeriod
		}
		veth.Add(t, "s1", "h1")
		passes(fmt.Sprintf("deleted and made again, time %d", i+1), "h1", 1)
	}

	move(t, "s1")
	veth.SetUp(t, "s1", true)
	passes("back from another namespace", "h1", 1)

	port := func(args ...string) error {
		root := &cobra.Command{Use: "headgate", SilenceUsage: true, SilenceErrors: true}
		command.AddServerFlags(root)
		root.AddCommand(p4.Commands()...)
		root.SetOut(io.Discard)
		root.SetArgs(append([]string{"p4", "--switch", address, "port"}, args...))
		return root.ExecuteContext(t.Context())
	}
	veth.Add(t, "s3", "h3")
	if err := port("add", "3@s3"); err != nil {
		t.Fatal(err)
	}
	passes("added", "h3", 3)
	for bad, want := range map[string]string{"3@s1": "s1", "4@s3": "s3", "4@nothing": "nothing", "600@s4": "600", "x@s4": "PORT@INTERFACE", "4@": "PORT@INTERFACE"} {
		if err := port("add", bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("port add %s: %v", bad, err)
		}
	}
	for _, n := range []string{"3", "1"} {
		if err := port("remove", n); err != nil {
			t.Fatal(err)
		}
	}
	h1 := openStation(t, "h1")
	h1.put(t, frame(2, 200))
	if h2.gets(200) {
		t.Error("a frame came in by a port that was removed")
	}
	if err := port("add", "1@s3"); err != nil {
		t.Fatal(err)
	}
	passes("another interface for the port", "h3", 1)
}

// gets reports whether a frame of that number comes soon.
func (s *station) gets(number byte) bool {
	for end := time.After(100 * time.Millisecond); ; {
		select {
		case f := <-s.frames:
			if f[40] == number {
				return true
			}
		case <-end:
			return false
		}
	}
}

// move puts an interface into another network namespace and back.
func move(t *testing.T, name string) {
	t.Helper()
	home, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	link, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	there, back := make(chan int), make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
		}
		there <- unix.Gettid()
		<-there
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetNsFd(link, int(home.Fd()))
		}
		back <- err
	}()
	ns, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", <-there))
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := netlink.LinkSetNsFd(link, int(ns.Fd())); err != nil {
		t.Fatal(err)
	}
	there <- 0
	if err := <-back; err != nil {
		t.Fatal(err)
	}
}
