import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { openStore } from '../../src/store/open.ts';
import { rejection } from './contract.ts';

const program = fileURLToPath(new URL('./processes/holder.ts', import.meta.url));

describe('the embedded store and a second process', () => {
  let dataDir: string;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-lock-'));
  });

  afterEach(async () => {
    for (const child of children.splice(0)) await kill(child);
    await rm(dataDir, { recursive: true });
  });

  /** Starts a process that opens the store; its first line is `open` or the reason why not. */
  async function start(directory: string): Promise<{ child: ChildProcess; answer: string }> {
    const child = spawn(process.execPath, [program, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const [answer] = await once(createInterface({ input: child.stdout }), 'line');
    return { child, answer };
  }

  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  it('refuses the second process with a clear message, and leaves the first one undisturbed', async () => {
    const store = await openStore({ dataDir, clock: Date.now });
    const { answer } = await start(dataDir);
    expect(answer).to.match(/store is in use/);
    await store.collection('credentials').insert({ id: 'a', passwordHash: 'x', history: [] });
    expect((await start(dataDir)).answer).to.match(/in use/);
    await store.close();
    expect((await start(dataDir)).answer).to.equal('open');
  });

  it('refuses it by whatever path it comes', async () => {
    const store = await openStore({ dataDir, clock: Date.now });
    const other = `${dataDir}-link`;
    await symlink(dataDir, other);
    expect((await start(other)).answer).to.match(/in use/);
    await rm(other);
    await store.close();
  });

  it('refuses to open twice in one process, and keeps the lock', async () => {
    const store = await openStore({ dataDir, clock: Date.now });
    expect(await rejection(openStore({ dataDir, clock: Date.now }))).to.match(/in use/);
    expect((await start(dataDir)).answer).to.match(/in use/);
    await store.close();
    await (await openStore({ dataDir, clock: Date.now })).close();
  });

  it('refuses the second process even if the lock file was deleted', async () => {
    const store = await openStore({ dataDir, clock: Date.now });
    await rm(join(dataDir, 'lock'));
    expect((await start(dataDir)).answer).to.match(/gatehouse\.db: .*in use/);
    await store.collection('credentials').insert({ id: 'a', passwordHash: 'x', history: [] });
    await store.close();
    expect((await start(dataDir)).answer).to.equal('open');
  });

  it('opens after the first process was killed', async () => {
    const { child, answer } = await start(dataDir);
    expect(answer).to.equal('open');
    expect(await rejection(openStore({ dataDir, clock: Date.now }))).to.match(/in use/);
    await kill(child);
    await (await openStore({ dataDir, clock: Date.now })).close();
  });
});
