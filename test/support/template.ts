// A data directory as after a first start, created once per process: creating keys and certificates takes longer than
// the rest of a start, and few tests are about it.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureSigningKeys } from '../../src/capabilities/signing/signing-key-list.ts';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { openStore } from '../../src/store/open.ts';
import { SCRATCH } from './scratch-directory.ts';

let template: Promise<string> | undefined;

/** Puts ready-made signing keys and, with `tls`, the local CA and its certificate into an empty data directory. */
export async function fillDataDir(directory: string, tls: boolean): Promise<void> {
  template ??= makeTemplate();
  const from = await template;
  for (const name of tls ? ['store', 'keys', 'tls'] : ['store', 'keys']) {
    cpSync(join(from, name), join(directory, name), { recursive: true });
  }
}

async function makeTemplate(): Promise<string> {
  const dataDir = mkdtempSync(join(SCRATCH, 'gatehouse-template-'));
  process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }));
  const store = await openStore({ dataDir, clock: Date.now });
  await ensureSigningKeys(store, Date.now, 'localhost');
  await store.close();
  const { TEST_TEMPLATE_DIRECTORY: shared } = process.env;
  // One CA for all servers of a run: a test may have one server with the database of the run, and one without.
  if (shared !== undefined) cpSync(join(shared, 'tls'), join(dataDir, 'tls'), { recursive: true });
  else await localCertificate(join(dataDir, 'tls'), ['localhost', '127.0.0.1', '::1'], Date.now);
  return dataDir;
}
