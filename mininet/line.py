#!/usr/bin/python3
"""Two switches in line, four hosts: h1, h2 - s1 - s2 - h3, h4.

    sudo mininet/line.py                        # embedded switches, ends in a CLI: h1 ping h4
    sudo mininet/line.py --switch bmv2          # simple_switch_grpc
    sudo mininet/line.py --weights 1,2,4        # no CLI: h1, h2, h3 send to h4 by weight, prints JSON

The controller is a process of its own and routes as mininet/line.yaml says. Hosts reach it
through a Unix socket, since its loopback is not in their network namespaces.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

from mininet.cli import CLI
from mininet.link import Link
from mininet.log import setLogLevel
from mininet.net import Mininet

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import switches  # noqa: E402

CONFIG = os.path.join(switches.HERE, "line.yaml")
API_PORT = 9600
# As in line.yaml: 5 Mb/s stand for 100 Gb/s.
RATE_MBPS = 5.0
SCALE = 20000


def build(kind, log_dir, rate_mbps=RATE_MBPS):
    """Returns the network, not yet started."""
    net = Mininet(controller=None, link=Link, autoStaticArp=False)
    s1, s2 = (net.addSwitch(f"s{i}", cls=switches.P4Switch, kind=kind, device_id=i, grpc_port=9558 + i,
                            thrift_port=9089 + i, rate_mbps=rate_mbps, log_dir=log_dir) for i in (1, 2))
    for i, (switch, port) in enumerate([(s1, 1), (s1, 2), (s2, 1), (s2, 2)], start=1):
        host = net.addHost(f"h{i}", cls=switches.RoutedHost, ip=f"10.0.{i}.1/24", mac=f"06:00:0a:00:{i:02x}:01",
                           gateway_ip=f"10.0.{i}.254", gateway_mac="02:00:00:00:00:fe")
        net.addLink(host, switch, port2=port)
    net.addLink(s1, s2, port1=3, port2=3)
    return net


class Controller:
    """The daemon as a process, for as long as the `with` block lasts."""

    def __init__(self, log_dir):
        self.log_path = os.path.join(log_dir, "headgate-controller.log")
        self.socket = os.path.join(log_dir, "headgate.sock")

    def __enter__(self):
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(
                [switches.HEADGATE, "controller", "-f", CONFIG, "--socket", self.socket], stdout=log, stderr=log)
        switches.wait_for_listener(API_PORT, self.process, self.log_path)
        self.wait_until_ready()
        return self

    def __exit__(self, *_):
        switches.terminate(self.process)

    def wait_until_ready(self, seconds=30):
        """Wait until every switch holds its configuration."""
        deadline = time.time() + seconds
        while time.time() < deadline:
            shown = subprocess.run([switches.HEADGATE, "get", "switches", "-o", "json"], text=True, capture_output=True)
            if shown.returncode == 0:
                states = [s.get("state") for s in json.loads(shown.stdout).get("switches", [])]
                if states and all(state == "STATE_READY" for state in states):
                    return
            time.sleep(0.2)
        raise RuntimeError(f"switches not ready after {seconds} s: {shown.stdout}{shown.stderr}")


def host_command(host, controller, extra):
    """The agent's command line; p and k are the paper's 3 and 37 us times SCALE."""
    intf = host.defaultIntf()
    return [switches.HEADGATE, "host", "--interface", intf.name, "--name", host.name, "--ip", host.IP(),
            "--gateway-mac", "02:00:00:00:00:fe", "--rate", f"{RATE_MBPS:g}Mbps",
            "--alpha", f"{RATE_MBPS:g}Mbps", "--beta", f"{RATE_MBPS:g}Kbps",
            "--p", f"{3 * SCALE}us", "--k", f"{37 * SCALE}us", "--maxqd-unit", "64us",
            "--controller", f"unix:{controller.socket}"] + extra


def share_by_weight(net, controller, weights, seconds):
    """h1, h2, h3 send to h4 with the given weights; returns what each sender measured."""
    h4 = net["h4"]
    receiver = h4.popen(host_command(h4, controller, ["--listen-only"]),
                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with contextlib.ExitStack() as stack:
        stack.callback(switches.terminate, receiver)
        senders = []
        for i, weight in enumerate(weights, start=1):
            host = net[f"h{i}"]
            out = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".json"))
            extra = ["--flow", f"dst={h4.IP()},weight={weight:g},sport={20000 + i}", "--for", f"{seconds}s",
                     "--json", out.name]
            process = host.popen(host_command(host, controller, extra), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            senders.append((host.name, weight, out, process))
        results = []
        for name, weight, out, process in senders:
            _, errors = process.communicate(timeout=seconds + 30)
            if process.returncode != 0:
                raise RuntimeError(f"{name}: headgate host ended with {process.returncode}: {errors.decode()}")
            results.append({"host": name, "weight": weight, "summary": json.load(out)})
        return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch", choices=sorted(switches.BINARY), default="headgate", help="which switch to run")
    parser.add_argument("--weights", help="up to three weights, such as 1,2,4: measure shares instead of a CLI")
    parser.add_argument("--seconds", type=int, default=30, help="how long to measure")
    parser.add_argument("--logs", help="folder for log files (default: a new one)")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("Mininet makes network namespaces: run this as root")
    weights = [float(w) for w in args.weights.split(",")] if args.weights else []
    if len(weights) > 3 or any(w <= 0 for w in weights):
        sys.exit(f"--weights {args.weights}: want one to three positive numbers")

    setLogLevel("warning" if weights else "info")
    log_dir = args.logs or tempfile.mkdtemp(prefix="headgate-mininet-")
    os.makedirs(log_dir, exist_ok=True)
    net = build(args.switch, log_dir)
    try:
        net.start()
        with Controller(log_dir) as controller:
            if weights:
                loss = net.ping([net["h1"], net["h4"]], timeout="2")
                shares = share_by_weight(net, controller, weights, args.seconds)
                print(json.dumps({"switch": args.switch, "ping_loss_percent": loss, "senders": shares}, indent=2))
            else:
                print(f"logs are in {log_dir}; try: h1 ping h4")
                CLI(net)
    finally:
        net.stop()


if __name__ == "__main__":
    main()
