// The panel of the chosen object: a switch, a port, a host, a link, a flow or an applied configuration.
import {$, keyed, make, pieces, rows, say, table} from './dom.js';
import {bytes, duration, moment, percent, perSecond, plain, rate} from './format.js';
import {to} from './model.js';

// requestsOf returns the series to ask for, given the chosen object.
export function requestsOf(chosen) {
  switch (chosen.kind) {
    case 'switch': return [{node: chosen.node.name, busiest: 64}];
    case 'host': return [{node: chosen.node.name, busiest: 16}];
    case 'port': return [{node: chosen.port.node, port: chosen.port.port}];
    case 'link': return [chosen.link.a, chosen.link.b].filter(e => e.port).map(e => ({node: e.node, port: e.port}));
    case 'flow': {
      const end = e => { const i = e.lastIndexOf(':'); return [e.slice(0, i).replace(/[[\]]/g, ''), Number(e.slice(i + 1))]; };
      const [[src_ipv4, src_port], [dst_ipv4, dst_port]] = chosen.key.split(',').map(end);
      return [{flow: {src_ipv4, dst_ipv4, src_port, dst_port}}];
    }
    case 'apply': return [];
  }
  return [{busiest: 8}];
}

const titles = {none: () => 'The busiest ports and flows', gone: c => c.name, switch: c => c.node.name, host: c => c.node.name, port: c => c.port.name,
  link: c => c.link.ends.join(' – '), flow: c => c.flow?.name ?? c.key, apply: c => `Generation ${c.generation}`};

export function drawDetail(m, chosen) {
  say($('title'), titles[chosen.kind](chosen));
  const facts = factsOf(m, chosen);
  keyed($('facts'), facts, f => f[0], () => make('div', {}, make('dt'), make('dd')), (e, [name, value]) => {
    say(e.children[0], name);
    if (Array.isArray(value)) pieces(e.children[1], value); else say(e.children[1], String(value));
  });
  keyed($('tables'), tablesOf(m, chosen), t => t.title, t => make('section', {}, make('h3'), make('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': t.title}, table(t.title, t.heads))), fillTable);
  drawKnown(chosen);
}

function fillTable(e, t) {
  say(e.children[0], t.title);
  rows(e.querySelector('tbody'), t.items, t.key, t.cells);
}

function factsOf(m, c) {
  switch (c.kind) {
    case 'gone': return [['Not here', 'The fabric has nothing of this name now.']];
    case 'switch': return [['State', `${c.node.state.slice(6).toLowerCase()} since ${moment(c.node.since)}${c.node.error ? ' — ' + c.node.error : ''}`], ['Address', c.node.address], ['Entries', c.node.entries]];
    case 'host': {
      const sent = m.sent.get(c.node.name);
      return [['Addresses', [c.node.ipv4, c.node.ipv6].filter(Boolean).join(', ')], ['Sends', sent === undefined ? 'it reports nothing' : rate(sent)]];
    }
    case 'port': {
      const p = c.port, link = m.linkOf(p.node, p.port);
      return [['Switch', [{text: p.node, href: to(p.node)}]], ['Leads to', [{text: p.peer, href: to(p.peer)}]], ['State', p.state + (p.reason ? ': ' + p.reason : '')], ['Rate', loadOf(p, link)],
        ['Queues', bytes(p.queue)], ['Told not to send', p.paused.length > 0 ? `class ${p.paused.join(', ')}` : 'nothing'], ...(p.victim ? [['Victim', 'yes']] : []), ...(p.storm ? [['PFC storm', 'yes']] : []), ...(link ? [['Link', [{text: link.name, href: to(link.name)}]]] : [])];
    }
    case 'link': return [['State', c.link.state + (c.link.reason ? ': ' + c.link.reason : '')], ['Capacity', rate(c.link.capacity)],
      ...c.link.ends.map((e, i) => [`Used from ${e}`, percent(c.link.load[i])])];
    case 'flow': {
      if (!c.flow) return [['Over', 'No host reports the flow now. What is kept of it is below.']];
      const f = c.flow, r = f.report;
      return [['From', [{text: f.from, href: to(f.from)}]], ['To', [{text: f.to, href: to(f.to)}]], ['Law', f.law || 'not said'], ['Weight', plain(f.weight)], ['Application', r.application || 'default'],
        ['Rate', rate(f.rate)], ['Round trip', duration(1e9 * (parseFloat(r.rtt) || 0))], ['Largest queueing delay', duration(1e9 * (parseFloat(r.max_qd) || 0))], ['Sent again', r.retransmits], ['Acknowledged', bytes(Number(r.acked_bytes))]];
    }
  }
  return [];
}

