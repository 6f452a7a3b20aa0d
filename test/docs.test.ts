// Checks what the documents and the code name: files, tests and decisions exist.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { decisionPages, decisionsReadme } from '../build/docs/decisions.ts';

const ROOT = new URL('../', import.meta.url);
const pages = readdirSync(new URL('docs/reference/wire/', ROOT)).filter((name) => name.endsWith('.md'));
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');
/** Returns a text without the characters that a string literal may escape. */
const plain = (text: string) => text.replaceAll(/['’\\]/g, '');

/** The paths of this repository that a document names, without those that exist. */
const missing = (path: string) =>
  [...read(path).matchAll(/`((?:src|test|bench|build|config|views|sandbox|docs)\/[\w./-]+)`/g)]
    .map(([, named = '']) => named)
    .filter((named) => !existsSync(new URL(named, ROOT)));

describe('README.md', () => {
  it('is short, and names a source for each note of its table', () => {
    const text = read('README.md');
    expect(text.split('\n')).to.have.lengthOf.below(120);
    const notes = (pattern: RegExp) => new Set([...text.matchAll(pattern)].map(([, name]) => name));
    const sources = notes(/^\[\^([\w-]+)\]: .*\(https:\/\/\S+\)/gm);
    expect(sources.size).to.be.above(10);
    expect(notes(/ \[\^([\w-]+)\]/g)).to.deep.equal(sources);
  });
});

describe('CONTRIBUTING.md', () => {
  it('names files that exist', () => {
    expect(missing('CONTRIBUTING.md')).to.deep.equal([]);
  });
});

describe('docs/understand/architecture.md', () => {
  it('names files that exist', () => {
    expect(missing('docs/understand/architecture.md')).to.deep.equal([]);
  });

  it('has every line of the map in its picture', () => {
    const picture = read('docs/images/layers.svg');
    const table =
      /^\| line \| contents \|\n\| --- \| --- \|\n((?:\|.*\n)+)/m.exec(read('CONTRIBUTING.md'))?.[1] ?? '';
    const lines = table.split('\n').flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)]);
    const names = lines.map(([, path = '']) => path.split('/').at(-1) ?? '');
    expect(names).to.include('runtime');
    expect(names.filter((name) => !new RegExp(`[ >]${name}[ <]`).test(picture))).to.deep.equal([]);
  });
});

describe('docs/understand/security.md', () => {
  it('links each claim of its tables to what holds it', () => {
    const rows = [...read('docs/understand/security.md').matchAll(/^\|(?! ---)(.*)\|$/gm)].map(
      ([row]) => row,
    );
    const claims = rows.filter((row) => !row.endsWith('| held by |'));
    expect(claims.length).to.be.above(40);
    expect(claims.filter((row) => !/\]\([^)]+\)[^|]*\|$/.test(row))).to.deep.equal([]);
  });
});

describe('the code', () => {
  it('names files of src that exist', () => {
    const files = ['src', 'sandbox', 'build', 'bench', 'views/assets'].flatMap((folder) =>
      readdirSync(new URL(`${folder}/`, ROOT), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.(ts|js|css)$/.test(file))
        .map((file) => `${folder}/${file.replaceAll('\\', '/')}`),
    );
    const named = files.flatMap((file) =>
      [...read(file).matchAll(/\bsrc\/[\w./-]+\.(?:ts|js)\b/g)].map(([path]) => ({ file, path })),
    );
    expect(named).not.to.have.length(0);
    const lost = named.filter(({ path }) => !existsSync(new URL(path, ROOT)));
    expect(lost.map(({ file, path }) => `${file}: ${path}`)).to.deep.equal([]);
  });
});

describe('docs/understand/decisions', () => {
  const decisions = decisionPages(fileURLToPath(ROOT));
  const all = decisions.flatMap((page) => page.decisions.map(({ anchor }) => `${page.file}#${anchor}`));

  it('are all in the list (otherwise run `npm run docs`)', () => {
    expect(read('docs/understand/decisions/README.md')).to.equal(decisionsReadme(fileURLToPath(ROOT)));
  });

  it('have a heading of its own for each decision', () => {
    expect(all.filter((one, place) => all.indexOf(one) !== place)).to.deep.equal([]);
  });

  it('have every decision that code, tests and documents cite', () => {
    const folders = ['src', 'sandbox', 'test', 'bench', 'build', 'config', 'deploy', 'docs'];
    const files = folders.flatMap((folder) =>
      readdirSync(new URL(`${folder}/`, ROOT), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.(ts|js|mjs|md|yaml|liquid)$/.test(file))
        .map((file) => `${folder}/${file.replaceAll('\\', '/')}`),
    );
    const lost = [...files, 'README.md', 'CONTRIBUTING.md'].flatMap((file) => {
      const text = read(file);
      const cited = [...text.matchAll(/decisions\/([\w-]+\.md#[^\s)`'"]+)/g)].map(([, one = '']) => one);
      const own = /^docs\/decisions\/([\w-]+\.md)$/.exec(file)?.[1];
      const beside =
        own === undefined
          ? []
          : [...text.matchAll(/\]\(([\w-]+\.md)?(#[^)]+)\)/g)].map(
              ([, page = own, anchor]) => `${page}${anchor}`,
            );
      return [...cited, ...beside].filter((one) => !all.includes(one)).map((one) => `${file}: ${one}`);
    });
    expect(lost).to.deep.equal([]);
  });

  for (const { file } of decisions) {
    it(`${file} names files that exist`, () => {
      expect(missing(`docs/understand/decisions/${file}`)).to.deep.equal([]);
    });
  }
});

describe('docs/reference/wire', () => {
  for (const page of pages) {
    const text = read(`docs/reference/wire/${page}`);

    it(`${page} names files that exist`, () => {
      const named = [...text.matchAll(/`((?:src|test)\/[\w./-]+)`/g)].map(([, path = '']) => path);
      const linked = [...text.matchAll(/\]\(([\w./-]+\.md)\)/g)].map(
        ([, path = '']) => `docs/reference/wire/${path}`,
      );
      expect([...named, ...linked].filter((path) => !existsSync(new URL(path, ROOT)))).to.deep.equal([]);
    });

    it(`${page} names tests that exist`, () => {
      const lost = text.split('\n').flatMap((line) => {
        const held = line.split(' | ').at(-1) ?? '';
        const files = [...held.matchAll(/`(test\/[\w./-]+\.ts)`/g)].map(([, path = '']) => plain(read(path)));
        const titles = [...held.matchAll(/"([^"]+)"/g)].map(([, title = '']) => plain(title));
        return titles.filter(
          (title) => !files.some((file) => file.includes(title.split('…')[0]?.trim() ?? '')),
        );
      });
      expect(lost).to.deep.equal([]);
    });
  }
});
