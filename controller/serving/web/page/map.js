// The drawing of the fabric: switches above their hosts, links whose width shows their load, and queued bytes.
import {$, keyed, make, say, set, svg} from './dom.js';
import {bytes, percent, rate, shorten} from './format.js';
import {at, to} from './model.js';

const letter = 8.2, height = 28, gap = 6, longest = 16; // px; longest is the most letters of a name
const tier = room => room > 600 ? 150 : 104, margin = 36; // px between the rows of nodes, and around them
let drawn = '', places = new Map();
const size = {width: 0, height: 0};

const wide = n => Math.max(38, letter * Math.min(n.length, longest) + 14);
const compare = (a, b) => a.localeCompare(b, 'en', {numeric: true});

// tiers groups names by their distance from a host, in hops.
function tiers(m) {
  const next = new Map([...m.nodes.keys()].map(n => [n, []]));
  for (const l of m.links) { next.get(l.a.node)?.push(l.b.node); next.get(l.b.node)?.push(l.a.node); }
  const up = new Map(m.hosts.map(h => [h.name, 0]));
  let edge = [...up.keys()];
  if (edge.length === 0 && m.switches.length > 0) { edge = [m.switches[0].name]; up.set(edge[0], 0); }
  while (edge.length > 0) {
    const more = [];
    for (const n of edge) for (const o of next.get(n)) if (!up.has(o)) { up.set(o, up.get(n) + 1); more.push(o); }
    edge = more;
  }
  for (const s of m.switches) if (!up.has(s.name)) up.set(s.name, 1);
  const list = [];
  for (const [n, t] of up) (list[t] ??= []).push(n);
  list.forEach((row, t) => {
    const parent = n => next.get(n)[0] ?? n;
    row.sort((a, b) => (t === 0 ? compare(parent(a), parent(b)) : 0) || compare(a, b));
  });
  return list;
}

// place lays the rows out in the available width, or in the width that they need if that is more.
function place(m, room) {
  const list = tiers(m), need = Math.max(0, ...list.map(row => row.reduce((w, n) => w + wide(n) + gap, gap)));
  size.width = Math.max(room, need);
  size.height = 2 * margin + Math.max(0, list.length - 1) * tier(size.width);
  places = new Map();
  list.forEach((row, t) => {
    const used = row.reduce((w, n) => w + wide(n), 0), space = (size.width - used) / row.length;
    let x = space / 2;
    for (const n of row) { places.set(n, {x: x + wide(n) / 2, y: size.height - margin - t * tier(size.width)}); x += wide(n) + space; }
  });
}

export function drawMap(m, selected) {
  const box = $('fabric'), room = box.parentElement.clientWidth;
  const topology = JSON.stringify([room, [...m.nodes.keys()], m.links.map(l => l.name)]);
  if (topology !== drawn) {
    place(m, room);
    drawn = topology;
    set(box, {viewBox: `0 0 ${size.width} ${size.height}`, width: size.width, height: size.height});
  }
  keyed(box.querySelector('.links'), m.links, l => l.name, newLink, (e, l) => fillLink(e, l, selected));
  const marks = m.links.flatMap(l => [[l.a, l.b], [l.b, l.a]].filter(([end]) => end.port).map(([end, other]) => ({end, other, port: m.ports.get(at(end.node, end.port))}))).filter(k => k.port);
  keyed(box.querySelector('.marks'), marks, k => k.port.name, newMark, fillMark);
  keyed(box.querySelector('.nodes'), [...m.nodes.values()], n => n.name, newNode, (e, n) => fillNode(e, n, m, selected));
}

function newLink() {
  return svg('a', {tabindex: -1}, svg('line'), svg('line'), svg('line', {class: 'hit'}), svg('title'));
}

