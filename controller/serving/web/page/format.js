// Formats numbers and times for people.
export function scaled(n, unit) {
  if (n === undefined || n === null || Number.isNaN(n)) return '–';
  const prefixes = ['', 'k', 'M', 'G', 'T'];
  let i = 0;
  while (Math.abs(n) >= 999.5 && i < 4) { n /= 1000; i++; }
  return `${+n.toPrecision(3)} ${prefixes[i]}${unit}`;
}
export const bytes = n => scaled(n, 'B');
export const rate = n => scaled(n, 'b/s');
export const perSecond = n => scaled(n, '/s');
export const percent = n => n === undefined || Number.isNaN(n) ? '–' : `${n > 0 && n < 0.0095 ? (100 * n).toFixed(1) : Math.round(100 * n)} %`;
export const plain = n => n === undefined || Number.isNaN(n) ? '–' : String(+n.toPrecision(4));

// duration formats a time in nanoseconds.
export function duration(ns) {
  if (!ns) return '–';
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) if (ns >= size) return `${+(ns / size).toPrecision(3)} ${unit}`;
  return `${ns} ns`;
}

const two = n => String(n).padStart(2, '0');
export function clock(t) { const d = new Date(t); return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`; }
export function moment(t) { const d = new Date(t); return d.toDateString() === new Date().toDateString() ? clock(t) : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(t)}`; }

// word returns the last word of an enum value, in lower case.
export const word = s => s.slice(s.indexOf('_') + 1).toLowerCase();
export const count = (n, what, more = what + 's') => `${n} ${n === 1 ? what : more}`;
export const shorten = (s, n) => s.length <= n ? s : s.slice(0, n - 1) + '…';
