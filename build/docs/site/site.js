// The script of the documents: the search, links of headings to themselves, and scrolling by the keyboard.
import MiniSearch from 'minisearch';
import { anchorOf } from '../anchor.ts';

const root = document.currentScript.getAttribute('src').replace('site.js', '');

// Without this script there is no search, so it makes the form.
const form = document.createElement('form');
form.id = 'search';
form.role = 'search';
const field = document.createElement('input');
field.type = 'search';
field.placeholder = 'Search';
field.autocomplete = 'off';
field.spellcheck = false;
field.ariaLabel = 'Search the documents';
const status = document.createElement('p');
status.role = 'status';
const list = document.createElement('ol');
list.hidden = true;
form.append(field, status, list);
document.querySelector('body > header').append(form);

let loading;
/** What is searched comes as a script, so that it can be read from a file, too. It calls `gatehouseDocuments`. */
function load() {
  loading ??= new Promise((resolve) => {
    globalThis.gatehouseDocuments = (pages) => resolve(indexOf(pages));
    const script = document.createElement('script');
    script.src = `${root}searched.js`;
    document.head.append(script);
  });
  return loading;
}

function indexOf(pages) {
  const index = new MiniSearch({
    fields: ['heading', 'page', 'text'],
    storeFields: ['heading', 'page', 'at'],
    searchOptions: { boost: { heading: 4, page: 2 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
  });
  const sections = pages.flatMap(([path, page, ...parts]) =>
    parts.map(([heading, text]) => ({
      id: `${path}#${heading}`,
      at: heading === page ? path : `${path}#${anchorOf(heading)}`,
      page,
      heading,
      text,
    })),
  );
  for (const section of sections) if (!index.has(section.id)) index.add(section);
  return index;
}

async function search() {
  const query = field.value.trim();
  if (query.length < 2) return show([], '');
  const index = await load();
  // The reader may have typed on.
  if (query !== field.value.trim()) return;
  const found = index.search(query).slice(0, 12);
  show(found, found.length === 0 ? `Nothing found for “${query}”.` : `${found.length} results`);
}

function show(found, said) {
  status.textContent = said;
  list.hidden = found.length === 0;
  list.replaceChildren(
    ...found.map(({ page, heading, at }) => {
      const item = document.createElement('li');
      const link = document.createElement('a');
      link.href = root + at;
      const title = document.createElement('span');
      title.textContent = heading;
      link.append(title);
      if (heading !== page) {
        const where = document.createElement('small');
        where.textContent = page;
        link.append(where);
      }
      item.append(link);
      return item;
    }),
  );
}

field.addEventListener('focus', load, { once: true });
field.addEventListener('input', search);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  list.querySelector('a')?.click();
});
form.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    field.value = '';
    show([], '');
    field.focus();
  }
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  const links = [field, ...list.querySelectorAll('a')];
  const place = links.indexOf(document.activeElement) + (event.key === 'ArrowDown' ? 1 : -1);
  links[place]?.focus();
  event.preventDefault();
});
form.addEventListener('focusout', ({ relatedTarget }) => {
  if (!form.contains(relatedTarget)) list.hidden = true;
});
field.addEventListener('focus', () => {
  list.hidden = list.children.length === 0;
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.matches('input, textarea, select')) return;
  event.preventDefault();
  field.focus();
});

for (const heading of document.querySelectorAll(':is(h2, h3, h4)[id]:not(:has(a))')) {
  const link = document.createElement('a');
  link.href = `#${heading.id}`;
  link.append(...heading.childNodes);
  heading.append(link);
}

/** What is wider than the page gets the focus, so that the arrow keys scroll it. */
function markScrollable() {
  for (const one of document.querySelectorAll('pre, .table')) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute('tabindex');
  }
}
markScrollable();
addEventListener('resize', markScrollable);
