// The page asks the controller for the fabric's state every second and for samples every two seconds. It shows the
// object that the address names behind #. It only reads.
import {$, say, set} from './dom.js';
import {clock} from './format.js';
import {Model} from './model.js';
import {drawLegend, drawMap} from './map.js';
import {Series, drawCharts} from './charts.js';
import {drawApply, drawDetail, requestsOf} from './detail.js';
import {drawEvents, drawFlows, drawFound, drawHistory, find, sharesOf} from './lists.js';

let m = null, series = null, history = [], shares = new Map(), generation = null, ticks = 0;

class Refused extends Error {}

async function ask(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(5000)});
  if (answer.ok) return answer.json();
  const why = (await answer.text()).trim() || answer.statusText;
  throw answer.status === 401 || answer.status === 403 ? new Refused(why) : new Error(why);
}

const address = () => { try { return decodeURIComponent(location.hash.slice(1)); } catch { return location.hash.slice(1); } };

// show redraws everything that depends on the state and on the chosen object.
function show() {
  const chosen = m.resolve(address());
  say($('name'), m.name);
  document.title = m.name ? `${m.name} – Headgate` : 'Headgate';
  drawMap(m, chosen);
  drawDetail(m, chosen);
  drawApply(chosen, ask).catch(complain);
  drawFlows(m, shares);
  drawEvents(m, address());
  drawFound(m);
  const requests = requestsOf(chosen);
  if (JSON.stringify(series?.requests) !== JSON.stringify(requests)) { series = new Series(requests); sample(); }
}

// sample reads the samples that the plots and the flows' shares do not have yet.
async function sample() {
  const own = series;
  try {
    if (own.requests.length > 0 && !own.reading) {
      own.reading = true;
      await own.read(ask).finally(() => { own.reading = false; });
    }
    if (own === series) drawCharts(series, m);
    const recent = await ask('api/series?request=' + encodeURIComponent(JSON.stringify({busiest: 200, after: new Date(m.time - 5000).toISOString()})));
    shares = sharesOf(recent);
    if (m.generation !== generation) {
      history = (await ask('api/history')).configs;
      generation = m.generation;
    }
    drawHistory(history, m.generation);
  } catch (e) { complain(e); }
}

// complain reports that the controller does not answer, or asks an unknown user to log in.
function complain(e) {
  if (e instanceof Refused) { login(e.message); return; }
  set($('summary'), {class: 'stale'});
  say($('summary'), `No answer from the controller (${e.message}): what is shown may be old.`);
}

async function login(why) {
  if (!$('login').hidden) return;
  $('fabric-parts').hidden = true;
  $('login').hidden = false;
  say($('summary'), '');
  say($('refusal'), why);
  const ways = await (await fetch('login')).json();
  $('token-form').hidden = !ways.token;
  $('oidc').hidden = !ways.oidc;
  say($('no-login'), ways.token ? '' : 'A browser can log in where the controller serves this page over TLS.');
  if (ways.token) $('token').focus();
}

async function tick() {
  try {
    const state = await ask('api/fabric');
    m = new Model(state);
    $('login').hidden = true;
    $('fabric-parts').hidden = false;
    set($('summary'), {class: null});
    say($('summary'), m.summary());
    say($('clock'), clock(m.time));
    show();
    if (ticks++ % 2 === 1) sample();
  } catch (e) { complain(e); }
  setTimeout(tick, document.hidden ? 5000 : 1000);
}

// chose shows the object that the address names. It moves the focus there if the keyboard or a tap made
// the choice.
function chose() {
  if (!m) return;
  $('search').value = '';
  show();
  if (address() === '') return;
  $('title').focus({preventScroll: true});
  $('detail').scrollIntoView({block: 'nearest'});
}

window.addEventListener('hashchange', chose);
window.addEventListener('resize', () => m && (show(), drawCharts(series, m)));
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => m && drawCharts(series, m));
for (const id of ['severity', 'mine']) $(id).addEventListener('change', () => m && drawEvents(m, address()));
$('filter').addEventListener('input', () => m && drawEvents(m, address()));
$('known').addEventListener('toggle', () => m && show());

$('skip').addEventListener('click', e => { e.preventDefault(); $('flows-title').focus(); });
$('search').addEventListener('input', () => m && drawFound(m));
$('searching').addEventListener('focusin', () => m && drawFound(m));
$('searching').addEventListener('focusout', () => setTimeout(() => m && drawFound(m)));
$('searching').addEventListener('keydown', e => {
  const links = [...$('found').querySelectorAll('a[href]')], i = links.indexOf(document.activeElement);
  if (e.key === 'Escape') { $('search').value = ''; $('search').focus(); drawFound(m); }
  else if (e.key === 'Enter' && document.activeElement === $('search')) { const [first] = find(m, $('search').value); if (first) location.hash = first.href; }
  else if (e.key === 'ArrowDown' && links.length > 0) links[Math.min(i + 1, links.length - 1)].focus();
  else if (e.key === 'ArrowUp' && i >= 0) (links[i - 1] ?? $('search')).focus();
  else return;
  e.preventDefault();
});
document.addEventListener('keydown', e => {
  if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || e.target.matches('input, select, textarea')) return;
  $('search').focus();
  e.preventDefault();
});

$('token-form').addEventListener('submit', async e => {
  e.preventDefault();
  const answer = await fetch('login', {method: 'POST', body: new URLSearchParams({token: $('token').value})});
  if (!answer.ok) { say($('refusal'), (await answer.text()).trim()); $('token').select(); return; }
  $('token').value = '';
  $('logout').hidden = false;
  location.reload();
});
$('logout').addEventListener('click', async () => { await fetch('logout', {method: 'POST'}); location.reload(); });

drawLegend();
fetch('login').then(r => r.json()).then(ways => { $('logout').hidden = !ways.inside; }).catch(() => {});
tick();
