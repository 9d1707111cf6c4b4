// The state that /api/fabric returns, sorted by object. Its 64-bit integers are strings.
import {count, word} from './format.js';

export const at = (node, port) => port ? `${node}:${port}` : node;
export const to = name => '#' + encodeURIComponent(name);
const before = new Map(); // the last byte count of a port and its time, by port and direction
const stale = 5000;       // ms after which a poll is too old for a current rate

// speed is the rate in bits per second at which a counter of bytes grows; undefined before the second
// reading.
function speed(key, bytes, time) {
  if (bytes === undefined || Number.isNaN(bytes)) return undefined;
  const was = before.get(key);
  if (!was || bytes < was.bytes) { before.set(key, {bytes, time}); return undefined; }
  if (time - was.time >= 900) before.set(key, {bytes, time, rate: 8000 * (bytes - was.bytes) / (time - was.time)});
  return before.get(key).rate;
}

export function keyOf(f) {
  const end = (ip, port) => (ip.includes(':') ? `[${ip}]` : ip) + ':' + port;
  return `${end(f.src_ipv4, f.src_port)},${end(f.dst_ipv4, f.dst_port)}`;
}

export class Model {
  constructor(s) {
    Object.assign(this, {time: Date.parse(s.time), name: s.fabric.name, generation: s.fabric.generation, member: s.fabric.member, build: s.fabric.build, events: s.events});
    this.switches = s.switches;
    this.hosts = s.fabric.hosts;
    this.nodes = new Map([...s.switches.map(n => [n.name, {...n, kind: 'switch'}]), ...this.hosts.map(n => [n.name, {...n, kind: 'host'}])]);
    this.address = new Map();
    for (const h of this.hosts) for (const ip of [h.ipv4, h.ipv6]) if (ip) this.address.set(ip, h.name);
    this.ports = new Map();
    for (const sw of s.switches) this.readPorts(sw);
    this.flows = [];
    this.sent = new Map(); // payload rate of each host that reports
    for (const r of s.reports) {
      this.sent.set(r.host, r.flows.reduce((n, f) => n + Number(f.rate_bps), 0));
      for (const f of r.flows) this.flows.push(this.flow(r.host, f));
    }
    this.flows.sort((a, b) => a.host.localeCompare(b.host, 'en', {numeric: true}) || a.key.localeCompare(b.key, 'en', {numeric: true}));
    this.flowsByKey = new Map(this.flows.map(f => [f.key, f]));
    this.links = s.fabric.links.map(l => this.link(l));
    this.linksByName = new Map(this.links.map(l => [l.name, l]));
  }

  readPorts(sw) {
    const port = n => {
      const k = at(sw.name, n);
      if (!this.ports.has(k)) this.ports.set(k, {name: k, node: sw.name, port: n, peer: '', state: 'unknown', reason: '', queue: undefined, queues: [], classes: [], paused: []});
      return this.ports.get(k);
    };
    const f = sw.features ?? {};
    for (const p of sw.ports) Object.assign(port(p.port), {peer: p.peer, state: word(p.state), reason: p.reason});
    for (const p of f.telemetry?.ports ?? []) {
      const polled = Date.parse(p.polled), rate = speed(`out ${at(sw.name, p.port)}`, Number(p.transmitted_bytes), polled);
      port(p.port).rate = this.time - polled < stale ? rate : undefined;
    }
    for (const q of f.telemetry?.queues ?? []) {
      const p = port(q.port);
      p.queue = (p.queue ?? 0) + Number(q.held_bytes);
      if (Number(q.held_bytes) > 0) p.queues.push({queue: q.queue, held: Number(q.held_bytes)});
    }
    for (const b of f.buffer?.ports ?? []) {
      const p = port(b.port);
      p.victim = b.victim;
      p.lossless = speed(`in ${at(sw.name, b.port)}`, Number(b.departed_bytes), this.time);
    }
    for (const c of f.buffer?.classes ?? []) {
      const p = port(c.port), held = Number(c.private_bytes) + Number(c.shared_bytes) + Number(c.headroom_bytes);
      if (c.paused) p.paused.push(c.class);
      if (held > 0 || c.paused || Number(c.lossless_drops ?? 0) > 0) p.classes.push({...c, held});
    }
    for (const c of f.pacc?.ports ?? []) port(c.port).cnps = speed(`cnps ${at(sw.name, c.port)}`, Number(c.granted), this.time) / 8;
    for (const c of f.pfcwatchdog?.classes ?? []) if (c.storm) port(c.port).storm = true;
  }

