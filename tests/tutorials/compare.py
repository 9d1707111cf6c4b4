#!/usr/bin/python3
"""Run the solutions of p4lang/tutorials on simple_switch_grpc and on `headgate switch`, and
compare every frame that a port receives.

    sudo tests/tutorials/compare.py /path/to/tutorials [exercise ...]

Each exercise is copied, its solution takes the place of what is to be solved, and the
checkout's own Makefile, run_exercise.py, P4Runtime library and controllers do the rest:
nothing of them is changed. In the CLI that run_exercise.py ends in, traffic.py sends the same
frames over both switches. Each run has network and process namespaces of its own, which end
with it.
"""

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HEADGATE = os.path.join(HERE, os.pardir, os.pardir, "bin", "headgate")
KINDS = ("simple_switch_grpc", "headgate")

# ALONE runs a command in a network namespace with only a loopback interface. Processes that the
# command leaves behind end with it.
ALONE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
         'ip link set lo up && sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 && exec "$@"', "sh"]

# Programs and Python modules, with the Debian package or the place that has them.
PROGRAMS = {
    "p4c-bm2-ss": "p4lang's packages (see README)", "simple_switch_grpc": "p4lang's packages (see README)",
    "mn": "Debian's mininet", "ethtool": "Debian's ethtool", "arp": "Debian's net-tools",
    "route": "Debian's net-tools", "ping": "Debian's iputils-ping", "make": "Debian's make", "unshare": "Debian's util-linux",
}
MODULES = {
    "mininet": "Debian's mininet", "psutil": "Debian's python3-psutil", "grpc": "Debian's python3-grpcio",
    "google.protobuf": "Debian's python3-protobuf", "p4": "p4lang's packages, or the p4runtime package of PyPI",
}
# Further programs and modules that a single exercise needs.
EXTRA = {"flowcache": {"scapy": "Debian's python3-scapy", "p4runtime_sh": "p4lang/p4runtime-shell, by PYTHONPATH"}}


def lacking(modules):
    """Missing programs and modules, one per line."""
    return ([f"{name} is not on the PATH: it comes from {where}" for name, where in PROGRAMS.items() if not shutil.which(name)]
            + absent(modules))


def absent(modules):
    return [f"Python has no module {name}: it comes from {where}" for name, where in modules.items()
            if importlib.util.find_spec(name.split(".")[0]) is None]


def topologies(exercise):
    """The topologies of an exercise, as paths within it."""
    return sorted(os.path.relpath(os.path.join(folder, "topology.json"), exercise)
                  for folder, _, files in os.walk(exercise) if "topology.json" in files)


def solve(exercise):
    """Replace each exercise file by the solution of the same name."""
    solution = os.path.join(exercise, "solution")
    for name in os.listdir(solution):
        places = [folder for folder, _, files in os.walk(exercise) if name in files and folder != solution]
        for folder in places or [exercise]:
            shutil.copy(os.path.join(solution, name), folder)


def command(exercise, topology):
    """The command that `make run` would start, behind sudo's own arguments."""
    out = subprocess.run(["make", "-n", "run", f"TOPO={topology}"], cwd=exercise, text=True, check=True, capture_output=True).stdout
    words = shlex.split(next(line for line in out.splitlines() if "run_exercise.py" in line))
    return words[words.index("python3") + 1:]


def run(kind, exercise, topology, scratch):
    """Run an exercise on one kind of switch and return what traffic.py saw."""
    result = os.path.join(scratch, f"{kind}.json")
    words = [sys.executable] + command(exercise, topology)
    if kind == "headgate":
        # The exercises' scripts take a switch for a P4Runtime switch if its name contains grpc.
        switch = os.path.join(scratch, "headgate_switch_grpc")
        with open(switch, "w") as f:
            f.write(f'#!/bin/sh\nexec {os.path.abspath(HEADGATE)} switch "$@"\n')
        os.chmod(switch, 0o755)
        words[words.index("-b") + 1] = switch
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")]),
               TUTORIAL=os.path.basename(exercise), TOPOLOGY=topology, RESULT=result)
    with open(os.path.join(scratch, f"{kind}.log"), "w") as log:
        subprocess.run(ALONE + words, cwd=exercise, env=env, text=True, input="py __import__('traffic').run(net)\nexit\n",
                       stdout=log, stderr=log, timeout=900)
    if not os.path.exists(result):
        raise RuntimeError(f"{kind} did not get as far as the frames; see {log.name}")
    with open(result) as f:
        return json.load(f)


