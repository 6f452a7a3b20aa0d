// A folder with the files of a tenant, and the orders that its commands give to a server.
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createLog } from '../../src/runtime/log.ts';
import { runOrder } from '../../src/server/administration/orders.ts';
import { loadTenantFile } from '../../src/tenant/load.ts';
import type { TestServer } from './server.ts';

export interface TenantFolder {
  path: string;
  /** Writes a text, or anything else as JSON. */
  write(name: string, content: unknown): Promise<string>;
  remove(): Promise<void>;
}

export async function tenantFolder(): Promise<TenantFolder> {
  const path = await mkdtemp(join(tmpdir(), 'gatehouse-folder-'));
  return {
    path,
    write: async (name, content) => {
      const file = join(path, name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content, undefined, 2));
      return file;
    },
    remove: () => rm(path, { recursive: true }),
  };
}

/** Plans or applies a tenant file or folder, as the commands do. @returns a line for each change. */
export async function order(
  server: TestServer,
  command: 'plan' | 'apply',
  { path, env = {} }: { path: string; env?: Record<string, string> },
): Promise<string[]> {
  const { tenant } = await loadTenantFile(path, env);
  const { settings, store, users, administrators } = server;
  return (await runOrder(
    {
      settings,
      store,
      users,
      administrators,
      clock: Date.now,
      random: randomBytes,
      log: createLog('silent'),
      events: server.tenant.events,
      endBlocked: async () => undefined,
      resumeRemovals: server.tenant.resumeRemovals,
      checkConnections: server.tenant.checkConnections,
    },
    { command, tenant },
  )) as string[];
}
