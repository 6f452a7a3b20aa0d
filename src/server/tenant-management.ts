// The dependencies of the Management API, and its background work: it resumes removals and jobs that a stop cut short.
import { join } from 'node:path';
import { warnOfMissingPackages } from '../capabilities/actions/warn-of-packages.ts';
import { createLocks } from '../capabilities/protection/locks.ts';
import { rotateSigningKeys } from '../capabilities/signing/keys.ts';
import { makeSigningKey } from '../capabilities/signing/make-key.ts';
import { consentAudience } from '../engine/authorize/consents.ts';
import { refreshTokenDirectory } from '../engine/session/refresh-directory.ts';
import { sessionDirectory } from '../engine/session/session-directory.ts';
import type { accountEndings } from '../features/account/account-endings.ts';
import { accountApi } from '../features/account/api.ts';
import type { DatabaseRequest } from '../features/connections/database/custom-run.ts';
import { findInCustomDatabase } from '../features/connections/database/custom-user.ts';
import { issueTicketLink } from '../features/connections/database/ticket-link.ts';
import { askToVerify } from '../features/connections/database/verification-link.ts';
import { firstMethod } from '../features/connections/first-method.ts';
import { renewProviderTokens } from '../features/connections/refresh.ts';
import { importMetadata } from '../features/connections/samlp/provider.ts';
import { consoleOrigin } from '../features/console/settings.ts';
import { exportPath } from '../features/console/users/transfer.ts';
import { issueEnrollment } from '../features/factors/enrollment-ticket.ts';
import { losesFactor } from '../features/factors/policy.ts';
import { renewRecoveryCode } from '../features/factors/recovery/codes.ts';
import { managementApi } from '../features/management/api.ts';
import { managementAudience } from '../features/management/audience.ts';
import { resumeConnectionRemovals } from '../features/management/connection-removal.ts';
import type { ManagementFeatureDependencies } from '../features/management/feature.ts';
import { exportLink } from '../features/management/jobs/links.ts';
import { createUserJobs } from '../features/management/jobs/user-jobs.ts';
import { startLogStreams } from '../features/management/log-streams/streams.ts';
import { resumePermissionRemovals } from '../features/management/permission-removal.ts';
import type { Background } from '../runtime/background.ts';
import type { Leases } from '../store/leases.ts';
import type { TenantConfig } from '../tenant/config.ts';
import type { TenantUsers } from '../users/users.ts';
import type { Capabilities, ServedDependencies, TenantDependencies } from './capabilities.ts';
import type { TenantEngine } from './tenant-engine.ts';

/** The capabilities without the console's records and the administrators. */
type ShownCapabilities = Omit<Capabilities, 'users' | 'config'> & {
  users: TenantUsers;
  config: TenantConfig;
};

/**
 * Returns the dependencies of the Management API, by name, and starts its background work.
 * @param own the functions that end sessions and accounts; `ending` is aborted when the server begins to stop.
 */
function managementDependencies(
  deps: TenantDependencies,
  capabilities: ShownCapabilities,
  tenantEngine: TenantEngine,
  own: ReturnType<typeof accountEndings> & { ending: AbortSignal },
): ManagementFeatureDependencies {
  const { settings, store, users, clock, wallClock, random } = deps;
  const { baseUrl, issuer } = settings;
  const { engine, factorDependencies, upstream } = tenantEngine;
  const { sessions, readIdTokenProof } = engine;
  const { config, events, challenges, background, authenticators, browsers, leases, messages } = capabilities;
  const tenantName = new URL(baseUrl).hostname;
  const now = () => new Date(wallClock()).toISOString();
  const proofOf = (connection: string) => firstMethod(config, connection);
  startWork(deps, capabilities, own.ending);
  return {
    ...own,
    baseUrl,
    providers: capabilities.providers,
    ...atOtherServers(capabilities),
    issueEnrollment: (enrollment) => issueEnrollment(factorDependencies, enrollment),
    issueTicket: (kind, ticket) => issueTicketLink({ baseUrl, challenges, random, users }, kind, ticket),
    jobs: resumedJobs(deps, { ...own, background, leases, now, endSessions: own.endBlocked }),
    linkTo: exportLinks(deps),
    askToVerify: async (user, connection, clientId, ip) => {
      const client = clientId === undefined ? undefined : await config.client(clientId);
      await askToVerify({ baseUrl, challenges, messages }, { user, connection, client, languages: [], ip });
    },
    ...ownApis(deps, capabilities, tenantEngine),
    authenticators,
    background,
    clock,
    dns: capabilities.dns,
    audienceOf: (key) => consentAudience(issuer, key),
    config,
    endSessions: async (userId, reason) => {
      await sessions.endAllOf(userId, { reason, refreshTokens: true });
    },
    events,
    makeSigningKey: (alg) => makeSigningKey(wallClock, tenantName, alg),
    losesFactor: (users) => losesFactor(factorDependencies, users),
    messages,
    forgetBrowsers: (userId) => browsers.forgetAllOf(userId),
    locks: createLocks({ store, config, clock }),
    now,
    ...codeTools(capabilities),
    random,
    readIdTokenProof,
    refreshTokens: refreshTokenDirectory({ store, config, challenges }),
    renewProviderTokens: renewProviderTokens({ ...upstream, leases, users, log: deps.log }),
    renewRecoveryCode: (userId) => renewRecoveryCode({ authenticators, random }, userId),
    rotateKeys: (alg) => rotateSigningKeys(store, wallClock, tenantName, alg, capabilities.keyHolder),
    sessionDirectory: sessionDirectory({ store, config, clock, wallClock, sessions, firstMethod: proofOf }),
    scopesOf: async (audience) => (await config.resourceServer(audience))?.scopes.map(({ value }) => value),
    store,
    tenantName,
    users,
  };
}

