"""Sends the same frames through any network of p4lang/tutorials, within Mininet's CLI, and
writes down what every port of a switch and every host receives.

Hosts lose their addresses meanwhile, so that nothing but these frames is on the links; then
they get them back and ping each other.
"""

import ctypes
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time

ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4
# A link of 0.5 Mb/s needs 22 ms for a full frame; a controller in Python needs a little more.
QUIET = 0.06
QUIET_WITH_CONTROLLER = 0.6
CONTROLLER = "mycontroller.py"


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ipv4(src, dst, payload, protocol=17, tos=0, ttl=64, options=b"", ident=1, fragment=0, wrong=0):
    head = struct.pack("!BBHHHBBH4s4s", 0x45 + len(options) // 4, tos, 20 + len(options) + len(payload), ident, fragment,
                       ttl, protocol, 0, socket.inet_aton(src), socket.inet_aton(dst)) + options
    return head[:10] + struct.pack("!H", checksum(head) ^ wrong) + head[12:] + payload


def udp(sport, dport, data=b"x" * 20):
    return struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data


def tcp(sport, dport, flags, data=b""):
    return struct.pack("!HHIIBBHHH", sport, dport, 1, 0, 0x50, flags, 1024, 0, 0) + data


def frame(dst, src, ether_type, payload):
    return mac(dst) + mac(src) + struct.pack("!H", ether_type) + payload


SYN, ACK = 2, 16


def common(rng, src, dst, gateway):
    """Frames of one host to another, as any program may get them."""
    packets = [
        ipv4(src["ip"], dst["ip"], udp(1000, 2000)),
        ipv4(src["ip"], dst["ip"], udp(1000, 2000), tos=0xb8 | 1),
        ipv4(src["ip"], dst["ip"], tcp(rng.randrange(1024, 65536), 80, SYN), protocol=6),
        ipv4(src["ip"], dst["ip"], tcp(80, rng.randrange(1024, 65536), SYN | ACK, b"y" * 1000), protocol=6, tos=2),
        ipv4(src["ip"], dst["ip"], b"\x08\0\0\0\0\1\0\1" + b"z" * 48, protocol=1, ttl=2),
        ipv4(src["ip"], dst["ip"], udp(1, 2), ttl=rng.choice((0, 1))),
        ipv4(src["ip"], dst["ip"], udp(1, 2), wrong=1),
        ipv4(src["ip"], dst["ip"], udp(1, 2), options=b"\1\1\1\0"),
        ipv4(src["ip"], dst["ip"], rng.randbytes(24), protocol=rng.randrange(256), fragment=rng.randrange(0x4000)),
    ]
    return [frame(gateway, src["mac"], 0x0800, p) for p in packets]


def strays(rng, src, gateway):
    """Unexpected frames, or expected frames to unexpected places."""
    whole = frame(gateway, src["mac"], 0x0800, ipv4(src["ip"], "10.0.0.1", tcp(5, 6, SYN), protocol=6))
    return [
        whole, whole[:14], whole[:33], whole[:40],
        frame(gateway, src["mac"], 0x0800, ipv4(src["ip"], "192.0.2.1", udp(1, 2))),
        frame("ff:ff:ff:ff:ff:ff", src["mac"], 0x0806, struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac(src["mac"])
              + socket.inet_aton(src["ip"]) + bytes(6) + socket.inet_aton("10.0.0.9")),
        frame("01:00:5e:00:00:01", src["mac"], 0x88b5, rng.randbytes(50)),
        frame(gateway, src["mac"], 0x86dd, bytes.fromhex("6000000000083b40") + bytes(32) + bytes(8)),
    ]


