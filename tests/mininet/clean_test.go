package mininet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLeavesNothing kills a running network and checks that nothing remains.
func TestLeavesNothing(t *testing.T) {
	if os.Getenv("HEADGATE_MININET") != "1" {
		t.Skip("makes a network in Mininet, with HEADGATE_MININET=1 (make test-mininet)")
	}
	if why := missing("headgate"); why != "" {
		t.Skip(why)
	}
	n := begin(t, fabric(t, "single.yaml"), "headgate", 4)
	n.host("h8", "--listen-only")
	if err := n.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	n.end()
	left := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if left = leftovers(t, n); left == "" {
			return
		}
	}
	t.Errorf("left behind: %s", left)
}

// leftovers returns processes and links of a network that still exist.
func leftovers(t *testing.T, n *network) string {
	t.Helper()
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", n.inside)); err == nil {
		return "the first process of the namespaces"
	}
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), n.dir) {
			return strings.ReplaceAll(string(text), "\x00", " ")
		}
	}
	links, err := exec.Command("ip", "-oneline", "link").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(links), "s1-eth") {
		return string(links)
	}
	return ""
}