/** Returns what asks other servers for documents. */
const atOtherServers = ({ outbound, xml }: ShownCapabilities) => ({
  outbound,
  importMetadata: (strategy: string, options: Record<string, unknown>) =>
    importMetadata({ ...outbound, xml }, strategy, options),
});

/** Returns our own APIs, what decides whom an access token for the Management API stands for, and its log. */
const ownApis = (
  { settings: { issuer }, wallClock, log }: TenantDependencies,
  { config }: Pick<ShownCapabilities, 'config'>,
  engine: TenantEngine,
) => ({
  systemApis: () => [managementApi(issuer, config.settings().managementApi), accountApi(issuer)],
  audience: managementAudience(issuer),
  readToken: engine.readCallerToken,
  isSufficient: engine.secondFactor.isSufficient,
  log,
  wallClock,
});

/** Returns how the file of an export is linked to: an administrator's link asks for the session and the role again. */
function exportLinks({ settings, clock }: TenantDependencies): ManagementFeatureDependencies['linkTo'] {
  const { baseUrl } = settings;
  return (job, { administrator }) =>
    administrator === undefined
      ? exportLink({ clock, baseUrl }, job)
      : `${consoleOrigin(settings)}${exportPath(job.id)}`;
}

/** Returns the dependencies of the Management API. The console's records and the administrators are hidden from it. */
export function managementOf(
  deps: ServedDependencies,
  capabilities: Capabilities,
  ...more: [TenantEngine, Parameters<typeof managementDependencies>[3]]
): ReturnType<typeof managementDependencies> {
  const { tenantConfig: config, tenantUsers: users } = capabilities;
  return managementDependencies({ ...deps, users }, { ...capabilities, config, users }, ...more);
}

/** Returns the functions about the tenant's own code: packages, tests of an action, databases with scripts. */
const codeTools = ({ packages, tryAction, customDatabases, users, views }: ShownCapabilities) => ({
  liquid: views.liquid,
  packages,
  tryAction,
  findInCustomDatabase: (asked: DatabaseRequest) => findInCustomDatabase({ customDatabases, users }, asked),
});

/** Starts the background work of the Management API. */
function startWork(deps: TenantDependencies, capabilities: ShownCapabilities, ending: AbortSignal): void {
  sendLogStreams(deps, capabilities, ending);
  const check = () => warnOfMissingPackages({ ...deps, ...capabilities });
  capabilities.background.run('a look at the packages of actions', check);
}

/** Starts the log streams of the tenant. */
function sendLogStreams(
  deps: TenantDependencies,
  capabilities: ShownCapabilities,
  ending: AbortSignal,
): void {
  const { logStreamFiles, dataDir } = deps.settings;
  startLogStreams({
    ...deps,
    ...capabilities,
    // The clock that the events' ids are made with.
    clock: deps.store.sharedClock ?? deps.clock,
    ending,
    filesDirectory: logStreamFiles ? join(dataDir, 'log-streams') : undefined,
    measures: deps.metrics?.measures,
  });
}

/** How often removals that other processes have left are looked for, milliseconds. */
const RESUME_INTERVAL = 60_000;

/**
 * Makes the imports and exports of users. Also resumes those that the last stop cut short, and removals of connections.
 */
function resumedJobs(
  { store, clock, random, log }: TenantDependencies,
  own: Pick<ReturnType<typeof accountEndings>, 'endSessions' | 'removeUser'> & {
    background: Background;
    leases: Leases;
    now(): string;
    ending: AbortSignal;
  },
) {
  const removals = { store, clock, ...own };
  const resume = () =>
    own.background.run('removals that were noted', async () => {
      await own.leases.ifFree('removals', () => resumeRecordRemovals(removals, removals));
    });
  resume();
  // Other processes, commands among them, may have recorded removals and ended before doing them.
  if (store.exclusive !== true) {
    const timer = setInterval(resume, RESUME_INTERVAL).unref();
    own.ending.addEventListener('abort', () => clearInterval(timer));
  }
  const jobs = createUserJobs({ store, clock, random, log, ...own });
  jobs.resume();
  return jobs;
}

/** Completes the removal of what belonged to deleted connections and APIs: users, permissions. */
export async function resumeRecordRemovals(
  { store, clock }: Pick<TenantDependencies, 'store' | 'clock'>,
  { removeUser }: { removeUser(userId: string): Promise<void> },
): Promise<void> {
  const deps = { store, now: () => new Date(clock()).toISOString(), removeUser };
  await Promise.all([resumeConnectionRemovals(deps), resumePermissionRemovals(store)]);
}
