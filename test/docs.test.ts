// Checks CONTRIBUTING.md and docs/wire: the files and tests that they name exist.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

const ROOT = new URL('../', import.meta.url);
const pages = readdirSync(new URL('docs/wire/', ROOT)).filter((name) => name.endsWith('.md'));
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');
/** Returns a text without the characters that a string literal may escape. */
const plain = (text: string) => text.replaceAll(/['’\\]/g, '');

describe('CONTRIBUTING.md', () => {
  it('names files that exist', () => {
    const named = [...read('CONTRIBUTING.md').matchAll(/`((?:src|test|docs|views)\/[\w./-]+)`/g)];
    const paths = named.map(([, path = '']) => path);
    expect(paths.filter((path) => !existsSync(new URL(path, ROOT)))).to.deep.equal([]);
  });
});

describe('docs/wire', () => {
  for (const page of pages) {
    const text = read(`docs/wire/${page}`);

    it(`${page} names files that exist`, () => {
      const named = [...text.matchAll(/`((?:src|test)\/[\w./-]+)`/g)].map(([, path = '']) => path);
      const linked = [...text.matchAll(/\]\(([\w./-]+\.md)\)/g)].map(([, path = '']) => `docs/wire/${path}`);
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
