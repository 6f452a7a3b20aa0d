// Starts and stops a server, for the process and for tests.

import type http from 'node:http';
import type { Logger } from 'pino';
import { createServers, MAX_HEAD_BYTES } from '../capabilities/tls/servers.ts';
import { tlsOptions } from '../capabilities/tls/tls-options.ts';
import { managementAudience } from '../features/management/management-audience.ts';
import type { Metrics } from '../features/metrics/registry.ts';
import { serveMetrics } from '../features/metrics/serve.ts';
import { switchMetricsOn } from '../features/metrics/switch.ts';
import { inTurns } from '../http/server/application.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';
import { type Clock, steadyClock, systemClock } from '../runtime/clock.ts';
import { type Random, systemRandom } from '../runtime/secrets.ts';
import type { Tracing } from '../runtime/tracing.ts';
import { VERSION } from '../runtime/version.ts';
import { wrapError } from '../runtime/wrap-error.ts';
import { readSettings, type Settings } from '../settings/index.ts';
import { isForThisMachine } from '../settings/server.ts';
import { boundedStore } from '../store/bounded.ts';
import type { Store } from '../store/contract.ts';
import { tracedStore } from '../store/instrumented.ts';
import { openStore } from '../store/open.ts';
import { applyTenant } from '../tenant/apply.ts';
import { storedDomainWarnings } from '../tenant/custom-domain-warnings.ts';
import { endingWarnings } from '../tenant/endings.ts';
import type { LoadedTenant } from '../tenant/load.ts';
import { RemovalPending } from '../tenant/pending-removals.ts';
import { storedFaults } from '../tenant/stored.ts';
import { type Administrators, createAdministrators } from '../users/administrators.ts';
import { createHasher, type Hasher } from '../users/hashing.ts';
import { createUsers, type TenantUsers } from '../users/users.ts';
import { applyFile } from './administration/orders.ts';
import { listenForOrders } from './administration/socket.ts';
import { listenAll } from './listen.ts';
import type { TenantDependencies } from './parts.ts';
import { checkFile, exampleLeft, refuseStore } from './start-checks.ts';
import { STOP_BUDGET, stopWithin, trackConnections } from './stop.ts';
import { createTenant, type Tenant } from './tenant.ts';

/** What a start is given. Tests inject the dependencies of the tenant; the store uses the spare threads, too. */
interface StartOptions extends Pick<TenantDependencies, 'maxWait' | 'pause' | 'spareThreads' | 'waits'> {
  env: Readonly<Record<string, string | undefined>>;
  log: Logger;
  /** Reads the tenant file that the settings name. */
  loadTenant(settings: Settings): Promise<LoadedTenant>;
  /** The wall clock, which may be set back. */
  clock?: Clock;
  random?: Random;
  hasher?: Hasher;
  /** Opens the store; {@link openStore} by default. */
  open?: typeof openStore;
  /** Undefined where no traces are collected. */
  tracing?: Tracing | undefined;
  /**
   * Whether this process is one of several that share a database. Commands then write to the database themselves, so no
   * socket is opened for them.
   */
  isWorker?: boolean;
  /** Multiplies the bounds of what is kept for strangers; tests use less. */
  boundsScale?: number;
}

export interface Running {
  settings: Settings;
  /** Path of the CA certificate to trust, in development. */
  caFile: string | undefined;
  metricsPort?: number;
  store: Store;
  users: TenantUsers;
  administrators: Administrators;
  tenant: Tenant;
  /**
   * Takes over what differs between two versions of the tenant file, the newer of which has no faults. Undefined in a
   * process that is one of several.
   * @returns a line for each change.
   */
  follow: ((file: TenantFile, former: TenantFile) => Promise<string[]>) | undefined;
  /**
   * Finishes requests in flight, flushes and closes the store.
   * @param within time for all of it, milliseconds (default: {@link STOP_BUDGET}).
   * @param isGraceful whether kept-alive connections stay open for another half second, so that no client meets a closed
   * one.
   */
  stop(within?: number, isGraceful?: boolean): Promise<void>;
}

/**
 * Starts the server: it listens when the promise resolves.
 * @throws SettingsFault, TenantFault, or an Error with the reason in one sentence.
 */
export async function startGatehouse(options: StartOptions): Promise<Running> {
  const {
    env,
    log,
    clock: wallClock = systemClock,
    random = systemRandom,
    hasher = createHasher(),
    open = openStore,
    waits = {},
  } = options;
  const clock = steadyClock(wallClock);
  const settings = readSettings(env);
  const loaded = await options.loadTenant(settings);
  checkFile(settings, loaded, log);

  const { dataDir, databaseUrl, secretsKey } = settings;
  const { pause, maxWait, spareThreads } = options;
  const storeOptions = { dataDir, databaseUrl, secretsKey, searchMs: waits.search, spareThreads };
  const opened = await open({ ...storeOptions, clock, wallClock, log, random });
  try {
    const { tracing } = options;
    const { store: unbounded, metrics } = await withMetrics(tracing ? tracedStore(opened, tracing) : opened, {
      isMeasured: settings.metrics !== undefined,
      hasher,
      clock: wallClock,
    });
    const store = boundedStore(unbounded, { clock, log, scale: options.boundsScale });
    for (const warning of await endingWarnings(store, wallClock())) log.warn(warning);
    const users = createUsers({ store, hasher, clock, random });
    const administrators = createAdministrators({ store, hasher, clock, random });
    if (settings.production)
      refuseStore(settings, 'is not fit for production', await exampleLeft(store, { users, administrators }));
    const deps: TenantDependencies = {
      settings,
      store,
      users,
      administrators,
      log,
      clock,
      wallClock,
      random,
      waits,
      spareThreads,
      ...(pause && { pause }),
      ...(maxWait !== undefined && { maxWait }),
      metrics,
      tracing,
    };
    const { isWorker = false } = options;
    const running = await listenWithTenant({ ...deps, file: loaded.tenant, isWorker });
    return await serveMetricsBeside(running, metrics);
  } catch (thrown) {
    await opened.close();
    throw thrown;
  }
}