const loadOf = (p, link) => p.rate === undefined ? 'not known' : `${rate(p.rate)}${link ? ` · ${percent(p.rate / link.capacity)} of ${rate(link.capacity)}` : ''}`;

function tablesOf(m, c) {
  const ports = {switch: () => [...m.ports.values()].filter(p => p.node === c.node.name), host: () => [...m.ports.values()].filter(p => p.peer === c.node.name),
    link: () => c.link.ends.map(e => m.ports.get(e)).filter(Boolean), port: () => [c.port]}[c.kind]?.() ?? [];
  const flows = c.kind === 'host' ? m.flows.filter(f => f.from === c.node.name || f.to === c.node.name) : [];
  const list = [];
  if (ports.length > 0 && c.kind !== 'port') list.push({title: 'Ports', heads: ['Port', 'To', 'State', '#Rate', '#Used', '#Queues', 'Paused', '#CNPs'], items: ports, key: p => p.name, cells: p => {
    const link = m.linkOf(p.node, p.port);
    return [{text: p.name, href: to(p.name), head: true}, {text: p.peer, href: to(p.peer)}, {text: p.state, className: p.state}, number(rate(p.rate)), number(link && p.rate !== undefined ? percent(p.rate / link.capacity) : '–'), number(bytes(p.queue)),
      {text: p.paused.length > 0 ? `class ${p.paused.join(', ')}` : '', className: 'bad'}, number(p.cnps === undefined || Number.isNaN(p.cnps) ? '–' : perSecond(p.cnps))];
  }});
  const queues = ports.flatMap(p => p.queues.map(q => ({...q, port: p})));
  if (queues.length > 0) list.push({title: 'Queues that hold something', heads: ['Port', 'To', 'Queue', '#Holds'], items: queues, key: q => `${q.port.name} ${q.queue}`,
    cells: q => [{text: q.port.name, href: to(q.port.name), head: true}, {text: q.port.peer, href: to(q.port.peer)}, q.queue, number(bytes(q.held))]});
  const classes = ports.flatMap(p => p.classes.map(k => ({...k, at: p})));
  if (classes.length > 0) list.push({title: 'Classes that hold buffer, or are paused', heads: ['Port', 'From', 'Class', 'Paused', '#Private', '#Shared', '#Headroom', '#Lossless drops'], items: classes, key: k => `${k.at.name} ${k.class}`,
    cells: k => [{text: k.at.name, href: to(k.at.name), head: true}, {text: k.at.peer, href: to(k.at.peer)}, k.class, {text: k.paused ? 'yes' : '', className: 'bad'}, number(bytes(Number(k.private_bytes))), number(bytes(Number(k.shared_bytes))), number(bytes(Number(k.headroom_bytes))), number(k.lossless_drops ?? '–')]});
  if (flows.length > 0) list.push({title: 'Flows from it and to it', heads: ['Flow', 'Law', '#Weight', '#Rate'], items: flows, key: f => f.key, cells: f => [{text: f.name, href: f.href, head: true}, f.law || '–', number(plain(f.weight)), number(rate(f.rate))]});
  return list;
}

export const number = text => ({text, className: 'number'});

