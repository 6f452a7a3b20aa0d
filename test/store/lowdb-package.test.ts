import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { openLowdbStore } from '../../src/store/lowdb.ts';
import { aUser } from './contract.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const caches = join(repository, 'node_modules', '.cache');

/** Emits the engine as the published package has it: JavaScript, below node_modules. */
async function emit(directory: string): Promise<string> {
  const configuration = {
    extends: join(repository, 'tsconfig.json'),
    compilerOptions: { noEmit: false, outDir: join(directory, 'dist'), rootDir: repository },
    include: [],
    files: ['lowdb.ts', 'lowdb-fold-worker.ts'].map((file) => join(repository, 'src', 'store', file)),
  };
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify(configuration));
  const compiler = createRequire(import.meta.url).resolve('typescript/package.json');
  await promisify(execFile)(process.execPath, [join(dirname(compiler), 'bin', 'tsc'), '-p', directory]);
  return join(directory, 'dist', 'src', 'store', 'lowdb.js');
}

describe('lowdb store in the published package', () => {
  it('opens, folds in its thread and closes as JavaScript', async () => {
    await mkdir(caches, { recursive: true });
    const directory = await mkdtemp(join(caches, 'gatehouse-store-'));
    try {
      const engine: { openLowdbStore: typeof openLowdbStore } = await import(
        pathToFileURL(await emit(directory)).href
      );
      const faults: unknown[] = [];
      const log = { warn: () => {}, error: (fault: unknown) => faults.push(fault) };
      const dataDir = join(directory, 'data');
      const store = await engine.openLowdbStore({ dataDir, clock: Date.now, log, foldBytes: 1 });
      await store.collection('users').insert(aUser('user1'));
      await store.close();
      expect(faults).to.deep.equal([]);
      const snapshot = await readFile(join(dataDir, 'store', 'users.json'), 'utf8');
      expect(JSON.parse(snapshot).records).to.deep.equal([aUser('user1')]);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
