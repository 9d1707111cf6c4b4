"""Mininet nodes for Headgate: a P4Runtime switch (BMv2's simple_switch_grpc or the
embedded `headgate switch`) and a host that is a route away from everything."""

import os
import signal
import subprocess
import time

from mininet.node import Host, Switch

HERE = os.path.dirname(os.path.abspath(__file__))
HEADGATE = os.path.join(HERE, os.pardir, "bin", "headgate")
BINARY = {"bmv2": "simple_switch_grpc", "headgate": HEADGATE}
CPU_PORT = 510
PRIORITY_QUEUES = 8


class P4Switch(Switch):
    """A switch that takes simple_switch_grpc's flags; `kind` chooses which one it is.

    It starts without a program: the controller pushes it. Both kinds shape their ports
    to `rate_mbps` (0 means not shaped), BMv2 through Thrift and in packets of
    `frame_bytes`, since that is all it has.
    """

    def __init__(self, name, kind="headgate", device_id=1, grpc_port=9559, thrift_port=9090,
                 rate_mbps=0.0, frame_bytes=1078, queue_packets=4096, log_dir="/tmp", **kwargs):
        super().__init__(name, **kwargs)
        self.kind, self.device_id = kind, device_id
        self.grpc_port, self.thrift_port = grpc_port, thrift_port
        self.rate_mbps, self.frame_bytes, self.queue_packets = rate_mbps, frame_bytes, queue_packets
        self.log_path = os.path.join(log_dir, f"headgate-{name}.log")
        self.process = None

    def ports_in_use(self):
        return sorted((number, intf) for number, intf in self.intfs.items() if intf.name != "lo")

    def command(self):
        args = [BINARY[self.kind]]
        if self.kind == "headgate":
            args.append("switch")
        args += ["--device-id", str(self.device_id), "--no-p4", "--thrift-port", str(self.thrift_port)]
        for number, intf in self.ports_in_use():
            args += ["-i", f"{number}@{intf.name}"]
            if self.kind == "headgate" and self.rate_mbps:
                args += ["--port-rate", f"{number}={self.rate_mbps:g}Mbps"]
        if self.kind == "headgate":
            args += ["--queue-limit", str(self.queue_packets)]
        args += ["--", "--grpc-server-addr", f"127.0.0.1:{self.grpc_port}",
                 "--cpu-port", str(CPU_PORT), "--priority-queues", str(PRIORITY_QUEUES)]
        return args

    def start(self, controllers):
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log)
        wait_for_listener(self.grpc_port, self.process, self.log_path)
        if self.kind == "bmv2":
            self.shape_bmv2()

    def shape_bmv2(self):
        """Queue depth must exceed what admission lets in, or BMv2 drops silently."""
        commands = [f"set_queue_depth {self.queue_packets}"]
        if self.rate_mbps:
            packets_per_second = int(self.rate_mbps * 1e6 / 8 / self.frame_bytes)
            for number, _ in self.ports_in_use():
                for queue in range(PRIORITY_QUEUES):
                    commands.append(f"set_queue_rate {packets_per_second} {number} {queue}")
        subprocess.run(["simple_switch_CLI", "--thrift-port", str(self.thrift_port)],
                       input="\n".join(commands) + "\n", text=True, check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self, deleteIntfs=True):
        if self.process:
            terminate(self.process)
        super().stop(deleteIntfs)


class RoutedHost(Host):
    """A host in a subnet of its own: everything else is behind a gateway whose address
    is known beforehand, since the switches route and do not answer ARP."""

    def config(self, gateway_ip="", gateway_mac="", **params):
        result = super().config(**params)
        intf = self.defaultIntf().name
        for feature in ("rx", "tx", "sg", "tso", "gso", "gro"):
            self.cmd(f"ethtool -K {intf} {feature} off")
        self.cmd("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
        self.cmd(f"ip route replace default via {gateway_ip} dev {intf} onlink")
        self.cmd(f"ip neigh replace {gateway_ip} lladdr {gateway_mac} dev {intf} nud permanent")
        return result


def terminate(process, seconds=5):
    """End a process, by force when it does not go by itself."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for_listener(port, process, log_path, seconds=20):
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
