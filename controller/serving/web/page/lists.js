// The lists below the drawing: flows by host, events and applied configurations; and the search over all
// of them.
import {$, keyed, make, pieces, rows, say, set} from './dom.js';
import {clock, count, moment, percent, plain, rate, word} from './format.js';
import {keyOf, to} from './model.js';
import {number} from './detail.js';

const mostFlows = 200;

// drawFlows lists flows by the host that reports them, with their shares in the last sample, by key.
export function drawFlows(m, shares) {
  const table = $('flow-table'), shown = m.flows.slice(0, mostFlows), hosts = [...new Set(shown.map(f => f.host))];
  $('no-flows').hidden = m.flows.length > 0;
  table.hidden = m.flows.length === 0;
  say($('more-flows'), m.flows.length > mostFlows ? `${m.flows.length - mostFlows} more flows are found by the search.` : '');
  const head = table.tHead;
  keyed(table, [null, ...hosts], h => h === null ? 'head' : h, () => make('tbody'), (body, host) => {
    if (body === head) return;
    const own = shown.filter(f => f.host === host), link = m.linkOf(host);
    rows(body, [{heading: true}, ...own], f => f.heading ? 'heading' : f.key, f => f.heading ? [] : [
      {text: f.name, href: f.href, head: true}, number(rate(f.rate)), number(rate(shares.get(f.key))), number(of(f.rate, shares.get(f.key))), number(plain(f.weight)), f.law || '–', f.report.application || 'default']);
    const first = body.firstElementChild;
    if (!first.firstElementChild) first.append(make('th', {colspan: 7, scope: 'rowgroup'}));
    pieces(first.firstElementChild, [{text: host, href: to(host)}, {text: ` sends ${rate(m.sent.get(host))}${link ? ` of ${rate(link.capacity)}` : ''} in ${count(own.length, 'flow')}`}]);
  });
}

const of = (rate, share) => share > 0 ? percent(rate / share) : '–';

// sharesOf returns each flow's last known share in an answer of GetSeries.
export function sharesOf(series) {
  return new Map(series.flows.map(f => [keyOf(f.flow), Number(f.share_bps.at(-1) ?? NaN)]));
}

const severities = {info: 1, warning: 2, error: 3};

export function drawEvents(m, chosenName) {
  const least = Number($('severity').value), text = $('filter').value.trim().toLowerCase(), mine = $('mine').checked && chosenName;
  const list = m.events.map(e => ({...e, key: `${e.time} ${e.subject} ${e.kind} ${e.message}`, severity: word(e.severity)}))
    .filter(e => severities[e.severity] >= least && (!text || `${e.subject} ${e.kind} ${e.message}`.toLowerCase().includes(text)) &&
      (!mine || [e.subject, `${e.subject}:${e.port}`].includes(chosenName) || e.message.includes(chosenName) || e.subject.includes(chosenName))).reverse();
  rows($('event-rows'), list, e => e.key, e => [
    {text: clock(e.time), className: 'time'}, {text: e.severity, className: e.severity}, {parts: m.subject(e)}, e.kind, {parts: m.linked(e.message)}]);
  say($('no-events'), list.length > 0 ? '' : m.events.length > 0 ? `None of ${count(m.events.length, 'event')} fits the filter.` : 'Nothing has happened yet.');
}

export function drawHistory(list, now) {
  rows($('history-rows'), [...list].reverse(), c => c.generation, c => [
    {text: `generation ${c.generation}${c.generation === now ? ', in force' : ''}`, href: to('apply/' + c.generation), head: true}, {text: moment(c.applied), className: 'time'}, c.by, c.file,
    c.confirm_until ? `waits for confirmation until ${clock(c.confirm_until)}` : c.why]);
  say($('no-history'), list.length > 0 ? '' : 'Nothing was applied yet.');
}

const mostFound = 12;

// find lists the objects whose names contain a text.
export function find(m, text) {
  const t = text.trim().toLowerCase();
  if (!t) return [];
  const has = s => s && s.toLowerCase().includes(t);
  const nodes = [...m.nodes.values()].filter(n => has(n.name) || has(n.ipv4) || has(n.ipv6) || has(n.address)).map(n => ({text: n.name, kind: n.kind, href: to(n.name)}));
  const flows = m.flows.filter(f => has(f.name) || has(f.key) || has(f.law) || has(f.report.application)).map(f => ({text: f.name, kind: 'flow', href: f.href}));
  const ports = [...m.ports.values()].filter(p => has(p.name)).map(p => ({text: `${p.name} to ${p.peer}`, kind: 'port', href: to(p.name)}));
  const links = m.links.filter(l => has(l.name)).map(l => ({text: l.ends.join(' – '), kind: 'link', href: to(l.name)}));
  const exact = x => x.text.toLowerCase() === t ? 0 : x.text.toLowerCase().startsWith(t) ? 1 : 2;
  return [...nodes, ...flows, ...ports, ...links].map((x, i) => ({x, i})).sort((a, b) => exact(a.x) - exact(b.x) || a.i - b.i).map(a => a.x).slice(0, mostFound);
}

// drawFound shows the results of the search and their number.
export function drawFound(m) {
  const text = $('search').value, list = find(m, text), open = text.trim() !== '' && $('searching').contains(document.activeElement);
  $('found').hidden = !open;
  set($('search'), {'aria-expanded': open ? 'true' : 'false'});
  if (!open) return;
  keyed($('found'), list.length > 0 ? list : [{text: 'nothing has this in its name', kind: '', href: null}], x => x.href, () => make('li', {}, make('a', {}, make('span'), make('small'))), (e, x) => {
    set(e.firstElementChild, {href: x.href});
    say(e.firstElementChild.children[0], x.text);
    say(e.firstElementChild.children[1], x.kind);
  });
}
