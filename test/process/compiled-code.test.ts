// What a start need not load: the compiler of TypeScript, where what it compiled was kept (20 MB), and `fetch` (8 MB).
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runServer } from '../support/process.ts';

const NOTE = `
  import { writeFileSync } from 'node:fs';
  import { isMainThread } from 'node:worker_threads';
  const name = isMainThread ? 'main' : 'thread';
  process.on('exit', () => writeFileSync(process.env.LOADED + name, process.moduleLoadList.join(' ')));
`;

describe('a later start', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-compiled-'));
  after(() => rmSync(cwd, { recursive: true }));

  it('loads no compiler, and none the HTTP client of Node.js', async () => {
    writeFileSync(join(cwd, 'note.mjs'), NOTE);
    const env = {
      NODE_COMPILE_CACHE: '',
      NODE_OPTIONS: `--import=${join(cwd, 'note.mjs')}`,
      LOADED: join(cwd, 'loaded-'),
    };
    const loaded: string[] = [];
    for (let start = 0; start < 2; start++) {
      const server = await runServer({ cwd, env });
      await server.end('SIGTERM');
      expect(existsSync(join(cwd, 'loaded-main'))).to.equal(true);
      loaded.push(readFileSync(join(cwd, 'loaded-main'), 'utf8'));
    }
    expect(loaded[0]).to.include('amaro').and.not.to.include('undici');
    expect(loaded[1]).not.to.match(/amaro|undici/);
  });
});
