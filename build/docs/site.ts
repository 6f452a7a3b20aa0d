// The documents as a site: static pages with a search that needs no server, served at /docs in development.
// docs/understand/decisions/code-tests.md#the-documents-are-markdown-of-which-eleventy-makes-a-site
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, posix, relative } from 'node:path';
import { Eleventy } from '@11ty/eleventy';
import { build } from 'esbuild';
import { ROOT } from '../bundle.ts';
import { anchorOf } from './anchor.ts';
import { contentsOf, type Kind, type ListedPage } from './contents.ts';

/** Where the site is in the repository and in the package. */
export const SITE = join(ROOT, 'dist/site');

const DOCS = join(ROOT, 'docs');
const SOURCES = join(ROOT, 'build/docs/site');

/** Documents for programs. The server makes them itself. */
const SERVED_ELSEWHERE: Readonly<Record<string, string>> = {
  'reference/api/openapi.json': '/openapi.json',
  'reference/api/management.json': '/api/v2/openapi.json',
};

/** A page, as its templates see it. */
interface PageData {
  page: { inputPath: string; rawInput: string };
}

/** Returns the files of the site, by their paths in it. */
export async function siteFiles(): Promise<Map<string, string | Buffer>> {
  const files = new Map<string, string | Buffer>();
  const pages = await renderedPages();
  for (const { path, content } of pages) files.set(path, content);
  for (const image of imagesOf(pages)) files.set(image, await readFile(join(DOCS, image)));
  files.set('site.css', await readFile(join(SOURCES, 'site.css')));
  files.set('site.js', await bundledScript());
  files.set('searched.js', searched(pages));
  return files;
}

/** Writes the site. What is as it was is not touched, so that a server can read it meanwhile. */
export async function writeSite(directory = SITE): Promise<void> {
  const files = await siteFiles();
  const before = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const one of before.filter((entry) => entry.isFile())) {
    const file = join(one.parentPath, one.name);
    if (!files.has(relative(directory, file).replaceAll('\\', '/'))) await rm(file, { force: true });
  }
  for (const [path, content] of files) {
    const file = join(directory, path);
    const old = await readFile(file).catch(() => undefined);
    if (old?.equals(Buffer.from(content))) continue;
    await mkdir(dirname(file), { recursive: true });
    const unfinished = `${file}.${process.pid}`;
    await writeFile(unfinished, content);
    await rename(unfinished, file);
  }
}

interface RenderedPage {
  path: string;
  title: string;
  source: string;
  content: string;
}

/** Leaves out the end tags that HTML does not need, which are a tenth of a page with a table. Code has none of these. */
function small(html: string): string {
  return html.replaceAll(/<\/(?:p|li|td|th|tr|thead|tbody)>\n?/g, '');
}

/** Returns the path of a document in the site: `README.md` is the page of its folder. */
function pathOf(document: string): string {
  return document.replace(/(^|\/)README\.md$/, '$1index.html').replace(/\.md$/, '.html');
}

const titleOf = (source: string) => plain(/^# (.+)$/m.exec(source)?.[1] ?? '');

/** Returns a line of Markdown without its marks. */
function plain(line: string): string {
  return line.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, '');
}