def own(name, rng, src, dst, gateway):
    """Frames in the format of an exercise's own header."""
    inner = ipv4(src["ip"], dst["ip"], udp(7, 8))
    if name == "basic_tunnel":
        return [frame(gateway, src["mac"], 0x1212, struct.pack("!HH", proto, tunnel) + inner)
                for proto, tunnel in ((0x0800, 1), (0x0800, 2), (0x0800, 3), (0x0800, 9), (0x0806, 2))]
    if name == "p4runtime":
        return [frame(gateway, src["mac"], 0x1212, struct.pack("!HH", 0x0800, tunnel) + inner) for tunnel in (100, 200, 7)]
    if name == "calc":
        return [frame(dst["mac"], src["mac"], 0x1234, b"P4\x01" + op + struct.pack("!III", rng.getrandbits(32), rng.getrandbits(32), 0))
                for op in (b"+", b"-", b"&", b"|", b"^", b"?")] + [frame(dst["mac"], src["mac"], 0x1234, b"P3\x01+" + bytes(12))]
    if name == "source_routing":
        routes = ([2, 3, 2, 2, 1], [1], [2, 1], [3, 1], [2, 3, 1], [9])
        return [frame(gateway, src["mac"], 0x1234, b"".join(struct.pack("!H", port | (0x8000 if i == len(r) - 1 else 0))
                      for i, port in enumerate(r)) + inner) for r in routes]
    if name == "mri":
        traces = [b"", struct.pack("!II", 5, 6), struct.pack("!IIII", 1, 2, 3, 4)]
        return [frame(gateway, src["mac"], 0x0800, ipv4(src["ip"], dst["ip"], udp(4321, 4321),
                      options=struct.pack("!BBH", 31, 4 + len(t), len(t) // 8) + t)) for t in traces]
    if name == "link_monitor":
        paths = ([4, 1, 4, 1, 3, 2, 3, 2, 1], [1], [2], [3, 1], [4, 2])
        return [frame("ff:ff:ff:ff:ff:ff", src["mac"], 0x0812, b"\0" + bytes(p)) for p in paths]
    if name == "load_balance":
        return [frame(gateway, src["mac"], 0x0800, ipv4(src["ip"], "10.0.0.1", tcp(rng.randrange(65536), 80, SYN), protocol=6))
                for _ in range(10)]
    if name == "multicast":
        return [frame(to, src["mac"], 0x0806, rng.randbytes(46)) for to in ("ff:ff:ff:ff:ff:ff", dst["mac"], "08:00:00:00:09:99")]
    return []


def stimuli(name, hosts):
    """All frames of an exercise, as pairs of a host and a frame; always the same."""
    rng, out = random.Random(name), []
    if name == "flowcache":
        # The exercise's controller ends at a packet without a destination, forgets an idle flow
        # after 3 s, and needs 5 s to forget one. So there are two packets of few flows. The first
        # is for the controller.
        around = list(hosts.items())
        return [(a, frame(src["gateway"], src["mac"], 0x0800, ipv4(src["ip"], dst["ip"], udp(1, 2))))
                for (a, src), (_, dst) in zip(around, around[1:] + around[:1]) for _ in range(2)]
    for a, src in hosts.items():
        gateway = src["gateway"]
        for b, dst in hosts.items():
            if a == b:
                continue
            out += [(a, f) for f in common(rng, src, dst, gateway) + own(name, rng, src, dst, gateway)]
        out += [(a, f) for f in strays(rng, src, gateway)]
    return out


def mask(name, data):
    """What of a frame to compare: link_monitor writes the time of day into its probes."""
    if name != "link_monitor" or data[12:14] != b"\x08\x12":
        return data
    data, at = bytearray(data), 15
    for _ in range(data[14]):
        data[at + 6:at + 18] = bytes(12)  # behind bos and swid, port, byte_cnt: last_time, cur_time
        at += 18
    return bytes(data)


MASKED = {
    "link_monitor": "the two times in a probe",
    "flowcache": "a counter whose index is a field of an invalid header",
}


def counters(name, lines):
    """The last value that a controller has printed of each counter."""
    last = {}
    for line in lines:
        counter, _, value = line.strip().partition(": ")
        if " packets (" in value and not (name == "flowcache" and "ingressPktOutCounter" in counter):
            last[counter] = value
    return last


def listen(pid=None, interface=None):
    """A packet socket, in the network namespace of a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as home, open(f"/proc/{pid or os.getpid()}/ns/net") as there:
        if libc.setns(there.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        libc.setns(home.fileno(), 0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    if interface:
        s.bind((interface, ETH_P_ALL))
    return s


def collect(name, sockets, quiet, received):
    """Take frames until none came for a while. A socket of the root namespace sees all ports."""
    while ready := select.select(list(sockets), [], [], quiet)[0]:
        for s in ready:
            data, (interface, _, kind, *_) = s.recvfrom(65536)
            if kind != PACKET_OUTGOING and interface != "lo":
                received.setdefault(sockets[s] or interface, []).append(mask(name, data).hex())


def start_controller(log):
    """Start the exercise's own controller, where it has one, and wait until it has programmed
    the switches."""
    if not os.path.exists(CONTROLLER):
        return None
    p = subprocess.Popen([sys.executable, "-u", CONTROLLER], stdout=log, stderr=log)
    time.sleep(5)
    return p


def ping(hosts, a, b):
    return int(" 1 received" in hosts[a].cmd(f"ping -c 1 -W 2 {hosts[b].IP()}"))


def run(net):
    name = os.environ["TUTORIAL"]
    with open(os.environ["TOPOLOGY"]) as f:
        topology = json.load(f)["hosts"]
    said = os.environ["RESULT"] + ".controller"
    with open(said, "w") as log:
        controller = start_controller(log)
        hosts = {h.name: h for h in net.hosts}
        facts = {}
        for n, h in hosts.items():
            arp = [c.split()[-1] for c in topology[n].get("commands", []) if c.startswith("arp ")]
            facts[n] = {"ip": h.IP(), "mac": h.MAC(), "gateway": (arp + ["08:00:00:00:01:00"])[0]}
            h.cmd("ip addr flush dev eth0")
        sockets = {listen(): None}
        senders = {n: listen(h.pid, "eth0") for n, h in hosts.items()}
        sockets.update({s: n for n, s in senders.items()})
        collect(name, sockets, 0.5, {})
        sent, received = stimuli(name, facts), {}
        for host, data in sent:
            senders[host].send(data)
            collect(name, sockets, QUIET_WITH_CONTROLLER if controller and name == "flowcache" else QUIET, received)
        for n, h in hosts.items():
            h.cmd(f"ip addr add {topology[n]['ip']} dev eth0")
            for c in topology[n].get("commands", []):
                h.cmd(c)
        pings = {f"{a} {b}": ping(hosts, a, b) for a in hosts for b in hosts if a != b}
        if controller:
            time.sleep(3)  # one prints its counters every 2 s
            controller.send_signal(signal.SIGKILL)
            controller.wait()
    with open(said) as f:
        said = counters(name, f)
    with open(os.environ["RESULT"], "w") as f:
        json.dump({"sent": [(h, d.hex()) for h, d in sent], "received": received, "pings": pings, "masked": MASKED.get(name, ""),
                   "said": said}, f)
