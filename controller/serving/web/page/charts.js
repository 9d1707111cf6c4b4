// Plots of what /api/series returns: the last ten minutes of ports and flows.
import {$, keyed, make, say, set} from './dom.js';
import {bytes, clock, percent, perSecond, rate} from './format.js';
import {at, keyOf, to} from './model.js';

const span = 600;   // s
const most = 8;     // lines in a plot
const height = 150; // px
const dashes = [[], [], [], [], [6, 3], [6, 3], [6, 3], [6, 3]];

// plots are the plots of ports and of flows.
const plots = [
  {id: 'rate', title: 'Rate', of: 'ports', field: 'rate_bps', show: rate, none: 'nothing left these ports'},
  {id: 'queue', title: 'Queues', of: 'ports', field: 'queue_bytes', show: bytes, none: 'the queues were empty'},
  {id: 'pause', title: 'Paused time', of: 'ports', field: 'pause_share', show: percent, none: 'no peer was paused'},
  {id: 'cnps', title: 'CNPs', of: 'ports', field: 'cnps_per_s', show: perSecond, none: 'no congestion notification was sent'},
  {id: 'flows', title: 'Flows’ rates, and dashed what their weights give them', of: 'flows', field: 'rate_bps', beside: 'share_bps', show: rate, none: 'no flow was reported'},
];

// Series holds the samples received so far for one set of requests.
export class Series {
  constructor(requests) { this.requests = requests; this.clear(); }

  clear() { this.times = []; this.last = ''; this.ports = new Map(); this.flows = new Map(); }

  // read asks for new samples. When a new port or flow appears, it asks for all samples again.
  async read(ask) {
    const fresh = this.last === '';
    const answers = await Promise.all(this.requests.map(r => ask('api/series?request=' + encodeURIComponent(JSON.stringify(fresh ? r : {...r, after: this.last})))));
    const [first] = answers, known = (list, map, key) => list.every(s => map.has(key(s)));
    if (!fresh && !answers.every(a => known(a.ports, this.ports, portKey) && known(a.flows, this.flows, flowKey))) {
      this.clear();
      return this.read(ask);
    }
    if (first.times.length === 0) return this;
    for (const a of answers) {
      this.add(this.ports, a.ports, portKey, portFields);
      this.add(this.flows, a.flows, flowKey, flowFields);
    }
    this.times.push(...first.times.map(t => Date.parse(t) / 1000));
    for (const v of this.values()) while (v.length < this.times.length) v.push(null);
    this.last = first.times.at(-1);
    const old = this.times.findIndex(t => t >= this.times.at(-1) - span);
    if (old > 0) {
      this.times.splice(0, old);
      for (const v of this.values()) v.splice(0, old);
    }
    return this;
  }

  // add appends the new values of a list; unknown values are null.
  add(map, list, key, fields) {
    for (const s of list) {
      const k = key(s), values = map.get(k)?.values ?? Object.fromEntries(fields.map(f => [f, this.times.map(() => null)]));
      for (const f of fields) values[f].push(...s[f].map(v => Number.isNaN(Number(v)) ? null : Number(v)));
      map.set(k, {...s, key: k, values});
    }
  }

  values() { return [...this.ports.values(), ...this.flows.values()].flatMap(s => Object.values(s.values)); }
}

const portFields = ['rate_bps', 'queue_bytes', 'pause_share', 'cnps_per_s'], flowFields = ['rate_bps', 'share_bps'];
const portKey = p => at(p.switch, p.port), flowKey = f => keyOf(f.flow);
const drawn = new Map(); // charts by the id of their plot

// colours come from the page's style sheet, which has other colours for the dark mode.
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function drawCharts(series, m) {
  const shown = plots.map(p => ({...p, lines: linesOf(p, series, m)})).filter(p => series[p.of].size > 0);
  keyed($('charts'), shown, p => p.id, newFigure, (e, p) => fillFigure(e, p, series));
  for (const [id, c] of drawn) if (!c.figure.isConnected) { c.plot?.destroy(); drawn.delete(id); }
}

// linesOf returns the busiest series of a plot that have visible values.
function linesOf(p, series, m) {
  const weight = v => v.reduce((n, x) => n + (x ?? 0), 0);
  const list = [...series[p.of].values()].map(s => ({key: s.key, values: s.values[p.field], beside: p.beside && s.values[p.beside], sum: weight(s.values[p.field]), ...named(p.of, s, m)}));
  const least = Math.max(0, ...list.map(l => l.sum)) / 200; // smaller sums are invisible beside the largest
  return list.filter(l => l.sum > least).sort((a, b) => b.sum - a.sum).slice(0, most).sort((a, b) => a.text.localeCompare(b.text, 'en', {numeric: true}));
}

