// A server of several processes over its own PostgreSQL.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { readSettings } from '../../src/settings/index.ts';
import { listAll } from '../../src/store/list-all.ts';
import { openStore } from '../../src/store/open.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { runServer, type ServerProcess } from '../support/process.ts';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';

const SECRETS_KEY = '0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9';

export interface Processes {
  server: ServerProcess;
  cluster: Cluster;
  mail: TestMailServer;
  /** The worker processes. */
  workers(): number[];
  /** Makes all deliveries due, as if the attempts of other processes had timed out. */
  freeDeliveries(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the processes. @param count the number of workers. @param durable whether the database survives its own crash. */
export async function startProcesses(count: number, file: object, durable = false): Promise<Processes> {
  const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-processes-'));
  const mail = await startMailServer();
  const cluster = await startCluster({ durable });
  writeFileSync(join(cwd, 'tenant.yaml'), stringify(file));
  const server = await runServer({
    cwd,
    env: {
      TENANT_FILE: 'tenant.yaml',
      DATABASE_URL: cluster.url(),
      SECRETS_KEY,
      WORKERS: String(count),
      SMTP_URL: mail.url,
      MAIL_FROM: 'login@example.test',
    },
  });
  const { pid } = server.child;
  return {
    server,
    cluster,
    mail,
    workers: () => {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
      return children === '' ? [] : children.split(' ').map(Number);
    },
    freeDeliveries: async () => {
      const { secretsKey } = readSettings({ SECRETS_KEY });
      const dataDir = join(cwd, 'beside');
      const store = await openStore({ dataDir, databaseUrl: cluster.url(), secretsKey, clock: Date.now });
      const deliveries = store.collection('deliveries');
      const dueAt = new Date(0).toISOString();
      for (const { id } of await listAll(deliveries))
        await deliveries.update(id, (one) => ({ ...one, dueAt }));
      await store.close();
    },
    stop: async () => {
      const { exitCode, signalCode } = server.child;
      if (exitCode === null && signalCode === null) await server.end('SIGKILL');
      await cluster.stop();
      await mail.stop();
      rmSync(cwd, { recursive: true, force: true });
    },
  };
}
