// The compile cache between starts: used only in a directory that nobody else can write to. With it a later start loads
// neither the compiler of TypeScript (20 MB) nor `fetch` (8 MB).
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { MAIN, runServer } from '../support/process.ts';

const NOTE = `
  import { writeFileSync } from 'node:fs';
  import { isMainThread } from 'node:worker_threads';
  const name = isMainThread ? 'main' : 'thread';
  process.on('exit', () => writeFileSync(process.env.LOADED + name, process.moduleLoadList.join(' ')));
`;

describe('compiled code', () => {
  let cwd: string;
  let cache: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-cache-'));
    cache = join(cwd, 'data', 'cache');
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const startAndStop = async (env: Record<string, string> = {}) => {
    const command = [process.execPath, MAIN];
    const server = await runServer({ cwd, command, env: { NODE_COMPILE_CACHE: '', ...env } });
    expect(await server.end('SIGTERM')).to.equal(0);
  };
  /** As above. @returns the modules of Node.js that the process has loaded. */
  const loadedBy = async () => {
    writeFileSync(join(cwd, 'note.mjs'), NOTE);
    const file = join(cwd, 'loaded-');
    await startAndStop({ NODE_OPTIONS: `--import=${join(cwd, 'note.mjs')}`, LOADED: file });
    expect(existsSync(`${file}main`)).to.equal(true);
    return readFileSync(`${file}main`, 'utf8');
  };

  it('is kept in a directory of its own for the next start, which loads no compiler, nor the HTTP client', async () => {
    expect(await loadedBy())
      .to.include('amaro')
      .and.not.to.include('undici');
    expect(readdirSync(cache, { recursive: true }).length).to.be.above(100);
    expect(statSync(cache).mode & 0o777).to.equal(0o700);
    expect(await loadedBy()).not.to.match(/amaro|undici/);
  });

  it('is neither read from nor written to a directory that others can write to', async () => {
    mkdirSync(cache, { recursive: true });
    chmodSync(cache, 0o777);
    await startAndStop();
    expect(readdirSync(cache)).to.deep.equal([]);
  });
});
