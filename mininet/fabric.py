#!/usr/bin/python3
"""A fabric file in Mininet: switches, hosts and the controller as processes of their own.

    sudo mininet/fabric.py                                  # examples/leaf-spine.yaml; ends in a CLI: h1 ping h8
    sudo mininet/fabric.py mininet/line.yaml --switch bmv2  # simple_switch_grpc

The controller reads the file, and the network is built from the controller's answer to
`headgate get fabric -o json`. Everything runs in its own network and process namespaces. The kernel
removes them with their first process, so nothing remains, however this ends, and several networks
may run at once.

With --serve there is no CLI. One line of JSON has the network's addresses and processes. Then the CLI's
commands are read line by line; each is answered by a line "done". The end of the input ends the network.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HEADGATE = os.path.normpath(os.path.join(HERE, os.pardir, "bin", "headgate"))
DEFAULT = os.path.normpath(os.path.join(HERE, os.pardir, "examples", "leaf-spine.yaml"))
TARGET = {"headgate": "embedded", "bmv2": "bmv2"}
INSIDE = "HEADGATE_MININET_INSIDE"  # set once the namespaces are made
PACKAGES = {"ethtool": "ethtool", "ip": "iproute2", "mnexec": "mininet", "mount": "mount", "ping": "iputils-ping",
            "sysctl": "procps", "unshare": "util-linux"}
MODULES = {"mininet": "mininet", "yaml": "python3-yaml"}
BMV2 = {"simple_switch_grpc": "p4lang-bmv2 of p4lang's repository (see README)"}
THRIFT = 9090  # port of the first BMv2's service
FRAME = 1062   # bytes of a host agent's full frame, by which the controller paces BMv2


def missing(kind):
    """Missing programs and modules, each with its Debian package."""
    programs = PACKAGES | (BMV2 if kind == "bmv2" else {})
    lacks = [f"{name}: install {package}" for name, package in programs.items() if not shutil.which(name)]
    lacks += [f"Python module {name} for {sys.executable}: install {package}"
              for name, package in MODULES.items() if not importlib.util.find_spec(name)]
    if not os.access(HEADGATE, os.X_OK):
        lacks.append(f"{HEADGATE}: run make build")
    return lacks


class Controller:
    """The daemon as a process. Its socket serves what is outside of the namespaces too."""

    def __init__(self, config, folder):
        self.config, self.log_path = config, os.path.join(folder, "controller.log")
        self.socket = os.path.join(folder, "headgate.sock")
        self.process = None

    def start(self):
        import nodes  # needs Mininet
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(nodes.FIRST + [HEADGATE, "controller", "-f", self.config, "--socket", self.socket],
                                            stdout=log, stderr=log)

    def ask(self, *words):
        """The answer of `headgate WORDS -o json`; None while there is none."""
        shown = subprocess.run([HEADGATE, "--server", f"unix:{self.socket}", *words, "-o", "json"], text=True,
                               capture_output=True)
        return json.loads(shown.stdout) if shown.returncode == 0 else None

    def wait_for(self, what, wanted, *words, seconds=60):
        """Wait until wanted(the answer) is true, and return the answer."""
        deadline = time.time() + seconds
        while time.time() < deadline:
            if self.process.poll() is not None:
                with open(self.log_path) as log:
                    sys.exit(f"the controller ended with {self.process.returncode}:\n{log.read()}")
            answer = self.ask(*words)
            if answer is not None and wanted(answer):
                return answer
            time.sleep(0.2)
        raise RuntimeError(f"{what}: not within {seconds} s; see {self.log_path}")

    def fabric(self):
        return self.wait_for("the fabric's topology", lambda f: f.get("switches"), "get", "fabric")

    def wait_until_ready(self):
        self.wait_for("all switches ready", lambda r: all(s.get("state") == "STATE_READY" for s in r["switches"]),
                      "get", "switches")


def derive(path, kind, folder):
    """Write the file that the controller reads: the given one, with this kind of switches, and IPv6 for all hosts."""
    import yaml
    with open(path) as text:
        source = text.read()
    try:
        fabric = yaml.safe_load(source)
        for number, switch in enumerate(fabric["switches"]):
            switch["target"] = TARGET[kind]
            if kind == "bmv2":
                switch |= {"thrift": f"127.0.0.1:{THRIFT + number}", "packet_size": f"{FRAME}B"}
        for host in fabric["hosts"]:
            host.setdefault("ipv6", f"fd00::{host['ipv4']}")  # the last 32 bits are the IPv4 address
        source = yaml.safe_dump(fabric, sort_keys=False)
    except (yaml.YAMLError, KeyError, TypeError):
        pass  # the controller reports the error
    derived = os.path.join(folder, os.path.basename(path))
    with open(derived, "w") as text:
        text.write(source)
    return derived


def run(args):
    from mininet.cli import CLI
    from mininet.log import setLogLevel
    import nodes

    setLogLevel("warning" if args.serve else "info")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # BMv2 reads its interfaces' carriers there, and treats missing interfaces as down.
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    os.makedirs(args.logs, mode=0o700, exist_ok=True)
    controller = Controller(derive(args.fabric, args.switch, args.logs), args.logs)
    # For `sh headgate …` in the CLI.
    os.environ["HEADGATE_SERVER"] = f"unix:{controller.socket}"
    os.environ["PATH"] = os.path.dirname(HEADGATE) + os.pathsep + os.environ["PATH"]
    controller.start()
    net = None
    try:
        net = nodes.build(controller.fabric(), args.switch, HEADGATE, args.logs, args.pcap, THRIFT)
        net.start()
        controller.wait_until_ready()
        if args.serve:
            nodes.Served(net, controller).serve(sys.stdin, sys.stdout)
        else:
            first, last = net.hosts[0].name, net.hosts[-1].name
            print(f"logs are in {args.logs}; try: {first} ping {last}, sh headgate get switches, sh headgate watch telemetry")
            print(f"elsewhere: {HEADGATE} --server unix:{controller.socket} watch telemetry")
            CLI(net)
    finally:
        if net:
            net.stop()
        nodes.terminate(controller.process)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fabric", nargs="?", default=DEFAULT, help="fabric file (default: examples/leaf-spine.yaml)")
    parser.add_argument("--switch", choices=sorted(TARGET), default="headgate", help="which switch to run (default: headgate)")
    parser.add_argument("--logs", default="/run/headgate-mininet", help="folder for logs, captures and the controller's socket (default: %(default)s)")
    parser.add_argument("--pcap", action="store_true", help="switches capture each interface there, NAME_in.pcap and NAME_out.pcap")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--cli", action="store_true", help="end in Mininet's CLI (the default)")
    end.add_argument("--check", action="store_true", help="only say what this machine lacks")
    end.add_argument("--serve", action="store_true", help="take commands from standard input")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("Mininet makes network namespaces: run this as root")
    if lacks := missing(args.switch):
        sys.exit("this machine lacks\n  " + "\n  ".join(lacks))
    if args.check:
        return
    if INSIDE not in os.environ:
        os.execvpe("unshare", ["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child", sys.executable,
                               os.path.abspath(__file__), *sys.argv[1:]], os.environ | {INSIDE: "1"})
    run(args)


if __name__ == "__main__":
    main()