async function renderedPages(): Promise<RenderedPage[]> {
  const contents = contentsOf(await readFile(join(DOCS, 'README.md'), 'utf8'));
  const documentOf = ({ page }: PageData) =>
    relative(DOCS, join(process.cwd(), page.inputPath)).replaceAll('\\', '/');
  const input = relative(process.cwd(), DOCS);
  const eleventy = new Eleventy(input, undefined, {
    quietMode: true,
    configPath: relative(process.cwd(), join(SOURCES, 'eleventy.config.js')),
    config: (config) => {
      config.setTemplateFormats(['md']);
      config.setUseGitIgnore(false);
      config.setLayoutsDirectory(relative(DOCS, SOURCES));
      config.setLiquidOptions({ outputEscape: 'escape' });
      config.amendLibrary('md', (markdown: Markdown) => adapt(markdown, documentOf));
      // Its list of all headings is for readers of the repository; here the search finds them.
      config.addPreprocessor('decisions', 'md', (data: PageData, content: string) =>
        documentOf(data) === 'understand/decisions/README.md' ? content.replaceAll(/^- .*\n/gm, '') : content,
      );
      config.addTransform('small', small);
      config.addGlobalData('layout', 'page.liquid');
      config.addGlobalData('eleventyComputed', {
        permalink: (data: PageData) => pathOf(documentOf(data)),
        title: (data: PageData) => titleOf(data.page.rawInput),
        root: (data: PageData) => '../'.repeat(documentOf(data).split('/').length - 1),
        headings: (data: PageData) => headingsOf(data.page.rawInput),
        kinds: (data: PageData) => kindsFor(contents, documentOf(data)),
        groups: (data: PageData) => groupsFor(contents, documentOf(data)),
      });
    },
  });
  const rendered = await eleventy.toJSON();
  return rendered.map(({ inputPath, rawInput, content }) => {
    const document = documentOf({ page: { inputPath, rawInput } });
    return { path: pathOf(document), title: titleOf(rawInput), source: rawInput, content };
  });
}

/** The navigation of a page: the kinds, with the page's own marked. */
function kindsFor(contents: readonly Kind[], document: string) {
  const own = kindOf(contents, document);
  return contents.map(({ name, anchor }) => ({ name, anchor, isHere: own?.anchor === anchor }));
}

/** The folder of each kind, by its anchor in the contents. */
const FOLDERS: Readonly<Record<string, string>> = {
  learn: 'learn/',
  do: 'do/',
  'look-up': 'reference/',
  understand: 'understand/',
};

function kindOf(contents: readonly Kind[], document: string): Kind | undefined {
  return contents.find(({ anchor }) => document.startsWith(FOLDERS[anchor] ?? ' '));
}

/** The pages of a page's kind, in the groups of the contents. A page that is not among them belongs to its folder's. */
function groupsFor(contents: readonly Kind[], document: string) {
  const groups = kindOf(contents, document)?.groups ?? [];
  const listed = groups.flatMap(({ pages }) => pages.flatMap((page) => [page, ...page.below]));
  const folder = `${dirname(document)}/README.md`;
  const isListed = listed.some((page) => page.document === document);
  const entry = (page: ListedPage, isBelow: boolean) => {
    const isHere = page.document === document;
    return {
      title: page.title,
      href: posix.relative(dirname(document), pathOf(page.document)),
      isBelow,
      current: isHere ? 'page' : !isListed && page.document === folder ? 'true' : undefined,
    };
  };
  // Of other groups there is only the name, which leads to the contents: all pages on each page would be a tenth of the site.
  const hasPage = (pages: readonly ListedPage[]) =>
    pages.some((page) =>
      [page, ...page.below].some((one) => one.document === document || one.document === folder),
    );
  return groups.map(({ name, anchor, pages }) => {
    const href = `${posix.relative(dirname(document), 'index.html')}#${anchor}`;
    if (name !== undefined && !hasPage(pages)) return { name, href, pages: [] };
    const entries = pages.flatMap((page) => {
      const isOpen = [page, ...page.below].some((one) => one.document === document);
      return [entry(page, false), ...(isOpen ? page.below.map((one) => entry(one, true)) : [])];
    });
    return { name, href, pages: entries };
  });
}

/** The headings of the second level. */
function headingsOf(source: string): { text: string; anchor: string }[] {
  return [...withoutCode(source).matchAll(/^## (.+)$/gm)].map(([, heading = '']) => ({
    text: plain(heading),
    anchor: anchorOf(plain(heading)),
  }));
}

const withoutCode = (source: string) => source.replaceAll(/^( *)```.*?^\1```/gms, '');