/** Returns the store to use, and the metrics. Where metrics are on, the store is one that measures each call. */
async function withMetrics(
  store: Store,
  { isMeasured, ...of }: { isMeasured: boolean; hasher: Hasher; clock: Clock },
): Promise<{ store: Store; metrics: Metrics | undefined }> {
  return isMeasured ? switchMetricsOn({ store, ...of, version: VERSION }) : { store, metrics: undefined };
}

/** Logs the warnings about the configuration in a store. @throws Error if it has faults. */
async function checkStored({
  settings,
  store,
  log,
}: Pick<TenantDependencies, 'settings' | 'store' | 'log'>): Promise<void> {
  const faults = await storedFaults(store);
  refuseStore(settings, 'cannot be served; correct the tenant file and run gatehouse apply', faults);
  for (const warning of await storedDomainWarnings(store, settings.baseUrl)) log.warn(warning);
}

/** Listens, applies the tenant file to an open store, and builds the tenant. */
async function listenWithTenant({
  file,
  isWorker,
  ...deps
}: TenantDependencies & { file: TenantFile; isWorker: boolean }): Promise<Running> {
  const { settings: initial, store, users, administrators, wallClock } = deps;
  const tls = await tlsOptions(initial, wallClock);
  for (const warning of tls.warnings) deps.log.warn(warning);
  const servers = createServers({
    secure: tls.secure,
    port: initial.port,
    mtls: initial.mtls && { ...initial.mtls, ca: tls.clientCa },
    maxHeaderSize: isForThisMachine(initial) ? MAX_HEAD_BYTES.onThisMachine : MAX_HEAD_BYTES.elsewhere,
  });
  const connections = trackConnections(servers);
  // Requests that arrive before the tenant is built wait for it.
  const app = Promise.withResolvers<http.RequestListener>();
  const handle = inTurns((request, response) => void app.promise.then((one) => one(request, response)));
  for (const server of servers) server.on('request', handle);
  const settings = await listenAll(servers, initial, deps.log);
  try {
    const pending = await createMissing({ ...deps, settings }, file);
    await checkStored({ settings, store, log: deps.log });
    const tenant = await createTenant({ ...deps, settings });
    if (pending !== undefined) {
      deps.log.warn(`the start waits for a removal: ${pending.message}`);
      await tenant.completeRemovals();
      await createMissing({ ...deps, settings }, file);
    }
    app.resolve(tenant.app.callback());
    await tenant.checkConnections();
    const orderDependencies = {
      ...deps,
      ...tenant,
      settings,
      clock: wallClock,
    };
    const orders = isWorker ? undefined : await listenForOrders(settings.dataDir, orderDependencies);
    const stop = (within = STOP_BUDGET, isGraceful = false) => {
      const ordersClosed = orders?.close();
      return stopWithin(within, {
        servers,
        connections,
        drain: tenant.drain,
        finish: tenant.close,
        closeStore: async () => {
          await ordersClosed;
          await store.close();
        },
        log: deps.log,
        isGraceful,
      });
    };
    const follow =
      orders &&
      ((next: TenantFile, former: TenantFile) =>
        orders.inTurn(async () => {
          const { changes, notes } = await applyFile(orderDependencies, next, { mode: 'follow', former });
          return [...changes, ...notes];
        }));
    return { settings, caFile: tls.caFile, store, users, administrators, tenant, follow, stop };
  } catch (thrown) {
    for (const server of servers) server.close();
    connections.closeAll();
    throw thrown;
  }
}

/**
 * Creates what the tenant file has and the store does not.
 * @returns why nothing was created, if something in the file has the name of a connection or API that is being removed.
 */
async function createMissing(
  { store, users, random, settings }: TenantDependencies,
  file: TenantFile,
): Promise<RemovalPending | undefined> {
  const own = { store, users, random, managementAudience: managementAudience(settings.issuer) };
  try {
    await applyTenant(own, file, { mode: 'create-missing', users: !settings.production });
    return undefined;
  } catch (thrown) {
    if (thrown instanceof RemovalPending) return thrown;
    throw thrown;
  }
}

/** Also listens at the port of metrics, where they have one. @throws Error with the reason. */
async function serveMetricsBeside(running: Running, metrics: Metrics | undefined): Promise<Running> {
  const metricsSettings = running.settings.metrics;
  if (metrics === undefined || metricsSettings?.port === undefined) return running;
  const { port, host } = metricsSettings;
  const server = await serveMetrics(metrics, { ...metricsSettings, port }).catch(async (thrown: unknown) => {
    await running.stop();
    return wrapError(`METRICS_HOST, METRICS_PORT: cannot listen on port ${port} of ${host}`)(thrown);
  });
  const stop = (within?: number, isGraceful?: boolean) => {
    server.close();
    return running.stop(within, isGraceful);
  };
  return { ...running, metricsPort: server.port, stop };
}