  flow(host, f) {
    const key = keyOf(f.flow), from = this.address.get(f.flow.src_ipv4) ?? f.flow.src_ipv4, dst = this.address.get(f.flow.dst_ipv4) ?? f.flow.dst_ipv4;
    return {key, host, from, to: dst, name: `${from}:${f.flow.src_port} → ${dst}:${f.flow.dst_port}`, report: f, rate: Number(f.rate_bps), weight: f.weight, law: f.law, href: to('flow/' + key)};
  }

  // link has the load of each direction as a share of its rate, undefined if no port reports it.
  link(l) {
    const capacity = Number(l.rate_bps), load = r => r === undefined || Number.isNaN(r) ? undefined : Math.min(1, r / capacity);
    const rateFrom = (end, other) => {
      if (end.port) return this.ports.get(at(end.node, end.port))?.rate;
      const reported = this.sent.get(end.node), seen = this.ports.get(at(other.node, other.port))?.lossless;
      return reported === undefined ? seen : Math.max(reported, seen ?? 0);
    };
    const a = at(l.a.node, l.a.port), b = at(l.b.node, l.b.port);
    return {name: `${a}-${b}`, a: l.a, b: l.b, ends: [a, b], capacity, state: word(l.state), reason: l.reason, load: [load(rateFrom(l.a, l.b)), load(rateFrom(l.b, l.a))]};
  }

  linkOf(node, port) { return this.links.find(l => [l.a, l.b].some(e => e.node === node && (!port || e.port === port))); }

  summary() {
    const ready = this.switches.filter(s => s.state === 'STATE_READY').length, down = this.links.filter(l => l.state === 'down').length;
    const paused = [...this.ports.values()].filter(p => p.paused.length > 0).length;
    return [`generation ${this.generation}`, `${ready} of ${count(this.switches.length, 'switch', 'switches')} ready`, down ? `${down} of ${count(this.links.length, 'link')} down` : `${count(this.links.length, 'link')}, none down`,
      paused ? `${count(paused, 'port')} paused` : '', count(this.flows.length, 'flow')].filter(Boolean).join(' · ');
  }

  // resolve returns the object that an address behind # names: {kind, …}. kind is 'none' for an empty address and
  // 'gone' for an unknown object.
  resolve(name) {
    if (!name) return {kind: 'none'};
    if (name.startsWith('flow/')) return {kind: 'flow', key: name.slice(5), flow: this.flowsByKey.get(name.slice(5))};
    if (name.startsWith('apply/')) return {kind: 'apply', generation: name.slice(6)};
    if (this.nodes.has(name)) return {kind: this.nodes.get(name).kind, node: this.nodes.get(name)};
    if (this.ports.has(name)) return {kind: 'port', port: this.ports.get(name)};
    const [x, y] = [this.linksByName.get(name), name.split('-').reverse().join('-')];
    const link = x ?? this.linksByName.get(y);
    return link ? {kind: 'link', link} : {kind: 'gone', name};
  }

  // linked splits a text at names of known objects.
  linked(text) {
    return text.split(/([\p{L}\p{N}_.:\-]+)/u).map((p, i) => {
      if (i % 2 === 0) return {text: p};
      const name = p.replace(/[.:\-]+$/, '');
      return this.resolves(name) ? {text: p, href: to(name)} : {text: p};
    }).filter(p => p.text !== '').reduce((list, p) => {
      const last = list.at(-1);
      if (last && !last.href && !p.href) last.text += p.text; else list.push({...p});
      return list;
    }, []);
  }

  resolves(name) { return this.nodes.has(name) || this.ports.has(name) || this.linksByName.has(name); }

  subject(e) {
    if (e.port && this.ports.has(at(e.subject, e.port))) return [{text: at(e.subject, e.port), href: to(at(e.subject, e.port))}];
    return this.linked(e.subject);
  }
}