function fillLink(e, l, selected) {
  const a = places.get(l.a.node), b = places.get(l.b.node);
  if (!a || !b) return;
  const middle = {x: (a.x + b.x) / 2, y: (a.y + b.y) / 2}, [from, back, hit, title] = e.children;
  const width = load => l.state === 'down' ? 2 : 1.5 + 8 * (load ?? 0);
  const look = load => `${l.state}${load > 0.8 ? ' full' : ''}`;
  set(from, {x1: a.x, y1: a.y, x2: middle.x, y2: middle.y, class: look(l.load[0]), 'stroke-width': width(l.load[0]).toFixed(1)});
  set(back, {x1: b.x, y1: b.y, x2: middle.x, y2: middle.y, class: look(l.load[1]), 'stroke-width': width(l.load[1]).toFixed(1)});
  set(hit, {x1: a.x, y1: a.y, x2: b.x, y2: b.y});
  const text = `${l.name}: ${l.state}, ${rate(l.capacity)}, ${percent(l.load[0])} used from ${l.ends[0]}, ${percent(l.load[1])} from ${l.ends[1]}${l.reason ? ' — ' + l.reason : ''}`;
  say(title, text);
  set(e, {href: to(l.name), class: 'link' + (selected.link === l ? ' chosen' : ''), 'aria-label': text});
}

function newMark() { return svg('g', {}, svg('circle', {class: 'queue'}), svg('path', {class: 'pause'}), svg('path', {class: 'victim'}), svg('title')); }

// fillMark draws a port's queue, its pause and its victim state. The mark is a quarter of the way to another switch,
// because that switch has a mark on the same link. It is half of the way to a host, because the hosts of a leaf are
// close to each other.
function fillMark(e, k) {
  const here = places.get(k.end.node), there = places.get(k.other.node);
  if (!here || !there) return;
  const part = k.other.port ? 0.26 : 0.5, x = here.x + part * (there.x - here.x), y = here.y + part * (there.y - here.y), p = k.port;
  const r = Math.min(16, Math.sqrt(p.queue ?? 0) / 20), [circle, pause, victim, title] = e.children;
  set(circle, {cx: x, cy: y, r: r > 1 ? r.toFixed(1) : 0});
  set(pause, {d: p.paused.length > 0 ? `M${x - 4} ${y - 8}v16M${x + 4} ${y - 8}v16` : null});
  set(victim, {d: p.victim ? `M${x + 12} ${y - 12}l8 13h-16z` : null});
  say(title, `${p.name}: ${bytes(p.queue)} in its queues${p.paused.length > 0 ? `, ${p.peer} is paused in class ${p.paused.join(', ')}` : ''}${p.victim ? ', a victim' : ''}`);
}

function newNode() { return svg('a', {}, svg('rect', {rx: 4, height}), svg('text'), svg('title')); }

function fillNode(e, n, m, selected) {
  const p = places.get(n.name), w = wide(n.name), [rect, text, title] = e.children;
  if (!p) return;
  const state = n.kind === 'host' ? 'host' : n.state.slice(6).toLowerCase();
  set(rect, {x: p.x - w / 2, y: p.y - height / 2, width: w, class: state});
  say(text, shorten(n.name, longest));
  set(text, {x: p.x, y: p.y + 5});
  const sent = m.sent.get(n.name), about = n.kind === 'host' ? `host ${n.ipv4}${sent === undefined ? '' : ', sends ' + rate(sent)}` : `switch, ${state}`;
  say(title, `${n.name}: ${about}`);
  set(e, {href: to(n.name), class: 'node' + (selected.node?.name === n.name ? ' chosen' : ''), 'aria-label': `${n.name}, ${about}`, 'aria-current': selected.node?.name === n.name ? 'true' : null});
}

// drawLegend explains the drawing once.
export function drawLegend() {
  const sample = (text, ...parts) => make('li', {}, svg('svg', {width: 34, height: 16, 'aria-hidden': 'true'}, ...parts), ' ' + text);
  const line = (kind, width) => svg('line', {x1: 1, x2: 33, y1: 8, y2: 8, class: kind, 'stroke-width': width});
  const box = kind => svg('rect', {x: 8, y: 2, width: 18, height: 12, rx: 2, class: kind});
  $('legend').append(
    sample('link, each half as wide as it is loaded from its end', line('up', 4)), sample('more than 80 % used', line('up full', 8)),
    sample('down, or out of service', line('down', 2)), sample('unknown', line('unknown', 2)),
    sample('queues of a port, the area by bytes', svg('circle', {cx: 17, cy: 8, r: 6, class: 'queue'})),
    sample('the peer is paused', svg('path', {d: 'M13 1v14M21 1v14', class: 'pause'})),
    sample('victim: it may have the whole shared pool', svg('path', {d: 'M17 1l8 13h-16z', class: 'victim'})),
    sample('switch ready', box('ready')), sample('degraded, backup or reconciling', box('degraded')), sample('disconnected', box('disconnected')), sample('host', box('host')));
}