function named(of, s, m) {
  if (of === 'ports') return {text: `${s.key} to ${s.peer}`, href: to(s.key)};
  const name = ip => m.address.get(ip) ?? ip;
  return {text: `${name(s.flow.src_ipv4)}:${s.flow.src_port} → ${name(s.flow.dst_ipv4)}:${s.flow.dst_port}`, href: to('flow/' + s.key)};
}

function newFigure(p) {
  const figure = make('figure', {class: p.id}, make('h3', {}, p.title), make('div', {class: 'plot', role: 'img'}), make('ul', {class: 'key'}), make('p', {class: 'empty'}));
  drawn.set(p.id, {figure, plot: null, lines: ''});
  return figure;
}

function fillFigure(figure, p, series) {
  const c = drawn.get(p.id), [, box, key, empty] = figure.children;
  c.figure = figure;
  const any = p.lines.length > 0 && series.times.length > 1;
  box.hidden = !any;
  say(empty, any ? '' : series.times.length > 1 ? `Within ten minutes ${p.none}.` : 'The first samples come within four seconds.');
  const lines = JSON.stringify([p.lines.map(l => l.key), colour('--text'), !!any]);
  if (lines !== c.lines) {
    c.plot?.destroy();
    c.plot = any ? newPlot(box, p, c) : null;
    c.lines = lines;
  }
  c.shown = p.lines;
  if (c.plot) {
    if (c.plot.width !== box.clientWidth && box.clientWidth > 0) c.plot.setSize({width: box.clientWidth, height});
    c.plot.setData([series.times, ...p.lines.flatMap(l => p.beside ? [l.values, l.beside] : [l.values])]);
  }
  fillKey(key, p, c);
  set(box, {'aria-label': any ? `${p.title} over ${Math.round(series.times.at(-1) - series.times[0])} s; now ` + p.lines.map(l => `${l.text} ${p.show(last(l.values))}`).join(', ') : p.title});
}

const last = values => values.findLast(v => v !== null) ?? NaN;

// fillKey names the lines of the plot, each with its value at the pointer, or its newest value.
function fillKey(list, p, c) {
  const i = c.plot?.cursor?.idx;
  keyed(list, p.lines, l => l.key, () => make('li', {}, make('span', {class: 'line'}), make('a'), make('b')), (e, l) => {
    const [mark, link, value] = e.children, n = p.lines.indexOf(l);
    mark.style.borderTop = `3px ${n < 4 ? 'solid' : 'dashed'} ${colour('--line' + n % 4)}`;
    say(set(link, {href: l.href}), l.text);
    const of = v => p.show(i === null || i === undefined ? last(v) : v[i] ?? NaN);
    say(value, l.beside ? `${of(l.values)} of ${of(l.beside)}` : of(l.values));
  });
}

function newPlot(box, p, c) {
  const line = (n, dash, width) => ({stroke: colour('--line' + n % 4), width, dash, points: {show: false}, spanGaps: false});
  const series = p.lines.flatMap((l, n) => p.beside ? [line(n, dashes[n], 2), line(n, [3, 4], 1)] : [line(n, dashes[n], 2)]);
  const axis = {stroke: colour('--text'), grid: {stroke: colour('--grid'), width: 1}, ticks: {stroke: colour('--grid'), width: 1}, font: '12px system-ui, sans-serif'};
  return new uPlot({
    width: box.clientWidth || 300, height, legend: {show: false}, padding: [8, 30, 0, 0],
    cursor: {sync: {key: 'time'}, y: false, drag: {x: false, y: false}, points: {size: 6}},
    scales: {x: {range: (u, min, max) => [Math.max(max - span, Math.min(min, max - 60)), max]}, y: {range: (u, min, max) => [0, max > 0 ? max * 1.08 : 1]}},
    axes: [{...axis, values: (u, list) => list.map(t => clock(t * 1000)), space: 80, size: 28}, {...axis, values: (u, list) => list.map(v => p.show(v)), size: 74, space: 26}],
    series: [{}, ...series],
    hooks: {setCursor: [() => c.shown && fillKey(c.figure.querySelector('.key'), {...p, lines: c.shown}, c)]},
  }, [[], ...series.map(() => [])], box);
}
