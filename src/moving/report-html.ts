// The report of `gatehouse move check` as one HTML file for a colleague: no scripts, nothing loaded from elsewhere.
import type { AssessedObject } from './assess.ts';
import type { TaskGroup } from './elsewhere.ts';
import { called, type Note, notesOf, type Report, valuesOf } from './report.ts';
import { VERDICTS, type Verdict } from './verdicts/verdict.ts';

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
/** Escapes a text for HTML, in and outside of attributes: names in an export are a stranger's. */
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => ESCAPES[sign] ?? sign);

const CLASS: Readonly<Record<Verdict, string>> = {
  'not in force': 'absent',
  'needs a value': 'needs',
  'in force, differently': 'differs',
  'in force': 'here',
};

const STYLE = `
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#18202c;--soft:#5a6675;--line:#dde2e8;--link:#1d4fb8;
--absent:#a3261b;--absent-bg:#fbe6e3;--needs:#855000;--needs-bg:#fdf0d5;--differs:#2b4fae;--differs-bg:#e5ecfb;--here:#1b6b3a;--here-bg:#e0f3e7}
@media (prefers-color-scheme:dark){:root{--page:#0e131b;--card:#171e29;--ink:#e8edf4;--soft:#a2aebd;--line:#2b3644;--link:#8fb2ff;
--absent:#ffa79d;--absent-bg:#44201c;--needs:#f5c66b;--needs-bg:#3d2e10;--differs:#a9c2ff;--differs-bg:#1d2b4e;--here:#8fdcae;--here-bg:#163524}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
main{max-width:64rem;margin:0 auto;padding:2rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.15rem;margin:0;display:inline}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.3rem 0}
section{margin-top:1.4rem}
summary{cursor:pointer;padding:.4rem 0}
section>details>:not(summary){margin-top:.3rem}
.soft{color:var(--soft)}
.counts{display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:.75rem;margin:1.4rem 0 0;padding:0;list-style:none}
.counts li{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.8rem 1rem}
.counts .badge{white-space:normal}
.counts b{display:block;font-size:1.9rem;line-height:1.1;font-variant-numeric:tabular-nums}
.card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;overflow:hidden}
.card>*{padding:.8rem 1rem}
.card>*+*{border-top:1px solid var(--line)}
.badge{display:inline-block;border-radius:1rem;padding:.05rem .6rem;font-size:.82rem;font-weight:600;white-space:nowrap}
.absent{color:var(--absent);background:var(--absent-bg)}.needs{color:var(--needs);background:var(--needs-bg)}
.differs{color:var(--differs);background:var(--differs-bg)}.here{color:var(--here);background:var(--here-bg)}
.fault{border-left:.3rem solid var(--absent)}
.mark{font-weight:700;margin-right:.4rem}
dl{margin:.3rem 0 0}dt{margin-top:.6rem}dd{margin:0}
ul.at{margin:.3rem 0 0;padding-left:1.1rem;font-size:.9rem;color:var(--soft)}
code{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{margin:0;font:.85rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre-wrap}
.scroll{overflow-x:auto;padding:0}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;padding:.4rem .9rem;vertical-align:top}
th{color:var(--soft);font-weight:600}
tr+tr td,tbody tr:first-child td{border-top:1px solid var(--line)}
td.name{min-width:12rem}
a{color:var(--link)}
@media (max-width:40rem){main{padding-top:1.2rem}thead{display:none}tbody,tr,td{display:block}td,td.name{padding:.1rem 1rem;min-width:0}
tr{padding:.6rem 0}tr+tr{border-top:1px solid var(--line)}tr+tr td,tbody tr:first-child td{border-top:0}}
@media print{details::details-content{content-visibility:visible;block-size:auto}body{background:#fff}.card,.counts li{break-inside:avoid}}
`;

