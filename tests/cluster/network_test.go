package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// diskSize has room for two segments of 64 MB of etcd's log, its data, and a little more.
const diskSize = "192m"

func (c *trio) run(command string, args ...any) {
	c.t.Helper()
	words := strings.Fields(fmt.Sprintf(command, args...))
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// network makes a namespace for each member, on one bridge with the switches.
func (c *trio) network() (addresses []string, switches string) {
	c.t.Helper()
	bridge := fmt.Sprintf("ha%d", os.Getpid()%100000)
	undo := func(command string, args ...any) {
		c.t.Cleanup(func() { c.run(command, args...) })
	}
	c.run("ip link add %s type bridge", bridge)
	undo("ip link delete %s", bridge)
	c.run("ip address add 10.213.7.254/24 dev %s", bridge)
	c.run("ip link set %s up", bridge)
	for i, n := range c.nodes {
		addresses = append(addresses, ip(i))
		if n.tap != "" {
			c.run("ip tuntap add dev %s mode tap", n.tap)
			undo("ip link delete %s", n.tap)
			c.run("ip link set %s master %s up", n.tap, bridge)
			c.spaces = append(c.spaces, "")
			continue
		}
		space := fmt.Sprintf("%s-%d", bridge, i+1)
		c.run("ip netns add %s", space)
		undo("ip netns delete %s", space)
		c.run("ip link add %s type veth peer name eth0 netns %s", space, space)
		undo("ip link delete %s", space) // the kernel deletes a namespace some time later
		c.run("ip link set %s master %s up", space, bridge)
		c.run("ip -n %s link set lo up", space)
		c.run("ip -n %s link set eth0 up", space)
		c.run("ip -n %s address add %s/24 dev eth0", space, ip(i))
		c.spaces = append(c.spaces, space)
	}
	return addresses, "10.213.7.254:0"
}

// ip is the address of a member in its namespace.
func ip(i int) string { return fmt.Sprintf("10.213.7.%d", i+1) }

// cut removes the paths between a member and the others, or restores them. All members still reach the switches.
func (c *trio) cut(n *node, off bool) {
	c.t.Helper()
	do := "delete"
	if off {
		do = "add"
	}
	for i := range members {
		if i != n.index() {
			c.run("ip -n %s route %s blackhole %s/32", c.spaces[i], do, ip(n.index()))
			c.run("ip -n %s route %s blackhole %s/32", c.spaces[n.index()], do, ip(i))
		}
	}
}

// disk puts a member's state folder on a small disk.
func (c *trio) disk(n *node) {
	c.t.Helper()
	if err := os.Mkdir(n.state, 0o700); err != nil {
		c.t.Fatal(err)
	}
	if n.tap != "" {
		return // in memory
	}
	c.run("mount -t tmpfs -o size=%s none %s", diskSize, n.state)
	c.t.Cleanup(func() { c.run("umount -l %s", n.state) })
}

// fill fills a member's disk with a file, or deletes that file.
func (c *trio) fill(n *node, up bool) {
	c.t.Helper()
	name := filepath.Join(n.state, "ballast")
	if !up {
		if err := os.Remove(name); err != nil {
			c.t.Fatal(err)
		}
		return
	}
	f, err := os.Create(name)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
}
