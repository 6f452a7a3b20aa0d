// The whole HTTP surface of one tenant: the middleware order, and what is mounted where.
import Koa from 'koa';
import type { Logger } from 'pino';
import type { Clock, Random } from './http/runtime.ts';
import type { Settings } from './settings.ts';
import type { Store } from './store/contract.ts';

/** What a tenant is built from; nothing else is reached for. */
export interface TenantDependencies {
  settings: Settings;
  store: Store;
  log: Logger;
  clock: Clock;
  random: Random;
}

export interface Tenant {
  app: Koa;
  /** Waits for background work; the store is the caller's to close. */
  close(): Promise<void>;
}

/**
 * Builds the server of the tenant whose file was applied to the store.
 * @throws Error when the store holds no tenant.
 */
export async function createTenant(_deps: TenantDependencies): Promise<Tenant> {
  const app = new Koa();
  return { app, close: async () => {} };
}