def differences(a, b):
    """The differences of two runs, one per line."""
    lines = []
    if a["sent"] != b["sent"]:
        lines.append("the runs did not send the same frames")
    for port in sorted(a["received"].keys() | b["received"].keys()):
        got = [r["received"].get(port, []) for r in (a, b)]
        if got[0] != got[1]:
            at = next((i for i, (x, y) in enumerate(zip(*got)) if x != y), min(map(len, got)))
            lines.append(f"{port}: {len(got[0])} frames and {len(got[1])}, other from the {at + 1}th on: "
                         + " and ".join(frames[at] if at < len(frames) else "nothing" for frames in got))
    lines += [f"ping {pair}: {a['pings'][pair]} and {b['pings'][pair]} answers" for pair in a["pings"] if a["pings"][pair] != b["pings"][pair]]
    lines += [f"the controller says of {counter}: {a['said'].get(counter)} and {b['said'].get(counter)}"
              for counter in sorted(a["said"].keys() | b["said"].keys()) if a["said"].get(counter) != b["said"].get(counter)]
    return lines


def compare(checkout, name, topology, keep):
    """Run an exercise on both switches; return a row of the table and the differences."""
    root = tempfile.mkdtemp(prefix=f"tutorials-{name}-")
    try:
        shutil.copytree(os.path.join(checkout, "utils"), os.path.join(root, "utils"))
        exercise = os.path.join(root, "exercises", name)
        shutil.copytree(os.path.join(checkout, "exercises", name), exercise)
        solve(exercise)
        subprocess.run(["make", "build"], cwd=exercise, check=True, capture_output=True, text=True)
        runs = [run(kind, exercise, topology, root) for kind in KINDS]
        lines = differences(*runs)
        frames = sum(map(len, runs[0]["received"].values()))
        pings = list(runs[0]["pings"].values())
        masked = runs[0]["masked"]
        verdict = "differs" if lines else "identical" + (f" but for {masked}" if masked else "")
        return [len(runs[0]["sent"]), frames, f"{sum(pings)} of {len(pings)}", verdict], lines
    except subprocess.CalledProcessError as err:
        return ["", "", "", "not run"], [f"{shlex.join(err.cmd)}: {(err.stderr or '').strip()[-2000:]}"]
    except (RuntimeError, subprocess.TimeoutExpired) as err:
        keep = True
        return ["", "", "", "not run"], [str(err)]
    finally:
        if not keep:
            shutil.rmtree(root)
        else:
            print("kept", root, file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", help="a checkout of p4lang/tutorials")
    parser.add_argument("exercise", nargs="*", help="default all")
    parser.add_argument("--keep", action="store_true", help="keep programs, logs and what was received")
    args = parser.parse_args()
    exercises = os.path.join(args.checkout, "exercises")
    if not os.path.isdir(exercises):
        parser.error(f"{args.checkout} has no folder exercises: want a checkout of https://github.com/p4lang/tutorials")
    names = args.exercise or sorted(os.listdir(exercises))
    unknown = [n for n in names if not os.path.isdir(os.path.join(exercises, n))]
    if unknown:
        parser.error(f"there is no exercise {', '.join(unknown)}: want some of {', '.join(sorted(os.listdir(exercises)))}")
    if os.geteuid() != 0:
        sys.exit("Mininet needs root")
    if not os.path.exists(HEADGATE):
        sys.exit("there is no bin/headgate: make build")
    if missing := lacking(MODULES):
        sys.exit("\n".join(missing))
    rows, differ, began = [], [], time.time()
    for name in names:
        if missing := absent(EXTRA.get(name, {})):
            rows.append([name, "", "", "", "not run"])
            differ += [f"{name}: {line}" for line in missing]
            continue
        for topology in topologies(os.path.join(exercises, name)):
            title = name if topology == "topology.json" else f"{name}, {os.path.dirname(topology)}"
            row, lines = compare(args.checkout, name, topology, args.keep)
            rows.append([title, *row])
            differ += [f"{title}: {line}" for line in lines]
            print(*rows[-1], sep="\t", file=sys.stderr, flush=True)
    print("| exercise | frames sent | frames received | pings answered | result |\n| --- | --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    for line in differ:
        print(line)
    print(f"{time.time() - began:.0f} s")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
