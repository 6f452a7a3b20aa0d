// Compiled code, kept between starts: only where nobody else can put code of their own.
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runServer } from '../support/process.ts';

describe('compiled code', () => {
  let cwd: string;
  let cache: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-cache-'));
    cache = join(cwd, 'data', 'cache');
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const startAndStop = async () => {
    const server = await runServer({ cwd, env: { NODE_COMPILE_CACHE: '' } });
    expect(await server.end('SIGTERM')).to.equal(0);
  };

  it('is kept in a directory of its own for the next start, which works with it', async () => {
    await startAndStop();
    expect(readdirSync(cache, { recursive: true }).length).to.be.above(100);
    expect(statSync(cache).mode & 0o777).to.equal(0o700);
    await startAndStop();
  });

  it('is neither taken from nor put into a directory that others can write to', async () => {
    mkdirSync(cache, { recursive: true });
    chmodSync(cache, 0o777);
    await startAndStop();
    expect(readdirSync(cache)).to.deep.equal([]);
  });
});
