// Runs the given test files, or all, over PostgreSQL: `npm run test:postgres [files]`. The server is the one in
// TEST_DATABASE_URL, whose user must be able to create databases, or one that npm has installed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureSigningKeys } from '../../src/capabilities/signing/signing-key-list.ts';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { openStore } from '../../src/store/open.ts';
import { queryOnce, startCluster } from '../support/postgres.ts';
import { databaseUrl, TEMPLATE } from '../support/postgres-databases.ts';

const given = process.env.TEST_DATABASE_URL;
const cluster = given === undefined ? await startCluster() : undefined;
const server = given ?? cluster?.url() ?? '';
const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-template-'));
try {
  await queryOnce(server, `DROP DATABASE IF EXISTS ${TEMPLATE}`);
  await queryOnce(server, `CREATE DATABASE ${TEMPLATE}`);
  const store = await openStore({ dataDir, databaseUrl: databaseUrl(server, TEMPLATE), clock: Date.now });
  await ensureSigningKeys(store, Date.now, 'localhost');
  await store.close();
  await localCertificate(join(dataDir, 'tls'), ['localhost', '127.0.0.1', '::1'], Date.now);
  // Each write waits for another process, which shares the processors with the tests.
  const patience = ['--timeout', '240000'];
  const mocha = spawn(process.execPath, ['node_modules/mocha/bin/mocha.js', ...patience, ...files()], {
    stdio: 'inherit',
    env: { ...process.env, TEST_DATABASE_URL: server, TEST_TEMPLATE_DIRECTORY: dataDir },
  });
  const [code] = await once(mocha, 'exit');
  process.exitCode = code ?? 1;
} finally {
  await cluster?.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

/** The arguments for mocha: as in `npm test` if none are given. */
function files(): string[] {
  const arguments_ = process.argv.slice(2);
  if (arguments_.length > 0) return arguments_;
  const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return String(scripts.test)
    .split(' ')
    .slice(1)
    .map((word) => word.replaceAll('"', ''));
}