/** @param madeAt ISO 8601. */
export function htmlOf(report: Report, madeAt: string): string {
  const { objects, counts, faults, users, tasks } = report;
  const absent = notesOf(objects, 'not in force', 'N');
  const different = notesOf(objects, 'in force, differently', 'D');
  const values = valuesOf(objects);
  const parts = [
    `<h1>What becomes of ${escaped(report.export)}</h1>`,
    `<p class="soft">${objects.length} objects of the old tenant, checked on ${escaped(madeAt.slice(0, 10))}. Nothing was changed.</p>`,
    `<ul class="counts">${[...VERDICTS]
      .reverse()
      .map((verdict) => `<li><b>${counts[verdict]}</b>${badge(verdict)}</li>`)
      .join('')}</ul>`,
    block(
      'Cannot be taken as it is',
      faults.map((fault) => `<p class="fault">${escaped(fault)}</p>`),
      { isOpen: true },
    ),
    block(
      'Values to set',
      values.map(
        ({ find, variables }) =>
          `<div><p class="soft">From ${escaped(find)}</p><dl>${variables.map(variableHtml).join('')}</dl></div>`,
      ),
      { isOpen: true, note: 'As environment variables of the server and of the commands.' },
    ),
    block('Not in force: what users will notice', absent.map(noteHtml), { isOpen: true }),
    block('In force, differently', different.map(noteHtml)),
    users === undefined
      ? ''
      : block('Users', [`<pre>${escaped(users.lines.join('\n'))}</pre>`], { isOpen: true }),
    users === undefined || users.refused.length === 0
      ? ''
      : block(`Users who cannot be taken (${users.refused.length})`, [
          `<pre>${escaped(users.refused.join('\n'))}</pre>`,
        ]),
    tasksHtml(tasks, report),
    section(
      `All objects (${objects.length})`,
      `<div class="card"><div class="scroll"><table><thead><tr><th>Verdict</th><th>Kind</th><th>Name</th><th>Notes and values</th></tr></thead><tbody>${rows(objects, [...absent, ...different])}</tbody></table></div></div>`,
    ),
  ];
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Moving ${escaped(report.export)} to Gatehouse</title>
<style>${STYLE}</style>
<main>
${parts.filter((part) => part !== '').join('\n')}
</main>
</html>
`;
}

const badge = (verdict: Verdict): string => `<span class="badge ${CLASS[verdict]}">${verdict}</span>`;

interface Shown {
  /** What is to be done is open at first, long lists are not. */
  isOpen?: boolean;
  note?: string;
}

function block(title: string, cards: readonly string[], { note, ...shown }: Shown = {}): string {
  if (cards.length === 0) return '';
  const said = note === undefined ? '' : `<p class="soft">${escaped(note)}</p>`;
  return section(title, `${said}<div class="card">${cards.join('')}</div>`, shown);
}

/** A browser opens a closed one by itself for a link into it, and when it finds a text there. */
const section = (title: string, html: string, { isOpen = false }: Shown = {}): string =>
  `<section><details${isOpen ? ' open' : ''}><summary><h2>${escaped(title)}</h2></summary>${html}</details></section>`;

function variableHtml({ variable, needs }: ReturnType<typeof valuesOf>[number]['variables'][number]): string {
  const write = needs[0]?.write;
  const there =
    write === undefined
      ? ''
      : ` <span class="soft">write into the export: <code>${escaped(write)}</code></span>`;
  const about = needs.map(({ kind, name, what, at }) => `${called({ kind, name })}: ${what}; ${at}`);
  return `<dt><code><b>${escaped(variable)}</b></code>${there}</dt><dd>${places(about)}</dd>`;
}

/** More than these are closed at first. */
const MANY = 5;

function places(all: readonly string[]): string {
  const list = `<ul class="at">${all.map((one) => `<li>${escaped(one)}</li>`).join('')}</ul>`;
  return all.length > MANY
    ? `<details><summary class="soft">${all.length} places</summary>${list}</details>`
    : list;
}

function noteHtml({ mark, says, decision, objects }: Note): string {
  const why = decision === undefined ? '' : `<p class="soft">Why: <code>docs/${escaped(decision)}</code></p>`;
  return `<div id="${mark}"><p><span class="mark">${mark}</span>${escaped(says)}</p>${why}${places(
    objects.map(({ kind, name, at }) => `${called({ kind, name })}: ${at}`),
  )}</div>`;
}

function tasksHtml(groups: readonly TaskGroup[], { origin, isExampleOrigin }: Report): string {
  if (groups.length === 0) return '';
  const note = isExampleOrigin
    ? `<p class="soft">With BASE_URL set, this has your own address instead of <code>${escaped(origin)}</code>.</p>`
    : '';
  const cards = groups.map(
    ({ title, note: about, tasks }) =>
      `<div><h3>${escaped(title)}</h3>${about === undefined ? '' : `<p class="soft">${escaped(about)}</p>`}<ul>${tasks
        .map(
          ({ where, task, values }) =>
            `<li><b>${escaped(where)}</b>: ${escaped(task)}${values.map((value) => `<br><code>${escaped(value)}</code>`).join('')}</li>`,
        )
        .join('')}</ul></div>`,
  );
  return section('To do at others', `${note}<div class="card">${cards.join('')}</div>`, { isOpen: true });
}

function rows(objects: readonly AssessedObject[], notes: readonly Note[]): string {
  const marks = new Map<string, string[]>();
  for (const { mark, objects: about } of notes)
    for (const { kind, name } of about)
      marks.set(`${kind}\n${name}`, [...new Set([...(marks.get(`${kind}\n${name}`) ?? []), mark])]);
  return objects
    .map(({ kind, name, verdict, needs }) => {
      const links = (marks.get(`${kind}\n${name}`) ?? []).map((mark) => `<a href="#${mark}">${mark}</a>`);
      const variables = [...new Set(needs.map(({ variable }) => variable))].map(
        (one) => `<code>${escaped(one)}</code>`,
      );
      return `<tr><td>${badge(verdict)}</td><td>${escaped(kind)}</td><td class="name">${escaped(name)}</td><td>${[...links, ...variables].join(' ')}</td></tr>`;
    })
    .join('');
}
