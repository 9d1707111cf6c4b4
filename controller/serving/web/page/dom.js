// Elements are created once and changed in place, so that focus, scroll position and a screen reader's position stay.
// Values are set only as text, never as HTML.
export const $ = id => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';

// make returns a new HTML element; svg returns a new SVG element.
export function make(name, attributes = {}, ...children) { return dress(document.createElement(name), attributes, children); }
export function svg(name, attributes = {}, ...children) { return dress(document.createElementNS(SVG, name), attributes, children); }

function dress(e, attributes, children) {
  set(e, attributes);
  e.append(...children);
  return e;
}

// set changes only the attributes of an element whose values differ; null removes one.
export function set(e, attributes) {
  for (const [k, v] of Object.entries(attributes)) {
    if (v === null || v === undefined) e.removeAttribute(k);
    else if (e.getAttribute(k) !== String(v)) e.setAttribute(k, v);
  }
  return e;
}

// say sets an element's text if it differs.
export function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
  return e;
}

// keyed makes the children of parent match a list: create makes the element of a new key, fill shows an item. The
// focused element is not moved. If it is removed, the heading of its section gets the focus.
export function keyed(parent, items, key, create, fill) {
  const old = new Map([...parent.children].map(e => [e.dataset.key, e]));
  let next = parent.firstElementChild;
  const wanted = new Set(items.map(i => String(key(i)))), seen = new Set();
  for (const item of items) {
    const k = String(key(item));
    if (seen.has(k)) continue;
    seen.add(k);
    let e = old.get(k);
    if (!e) { e = create(item); e.dataset.key = k; }
    while (next && next !== e && !wanted.has(next.dataset.key)) next = drop(next);
    if (next === e) next = next.nextElementSibling;
    else if (!e.parentNode || !e.contains(document.activeElement)) parent.insertBefore(e, next);
    fill(e, item);
  }
  for (const [k, e] of old) if (!wanted.has(k)) drop(e);
}

// drop removes an element and returns the next one.
export function drop(e) {
  const next = e.nextElementSibling;
  const heading = e.contains(document.activeElement) && e.closest('section')?.querySelector('h2');
  e.remove();
  if (heading) { heading.tabIndex = -1; heading.focus({preventScroll: true}); }
  return next;
}

// rows shows a list as rows of a table's body. Each cell is a text, or {text, href, className}.
export function rows(body, items, key, cells) {
  keyed(body, items, key, () => make('tr'), (tr, item) => cellsOf(tr, cells(item)));
}

export function cellsOf(tr, list) {
  while (tr.children.length > list.length) tr.lastElementChild.remove();
  list.forEach((c, i) => {
    const {text, href, className, parts, head} = typeof c === 'object' && c !== null ? c : {text: c ?? ''};
    let td = tr.children[i];
    if (!td) { td = make(head ? 'th' : 'td', head ? {scope: 'row'} : {}); tr.append(td); }
    set(td, {class: className ?? null});
    if (parts) pieces(td, parts);
    else if (href) pieces(td, [{text, href}]);
    else say(td, String(text));
  });
}

// pieces shows texts and links in a row.
export function pieces(e, list) {
  const now = [...e.childNodes];
  const same = now.length === list.length && list.every((p, i) => (p.href ? now[i].nodeName === 'A' && now[i].getAttribute('href') === p.href : now[i].nodeName === '#text'));
  if (!same) { e.replaceChildren(...list.map(p => p.href ? make('a', {href: p.href}, p.text) : document.createTextNode(p.text ?? p))); return; }
  list.forEach((p, i) => { const text = String(p.text ?? p); if (now[i].textContent !== text) now[i].textContent = text; });
}

// table returns a table with a heading for each column; its body is the last child.
export function table(label, heads) {
  const head = make('tr', {}, ...heads.map(h => make('th', {scope: 'col', class: h.startsWith('#') ? 'number' : null}, h.replace(/^#/, ''))));
  return make('table', {'aria-label': label}, make('thead', {}, head), make('tbody'));
}
