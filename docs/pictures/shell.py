#!/usr/bin/env python3
"""Records docs/pictures/shell.svg: the commands of "Entries from the shell" in docs/start/your-program.md, as they
run and with what they print. Needs root. Run it in the repository, after make build, as
    unshare -nm docs/pictures/shell.py
so that the network namespaces that the page makes are gone afterwards."""
import html, re, subprocess, time

TYPED = 0.045  # seconds a character
READ = 1.2  # seconds behind what a command prints
SIZE, STEP, WIDTH = 13, 18, 980  # of the text, of lines, of the picture

blocks, part = [], ""
for title, language, text in re.findall(r"^## ([^\n]*)$|^```(\w+)\n(.*?)^```", open("docs/start/your-program.md").read(), re.M | re.S):
    part = title or part
    if language == "sh":
        blocks.append((part, text.replace("make build\n", "")))
last = "Entries from the shell"
before = [text for part, text in blocks[: [p for p, _ in blocks].index(last)]]
shown = [line for part, text in blocks if part == last for line in text.splitlines()]

shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(commands):
    """Returns what commands print, and how long they took."""
    start = time.time()
    shell.stdin.write(commands + "\nprintf '\\001\\n'\n")
    shell.stdin.flush()
    lines = []
    while (line := shell.stdout.readline()) not in ("\x01\n", ""):
        lines.append(line.rstrip("\n"))
    return lines, time.time() - start


run("mount -t tmpfs none /run/netns && ip link set lo up\n" + "\n".join(before))
now, rows = 0.5, []
for command in shown:
    printed, took = run(command)
    rows.append((now, "command", "$ " + command, len(command)))
    now += len(command) * TYPED + took
    rows += [(now, "output", line, 0) for line in printed]
    now += READ
run("kill $running; wait")

with open("docs/pictures/shell.svg", "w") as out:
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{STEP * len(rows) + 24}" font-family="monospace" font-size="{SIZE}">\n')
    out.write('<style>text{fill:#d8dee9;white-space:pre;animation:show .01s backwards}.command{fill:#a3e4a0}@keyframes show{from{opacity:0}}</style>\n')
    out.write('<rect width="100%" height="100%" rx="8" fill="#1e2430"/>\n')
    for i, (at, kind, line, _) in enumerate(rows):
        out.write(f'<text class="{kind}" x="14" y="{STEP * i + 26}" style="animation-delay:{at:.1f}s">{html.escape(line.expandtabs())}</text>\n')
    out.write("</svg>\n")
