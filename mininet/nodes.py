"""Mininet nodes for Headgate: a P4Runtime switch (BMv2's simple_switch_grpc or the embedded
`headgate switch`), a host that is a route away from everything, and the network that they make."""

import json
import os
import signal
import subprocess
import sys
import time

from mininet.cli import CLI
from mininet.link import Link
from mininet.net import Mininet
from mininet.node import Host, Switch

CPU_PORT = 510
PRIORITY_QUEUES = 8
GATEWAY = {4: "169.254.1.1", 6: "fe80::1"}  # the leaves' default gateway addresses
# More packets than admission admits to a queue of the embedded switch.
QUEUE_PACKETS = 16384
# On a busy processor switches and controller go before the hosts: a late switch adds delay and loses packets, a late
# host only sends less.
FIRST = ["nice", "-n", "-10"]


def plain(node, interface):
    """Make an interface carry frames unchanged, and no frames of the kernel's own. With offloads,
    libpcap expects frames of 64 KB and has room for only 32 of them."""
    for feature in ("rx", "tx", "sg", "tso", "gso", "gro"):
        node.cmd(f"ethtool -K {interface} {feature} off")
    if isinstance(node, Switch):
        node.cmd(f"sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1")


class P4Switch(Switch):
    """A switch with simple_switch_grpc's flags; `kind` selects BMv2 or the embedded switch.

    It starts without a program: the controller pushes it. The embedded switch's ports have the
    rates of `rates`, in bits per second by port number; BMv2's queues get theirs from the controller.
    """

    def __init__(self, name, kind, headgate, device_id, address, thrift_port, rates, folder, pcap, **kwargs):
        super().__init__(name, **kwargs)
        self.kind, self.headgate, self.device_id, self.address = kind, headgate, device_id, address
        self.thrift_port, self.rates, self.folder, self.pcap = thrift_port, rates, folder, pcap
        self.log_path = os.path.join(folder, f"{name}.log")
        self.process = None

    def command(self):
        embedded = self.kind == "headgate"
        args = [self.headgate, "switch"] if embedded else ["simple_switch_grpc"]
        args += ["--device-id", str(self.device_id), "--no-p4"]
        for number, intf in sorted(self.intfs.items()):
            if intf.name == "lo":
                continue
            args += ["-i", f"{number}@{intf.name}"]
            if embedded:
                args += ["--port-rate", f"{number}={self.rates[number]}bps"]
        args += [f"--pcap={self.folder}"] if self.pcap else []
        args += ["--queue-limit", str(QUEUE_PACKETS), "--pfc"] if embedded else ["--thrift-port", str(self.thrift_port)]
        return args + ["--", "--grpc-server-addr", self.address, "--cpu-port", str(CPU_PORT),
                       "--priority-queues", str(PRIORITY_QUEUES)]

    def start(self, controllers):
        for intf in self.intfs.values():
            if intf.name != "lo":
                plain(self, intf.name)
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(FIRST + self.command(), stdout=log, stderr=log, cwd=self.folder)
        wait_for_listener(int(self.address.rpartition(":")[2]), self.process, self.log_path)

    def stop(self, deleteIntfs=True):
        terminate(self.process)
        super().stop(deleteIntfs)


class RoutedHost(Host):
    """An ordinary host: an address of each version of IP, and a default route to its leaf, which answers
    ARP and neighbour solicitations."""

    def config(self, ipv6=None, **params):
        result = super().config(**params)
        intf = self.defaultIntf().name
        plain(self, intf)
        self.cmd(f"ip route replace default via {GATEWAY[4]} dev {intf} onlink")
        if ipv6:
            self.cmd(f"ip -6 addr add {ipv6}/128 dev {intf}")
            self.cmd(f"ip -6 route replace default via {GATEWAY[6]} dev {intf}")
        else:
            self.cmd(f"sysctl -qw net.ipv6.conf.{intf}.disable_ipv6=1")
        return result


def build(fabric, kind, headgate, folder, pcap, thrift):
    """Returns the network, not yet started, for the output of `headgate get fabric -o json`."""
    net = Mininet(controller=None, link=Link, autoStaticArp=False)
    nodes = {}
    for i, s in enumerate(fabric["switches"]):
        rates = {end["port"]: int(link["rate_bps"]) for link in fabric["links"]
                 for end in (link["a"], link["b"]) if end["node"] == s["name"]}
        nodes[s["name"]] = net.addSwitch(
            s["name"], cls=P4Switch, kind=kind, headgate=headgate, device_id=int(s["device_id"]), address=s["address"],
            thrift_port=thrift + i, rates=rates, folder=folder, pcap=pcap)
    for h in fabric["hosts"]:
        nodes[h["name"]] = net.addHost(h["name"], cls=RoutedHost, ip=h["ipv4"] + "/32", mac=h["mac"], ipv6=h.get("ipv6"))
    for link in fabric["links"]:
        a, b = link["a"], link["b"]
        net.addLink(nodes[a["node"]], nodes[b["node"]], port1=a.get("port"), port2=b.get("port"))
    return net


class Served(CLI):
    """Mininet's CLI for use by a program, with additional commands for faults."""

    prompt = ""

    def __init__(self, net, controller):  # pylint: disable=super-init-not-called
        self.net, self.controller = net, controller

    def serve(self, commands, answers):
        inside = {n.name: {"pid": n.pid, "interface": n.defaultIntf().name,
                           "addresses": {4: n.IP(), 6: n.params.get("ipv6")}} for n in self.net.hosts}
        print(json.dumps({"socket": self.controller.socket, "hosts": inside}), file=answers, flush=True)
        for line in commands:
            self.do(*line.split())
            print("done", file=answers, flush=True)

    def do(self, verb, *names):
        victim = self.controller if names == ("controller",) else None
        if verb == "link":
            self.net.configLinkStatus(*names)
        elif verb == "kill":
            process = (victim or self.net[names[0]]).process
            process.kill()
            process.wait()
        elif verb == "start":
            victim.start() if victim else self.net[names[0]].start([])
        else:
            sys.exit(f"{verb}: want link A B up|down, kill NAME or start NAME")


def terminate(process, seconds=5):
    """End a process, by force if it does not end by itself."""
    if process is None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for_listener(port, process, log_path, seconds=30):
    """Wait until 127.0.0.1:port listens; fail at once when the process ends."""
    wanted = f"{port:04X}"
    deadline = time.time() + seconds
    while time.time() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"process for port {port} ended with {process.returncode}; see {log_path}")
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(table) as rows:
                for row in rows:
                    columns = row.split()
                    if columns[3] == "0A" and columns[1].endswith(":" + wanted):
                        return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on 127.0.0.1:{port} after {seconds} s; see {log_path}")
