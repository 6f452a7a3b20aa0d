// The links of the documents, and what the code cites of them, lead to pages and headings that exist.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect } from 'chai';
import { anchorOf } from '../../build/docs/anchor.ts';
import { ROOT } from '../../build/docs/documents.ts';

/** The files of the repository, those that are not committed yet too. */
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(ROOT, file)));
const pages = files.filter((file) => file.endsWith('.md'));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
/** A document without its code, in which brackets are no links and `#` is no heading. */
const prose = (file: string) => read(file).replaceAll(/^( *)```.*?^\1```/gms, '');

const anchors = new Map(
  pages.map((page) => [
    page,
    [...prose(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      anchorOf(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')),
    ),
  ]),
);

/** Says what is wrong with a link from a file to a path of the repository, perhaps with an anchor. */
function fault(from: string, path: string, anchor: string | undefined): string | undefined {
  if (!existsSync(join(ROOT, path))) return `${from}: ${path} does not exist`;
  if (anchor === undefined || anchor === '' || !path.endsWith('.md')) return undefined;
  return anchors.get(path)?.includes(anchor) ? undefined : `${from}: ${path} has no heading #${anchor}`;
}

describe('the documents', () => {
  it('link to pages and headings that exist', () => {
    const faults = pages.flatMap((page) =>
      [...prose(page).matchAll(/\]\(<?([^)\s>]+)>?\)/g)]
        .map(([, link = '']) => link)
        .filter((link) => !/^[a-z]+:/.test(link))
        .map((link) => {
          const [path = '', anchor] = link.split('#');
          return fault(page, path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path)), anchor);
        }),
    );
    expect(faults.length).to.be.above(500);
    expect(faults.filter((one) => one !== undefined)).to.deep.equal([]);
  });

  it('are in the contents, except the pages of lists that have contents of their own', () => {
    const contents = read('docs/README.md');
    const own = /^docs\/(reference\/wire|understand\/decisions|do\/runbooks)\/(?!README)/;
    const lost = pages.filter(
      (page) =>
        page.startsWith('docs/') &&
        page !== 'docs/README.md' &&
        !own.test(page) &&
        !contents.includes(`](${page.slice('docs/'.length)})`),
    );
    expect(lost).to.deep.equal([]);
  });
});

describe('the code', () => {
  it('cites documents and headings that exist', () => {
    const faults = files
      .filter((file) => /\.(ts|js|mjs|yaml|css|service|md)$/.test(file) && file !== 'CHANGELOG.md')
      .flatMap((file) =>
        [...read(file).matchAll(/\b(docs\/[\w./-]+\.md)(?:#([\p{L}\p{N}_-]+))?/gu)].map(
          ([, path = '', anchor]) => fault(file, path, anchor),
        ),
      );
    expect(faults.length).to.be.above(500);
    expect(faults.filter((one) => one !== undefined)).to.deep.equal([]);
  });
});
