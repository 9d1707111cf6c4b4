'use strict';
// What the page shows comes from fabric.json, twice a second: the API's messages (api/headgate/v1/headgate.proto), in
// which 64-bit integers are strings. Text is only ever set as text.
const $ = id => document.getElementById(id);
const NS = 'http://www.w3.org/2000/svg';
// word is the last word of a value of an enum, number a status value's, NaN for a text and for what is unknown.
const word = s => s.slice(s.indexOf('_') + 1);
const number = v => Number(v.truth ?? v.number ?? v.count ?? v.bytes ?? v.ns ?? (v.time ? Date.parse(v.time) : NaN));
let chosen = location.hash ? {node: decodeURIComponent(location.hash.slice(1))} : null; // {node} or {link}; #leaf1 is a switch's own address
let before = new Map(); // bytes that left a port, and when
let drawn = '';         // the topology that places belong to
let places = new Map();

function svg(name, attributes, parent) {
  const e = document.createElementNS(NS, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  parent.append(e);
  return e;
}

function html(name, text, parent, className) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  parent.append(e);
  return e;
}

// place puts hosts below, and each switch as many tiers up as it is hops from a host.
function place(f) {
  const neighbours = new Map([...f.switches, ...f.hosts].map(n => [n.name, []]));
  for (const l of f.links) { neighbours.get(l.a.node).push(l.b.node); neighbours.get(l.b.node).push(l.a.node); }
  const tier = new Map(f.hosts.map(h => [h.name, 0]));
  let edge = [...tier.keys()];
  if (edge.length === 0 && f.switches.length > 0) { edge = [f.switches[0].name]; tier.set(edge[0], 0); }
  while (edge.length > 0) {
    const next = [];
    for (const n of edge) for (const m of neighbours.get(n)) if (!tier.has(m)) { tier.set(m, tier.get(n) + 1); next.push(m); }
    edge = next;
  }
  for (const s of f.switches) if (!tier.has(s.name)) tier.set(s.name, 1);
  const rows = [];
  for (const [n, t] of tier) (rows[t] ??= []).push(n);
  places = new Map();
  rows.forEach((row, t) => {
    if (t > 0) row.sort((a, b) => a.localeCompare(b, 'en', {numeric: true}));
    else { // a host stands below its switch
      const x = n => { const up = neighbours.get(n)[0]; return up ?? n; };
      row.sort((a, b) => x(a).localeCompare(x(b), 'en', {numeric: true}) || a.localeCompare(b, 'en', {numeric: true}));
    }
    row.forEach((n, i) => places.set(n, {x: (i + 0.5) / row.length, y: rows.length === 1 ? 0.5 : 1 - (t + 0.35) / (rows.length - 0.3)}));
  });
}

// sum adds up a field of the rows of a port; undefined when there is none.
function sum(rows, port, field) {
  const known = (rows ?? []).filter(r => r.port === port && r[field] !== undefined && r[field] !== null);
  return known.length ? known.reduce((n, r) => n + Number(r[field]), 0) : undefined;
}

// load is the share of a link's rate that left by the port since the last look that saw more.
function load(sw, port, rate, time) {
  const bytes = sum(sw.features?.telemetry?.ports, port, 'transmitted_bytes');
  if (bytes === undefined) return 0;
  const key = sw.name + ':' + port, was = before.get(key);
  if (!was || bytes < was.bytes) { before.set(key, {bytes, time, load: 0}); return 0; }
  if (time - was.time >= 1000) {
    was.load = 8000 * (bytes - was.bytes) / (time - was.time) / rate;
    was.bytes = bytes; was.time = time;
  }
  return Math.min(1, was.load);
}

function draw(f) {
  const s = $('fabric'), w = s.clientWidth, h = s.clientHeight;
  s.setAttribute('viewBox', `0 0 ${w} ${h}`);
  s.replaceChildren();
  const at = n => { const p = places.get(n); return {x: p.x * w, y: p.y * h}; };
  const switches = new Map(f.switches.map(n => [n.name, n]));
  const time = Date.parse(f.time), marks = [];
  for (const l of f.links) {
    const a = at(l.a.node), b = at(l.b.node);
    let most = 0;
    for (const [here, there, end] of [[a, b, l.a], [b, a, l.b]]) {
      const sw = switches.get(end.node);
      if (!sw) continue;
      most = Math.max(most, load(sw, end.port, Number(l.rate_bps), time));
      marks.push({x: here.x + 0.24 * (there.x - here.x), y: here.y + 0.24 * (there.y - here.y), name: end.node + ':' + end.port,
        queue: sum(sw.features?.telemetry?.queues, end.port, 'held_bytes') ?? 0, paused: sum(sw.features?.buffer?.classes, end.port, 'paused'),
        victim: sum(sw.features?.buffer?.ports, end.port, 'victim')});
    }
    const state = word(l.state).toLowerCase(), line = svg('line', {x1: a.x, y1: a.y, x2: b.x, y2: b.y, class: state}, s);
    if (state === 'up' || most > 0) line.style.strokeWidth = 1.5 + 7 * most;
    const hit = svg('line', {x1: a.x, y1: a.y, x2: b.x, y2: b.y, class: 'hit'}, s);
    hit.onclick = () => { chosen = {link: [l.a, l.b]}; detail(f); };
    svg('title', {}, hit).textContent = `${endText(l.a)} – ${endText(l.b)}: ${state}, ${rate(Number(l.rate_bps))}, ${Math.round(100 * most)} % used${l.reason ? ' — ' + l.reason : ''}`;
  }
  for (const m of marks) {
    const r = Math.min(16, Math.sqrt(m.queue) / 20);
    if (r > 1) svg('title', {}, svg('circle', {cx: m.x, cy: m.y, r, class: 'queue'}, s)).textContent = `${m.name}: ${bytes(m.queue)} in its queues`;
    if (m.paused) svg('path', {d: `M${m.x - 4} ${m.y - 9}v18M${m.x + 4} ${m.y - 9}v18`, class: 'pause'}, s);
    if (m.victim) svg('path', {d: `M${m.x} ${m.y - 22}l8 13h-16z`, class: 'victim'}, s);
  }
  for (const [kind, list] of [['host', f.hosts], ['switch', f.switches]]) for (const n of list) {
    const p = at(n.name), width = Math.max(36, 8.5 * n.name.length + 10), g = svg('g', {class: 'node', tabindex: 0}, s);
    const mine = chosen && chosen.node === n.name ? ' chosen' : '';
    svg('rect', {x: p.x - width / 2, y: p.y - 13, width, height: 26, rx: 3, class: (kind === 'host' ? 'host' : word(n.state).toLowerCase()) + mine}, g);
    svg('text', {x: p.x, y: p.y + 5}, g).textContent = n.name;
    svg('title', {}, g).textContent = kind === 'host' ? `${n.name} ${n.ipv4}` : `${n.name}: ${word(n.state).toLowerCase()}`;
    g.onclick = () => { chosen = {node: n.name}; window.history.replaceState(null, '', '#' + encodeURIComponent(n.name)); detail(f); };
    g.onkeydown = e => { if (e.key === 'Enter') g.onclick(); };
  }
}