/** The parts of markdown-it that are used here. */
interface Token {
  type: string;
  tag: string;
  content: string;
  children: Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

interface State {
  tokens: Token[];
  env: PageData;
}

type Rule = (tokens: Token[], place: number, ...others: unknown[]) => string;

interface Markdown {
  core: { ruler: { push(name: string, rule: (state: State) => void): void } };
  renderer: { rules: Record<string, Rule | undefined> };
}

/** Gives headings their anchors, and lets links lead to pages of the site. Wide tables can be scrolled. */
function adapt({ core, renderer: { rules } }: Markdown, documentOf: (data: PageData) => string): void {
  core.ruler.push('site', ({ tokens, env }) => {
    for (const [place, token] of tokens.entries()) {
      if (token.children !== null) token.children = linksIn(documentOf(env), token.children);
      if (token.type === 'heading_open')
        token.attrSet('id', anchorOf(plain(tokens[place + 1]?.content ?? '')));
    }
  });
  rules.table_open = () => '<div class="table"><table>\n';
  rules.table_close = () => '</table></div>\n';
}

/** Changes the links of a line for the site. Those to files of the repository that are no documents become plain text. */
function linksIn(document: string, tokens: readonly Token[]): Token[] {
  let isLost = false;
  return tokens.filter((token) => {
    if (token.type === 'link_open') {
      const href = hrefIn(document, token.attrGet('href') ?? '');
      isLost = href === undefined;
      if (href !== undefined) token.attrSet('href', href);
    }
    return !(isLost && /^link_(open|close)$/.test(token.type));
  });
}

function hrefIn(document: string, href: string): string | undefined {
  if (/^([a-z]+:|#)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const target = posix.join(dirname(document), path);
  if (SERVED_ELSEWHERE[target] !== undefined) return SERVED_ELSEWHERE[target];
  if (target.startsWith('..') || !target.endsWith('.md')) return undefined;
  const to = posix.relative(dirname(document), pathOf(target));
  return anchor === undefined ? to : `${to}#${anchor}`;
}

/** Returns the paths of the images that pages show. */
function imagesOf(pages: readonly RenderedPage[]): Set<string> {
  return new Set(
    pages.flatMap(({ path, source }) =>
      [...source.matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)].map(([, image = '']) =>
        posix.join(dirname(path), image),
      ),
    ),
  );
}

/** Bundles the script of the pages with MiniSearch. */
async function bundledScript(): Promise<Buffer> {
  const { outputFiles } = await build({
    entryPoints: [join(SOURCES, 'site.js')],
    absWorkingDir: ROOT,
    bundle: true,
    minify: true,
    format: 'iife',
    write: false,
  });
  return Buffer.from(outputFiles[0]?.contents ?? '');
}

/**
 * Of these pages only the headings are searched: those of decisions are sentences that say what was decided, and the texts
 * of the others repeat the same words.
 */
const BY_HEADINGS = /^(reference\/(api\/|custom-texts)|understand\/decisions\/)/;

/**
 * Returns what the search reads: the parts of pages, from heading to heading, each with its words. The browser makes the
 * index of them, which would be four times as large.
 */
function searched(pages: readonly RenderedPage[]): string {
  const parts = pages
    // Its headings are those of the pages that it lists.
    .filter(({ path }) => path !== 'understand/decisions/index.html')
    .map(({ path, title, source }) => [
      path,
      title,
      ...withoutCode(source)
        .split(/^#{1,3} /m)
        .slice(1)
        .map((part): [string, string] => {
          const [heading = '', ...text] = part.split('\n');
          return [plain(heading), BY_HEADINGS.test(path) ? '' : wordsOf(text.join(' '))];
        }),
    ]);
  return `gatehouseDocuments(${JSON.stringify(parts)});\n`;
}

/** Returns each word of a text once. Links are read without their addresses. */
function wordsOf(text: string): string {
  const words = text
    .replaceAll(/\]\([^)]*\)/g, ' ')
    .toLowerCase()
    .match(/[\p{L}\p{N}_][\p{L}\p{N}_.-]*[\p{L}\p{N}_]/gu);
  return [...new Set(words)].filter((word) => !COMMON.has(word)).join(' ');
}

/** Words that are on nearly every page. */
const COMMON = new Set(
  'a an and are as at be been by can do does for from has have if in into is it its may must no not of on one only or other so such than that the their them then there these they this to was what when where which while who with without you your'.split(
    ' ',
  ),
);
