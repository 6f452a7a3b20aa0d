import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { openStore } from '../../src/store/open.ts';
import { aUser } from './contract.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const caches = join(repository, 'node_modules', '.cache');

/** Compiles the engine to JavaScript below node_modules, as in the published package. */
async function emit(directory: string): Promise<string> {
  const configuration = {
    extends: join(repository, 'tsconfig.json'),
    compilerOptions: { noEmit: false, noCheck: true, outDir: join(directory, 'dist'), rootDir: repository },
    include: [],
    files: ['open.ts', 'sqlite/sqlite-worker.ts'].map((file) => join(repository, 'src', 'store', file)),
  };
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(configuration));
  const compiler = createRequire(import.meta.url).resolve('typescript/package.json');
  await promisify(execFile)(process.execPath, [join(dirname(compiler), 'bin', 'tsc'), '-p', directory]);
  return join(directory, 'dist', 'src', 'store', 'open.js');
}

describe('the embedded store in the published package', () => {
  it('opens, writes in its thread and closes, as JavaScript', async () => {
    await mkdir(caches, { recursive: true });
    const directory = await mkdtemp(join(caches, 'gatehouse-store-'));
    try {
      const engine: { openStore: typeof openStore } = await import(pathToFileURL(await emit(directory)).href);
      const faults: unknown[] = [];
      const log = { warn: () => {}, error: (fault: unknown) => faults.push(fault) };
      const dataDir = join(directory, 'data');
      const store = await engine.openStore({ dataDir, clock: Date.now, log });
      await store.collection('users').insert(aUser('user1'));
      await store.close();
      expect(faults).to.deep.equal([]);
      const again = await engine.openStore({ dataDir, clock: Date.now, log });
      expect((await again.collection('users').list()).records).to.deep.equal([aUser('user1')]);
      await again.close();
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