const endText = e => e.port ? `${e.node}:${e.port}` : e.node;
const scaled = (n, unit) => { const p = ['', 'k', 'M', 'G', 'T']; let i = 0; while (n >= 1000 && i < 4) { n /= 1000; i++; } return `${+n.toPrecision(3)} ${p[i]}${unit}`; };
const bytes = n => scaled(n, 'B'), rate = n => scaled(n, 'b/s');

// detail explains what was chosen: all that the features know of a switch, or of a link's ports.
function detail(f) {
  const box = $('detail');
  if (!chosen) return;
  const top = box.scrollTop;
  box.replaceChildren();
  const ends = chosen.link ?? [{node: chosen.node}];
  html('h2', ends.map(endText).join(' – '), box);
  const same = (x, y) => x.node === y.node && x.port === y.port;
  const link = ends.length === 2 && f.links.find(l => same(l.a, ends[0]) && same(l.b, ends[1]));
  if (link) html('p', `${word(link.state).toLowerCase()}${link.reason ? ': ' + link.reason : ''}`, box);
  for (const e of ends) {
    const host = f.hosts.find(h => h.name === e.node);
    if (host) { html('p', `${host.name}: host ${host.ipv4}`, box); continue; }
    const sw = f.switches.find(s => s.name === e.node);
    if (!sw) { html('p', `${e.node} is no longer in the fabric`, box); continue; }
    html('p', `${sw.name} at ${sw.address}: ${word(sw.state).toLowerCase()} since ${new Date(sw.since).toLocaleTimeString()}, ${sw.entries} entries${sw.error ? ' — ' + sw.error : ''}`, box);
    for (const t of sw.status) {
      const key = t.keys.indexOf('port');
      const rows = e.port ? t.rows.filter(r => key >= 0 && r.keys[key] === String(e.port)) : t.rows;
      if (rows.length === 0) continue;
      html('h3', `${t.feature} ${t.name}`, box);
      const table = html('table', undefined, box), head = html('tr', undefined, html('thead', undefined, table)), body = html('tbody', undefined, table);
      for (const k of [...t.keys.map(k => k.toUpperCase()), ...t.columns.map(c => c.head)]) html('th', k, head);
      for (const r of rows) {
        const line = html('tr', undefined, body);
        for (const k of r.keys) html('td', k, line);
        for (const v of r.values) html('td', v.shown, line, isNaN(number(v)) ? '' : 'number');
      }
    }
  }
  box.scrollTop = top;
}

function events(f) {
  const body = $('events');
  body.replaceChildren();
  for (const e of f.events.slice(-50).reverse()) {
    const line = html('tr', undefined, body, word(e.severity));
    for (const v of [new Date(e.time).toLocaleTimeString(), word(e.severity), e.subject, e.kind, e.message]) html('td', v, line);
  }
}

async function tick() {
  try {
    const answer = await fetch('fabric.json', {signal: AbortSignal.timeout(5000)});
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const {fabric, ...rest} = await answer.json();
    const f = {...fabric, ...rest};
    const topology = JSON.stringify([f.switches.map(s => s.name), f.hosts.map(h => h.name), f.links.map(l => [l.a, l.b])]);
    if (topology !== drawn) { place(f); drawn = topology; }
    $('name').textContent = f.name;
    const ready = f.switches.filter(s => s.state === 'STATE_READY').length, down = f.links.filter(l => l.state === 'STATE_DOWN').length;
    $('summary').className = '';
    $('summary').textContent = `generation ${f.generation} · ${ready} of ${f.switches.length} switches ready · ${down} of ${f.links.length} links down · ${new Date(f.time).toLocaleTimeString()}`;
    draw(f); detail(f); events(f);
  } catch (e) {
    $('summary').className = 'stale';
    $('summary').textContent = `no answer from the controller (${e.message}); what is shown may be old`;
  }
  setTimeout(tick, 500);
}
tick();
