#!/usr/bin/env python3
"""Renders the buffers and qos templates of a checkout of sonic-buildimage, with its pg_profile_lookup.ini, as CONFIG_DBs.

render.py CHECKOUT prints a line of JSON for each folder of device/ and each topology of it: {"files": [...], "db": {...}}, or
{"files": [...], "error": "..."}. Each lossless row of the lookup has a port of its speed and cable, as buffermgrd would set it up.
"""
import hashlib, json, os, re, sys
import jinja2
from jinja2.bccache import Bucket, BytecodeCache

root = sys.argv[1]
shared = os.path.join(root, "files/build_templates")
ROLES = {"t0": "ToRRouter", "t1": "LeafRouter", "t2": "SpineRouter", "lt2": "LowerSpineRouter", "ft2": "FabricSpineRouter", "def": "", "def_lossy": ""}


class Compiled(BytecodeCache):
    """Keeps templates by their text, which many folders share."""
    code = {}

    def get_bucket(self, environment, name, filename, source):
        b = Bucket(environment, hashlib.sha1((name + source).encode()).hexdigest(), self.get_source_checksum(source))
        self.load_bytecode(b)
        return b

    def load_bytecode(self, b):
        if b.key in self.code:
            b.bytecode_from_string(self.code[b.key])

    def dump_bytecode(self, b):
        self.code[b.key] = b.bytecode_to_string()


def lookup(folder):
    rows = []
    try:
        lines = open(os.path.join(folder, "pg_profile_lookup.ini")).read().splitlines()
    except OSError:
        return rows
    for line in lines:
        words = line.split()
        if words and words[0].isdigit() and len(words) >= 6:
            rows.append(words)
    return rows


def load(text):
    text = re.sub(r",(\s*[}\]])", r"\1", text)  # sonic-cfggen reads JSON with a comma at the end of a list, too
    return json.loads(text)


def render(folder, topo, rows):
    env = jinja2.Environment(loader=jinja2.FileSystemLoader([folder, shared]), trim_blocks=True, bytecode_cache=Compiled())
    env.globals["template_exists"] = lambda name: any(os.path.exists(os.path.join(d, name)) for d in (folder, shared))
    env.filters["sort_by_port_index"] = lambda ports: sorted(ports, key=lambda p: int(re.findall(r"\d+", p)[-1]))
    ports, lane = {}, 1
    for i, row in enumerate(rows or [["100000", "40m"]]):
        ports["Ethernet%d" % (i * 4)] = {"index": str(i + 1), "lanes": str(lane), "speed": row[0], "mtu": "9100", "admin_status": "up"}
        lane += 1
    meta = {"localhost": {"type": ROLES.get(topo, ""), "hwsku": os.path.basename(folder), "platform": os.path.basename(os.path.dirname(folder))}}
    data = {"PORT": ports, "DEVICE_METADATA": meta, "DEVICE_NEIGHBOR": {p: {"name": "n", "port": "p"} for p in ports},
            "DEVICE_NEIGHBOR_METADATA": {}, "SYSTEM_DEFAULTS": {}, "asic_type": "x"}
    db = {"PORT": ports}
    for name in ("buffers.json.j2", "qos.json.j2"):
        if os.path.exists(os.path.join(folder, name)):
            db.update(load(env.get_template(name).render(**data, default_topo=topo)))
    if rows:
        pool = "ingress_lossless_pool"
        limit = db["BUFFER_POOL"][pool]["mode"] + "_th"
        for port, row in zip(ports, rows):
            name = "pg_lossless_%s_%s_profile" % (row[0], row[1])
            profile = {"pool": pool, "size": row[2], "xon": row[3], "xoff": row[4], limit: row[5]}
            if len(row) > 6:
                profile["xon_offset"] = row[6]
            db["BUFFER_PROFILE"][name] = profile
            db["CABLE_LENGTH"]["AZURE"][port] = row[1]
            for classes in ("3-4",):
                db["BUFFER_PG"]["%s|%s" % (port, classes)] = {"profile": name}
    return db


for folder, _, names in sorted(os.walk(os.path.join(root, "device"))):
    mine = [n for n in names if n == "pg_profile_lookup.ini" or re.match(r"(buffers|qos).*\.(j2|json)", n)]
    if not mine:
        continue
    rows = lookup(folder)
    topos = [m.group(1) for n in sorted(mine) for m in [re.fullmatch(r"buffers_defaults_(\w+)\.j2", n)] if m and m.group(1) != "objects"]
    for topo in topos or ["t0"]:
        files = [os.path.relpath(os.path.join(folder, n), root) for n in sorted(mine)
                 if not (n.startswith("buffers_defaults_") and n not in ("buffers_defaults_%s.j2" % topo, "buffers_defaults_objects.j2"))]
        out = {"files": files, "topo": topo}
        try:
            out["db"] = render(folder, topo, rows)
        except Exception as e:  # a template that needs what only its platform has
            out["error"] = "%s: %s" % (type(e).__name__, str(e)[:120])
        print(json.dumps(out))