// drawKnown shows all tables of a switch's features, without empty rows.
function drawKnown(chosen) {
  const box = $('known'), status = chosen.kind === 'switch' ? chosen.node.status : [];
  box.hidden = status.length === 0;
  if (!box.open || box.hidden) return;
  const nothing = v => !v.shown || (v.truth === false) || ['count', 'bytes', 'ns', 'number'].some(k => v[k] !== undefined && Number(v[k]) === 0);
  const list = status.map(t => ({...t, rows: t.rows.filter(r => r.values.length === 0 || !r.values.every(nothing))})).filter(t => t.rows.length > 0);
  keyed($('features'), list, t => `${t.feature} ${t.name}`, t => make('section', {}, make('h3', {}, `${t.feature} ${t.name}`), make('div', {class: 'scroll', tabindex: 0, role: 'group', 'aria-label': `${t.feature} ${t.name}`},
    table(`${t.feature} ${t.name}`, [...t.keys, ...t.columns.map(c => c.head.toLowerCase())]))), (e, t) => rows(e.querySelector('tbody'), t.rows, r => r.keys.join(' ') || '-', r => [...r.keys, ...r.values.map(v => v.text === undefined ? number(v.shown) : v.shown)]));
}

// drawApply shows what a configuration changed against its predecessor.
export async function drawApply(chosen, ask) {
  const box = $('diff'), generation = chosen.kind === 'apply' ? chosen.generation : '';
  if (box.dataset.generation === generation) return;
  box.dataset.generation = generation;
  box.replaceChildren();
  if (generation === '') return;
  const list = (await ask('api/history')).configs, i = list.findIndex(c => c.generation === generation);
  if (i < 0) { box.append(make('p', {}, 'The history does not have this generation any more.')); return; }
  const text = async g => (await ask('api/history?request=' + encodeURIComponent(JSON.stringify({generation: g})))).configs[0].config.split('\n');
  const now = await text(generation), was = i > 0 ? await text(list[i - 1].generation) : [];
  if (box.dataset.generation !== generation) return;
  const changes = i > 0 ? hunks(diff(was, now)) : now.map(line => ({kind: ' ', line}));
  box.append(make('p', {}, `Applied ${moment(list[i].applied)} by ${list[i].by || 'nobody named'} from ${list[i].file}${list[i].why ? ': ' + list[i].why : ''}. ` +
    (i === 0 ? 'It is the first of the history.' : changes.length > 0 ? `Against generation ${list[i - 1].generation}:` : `The text is that of generation ${list[i - 1].generation}.`)));
  const pre = make('pre', {tabindex: 0, 'aria-label': 'changes'});
  for (const c of changes) pre.append(make(c.kind === '+' ? 'ins' : c.kind === '-' ? 'del' : 'span', {}, `${c.kind} ${c.line}\n`));
  box.append(pre);
}

// diff compares lists of lines by their longest common subsequence, after it has skipped the equal lines at both ends.
// If too many lines differ for that, it shows all old lines as removed and all new lines as added.
export function diff(a, b) {
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end), same = line => ({kind: ' ', line});
  const middle = [];
  if (x.length * y.length > 4e6) middle.push(...x.map(line => ({kind: '-', line})), ...y.map(line => ({kind: '+', line})));
  else {
    const long = Array.from({length: x.length + 1}, () => new Uint16Array(y.length + 1));
    for (let i = x.length - 1; i >= 0; i--) for (let j = y.length - 1; j >= 0; j--) long[i][j] = x[i] === y[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
    for (let i = 0, j = 0; i < x.length || j < y.length;) {
      if (i < x.length && j < y.length && x[i] === y[j]) { middle.push(same(x[i])); i++; j++; }
      else if (i < x.length && (j === y.length || long[i + 1][j] >= long[i][j + 1])) middle.push({kind: '-', line: x[i++]});
      else middle.push({kind: '+', line: y[j++]});
    }
  }
  return [...a.slice(0, start).map(same), ...middle, ...a.slice(a.length - end).map(same)];
}

// hunks leaves out lines that are more than three lines from a change.
function hunks(list) {
  const near = list.map((_, i) => list.slice(Math.max(0, i - 3), i + 4).some(c => c.kind !== ' '));
  return list.flatMap((c, i) => near[i] ? [c] : near[i - 1] || (i === 0 && near.some(Boolean)) ? [{kind: ' ', line: '⋯'}] : []);
}
