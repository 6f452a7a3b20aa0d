// The second step of a tenant: the engine, and what is made of it. All capabilities together are one object; each name has one
// meaning, and a feature says which of them it needs.

import { readFile } from 'node:fs/promises';
import { timerPause } from '../capabilities/delivery/deliveries.ts';
import { createLocks } from '../capabilities/protection/locks.ts';
import type { Scripts } from '../capabilities/scripts/scripts.ts';
import { makeSigningKey } from '../capabilities/signing/make-key.ts';
import { rotateSigningKeys } from '../capabilities/signing/signing-key-list.ts';
import type { Engine } from '../engine/provider/provider.ts';
import { refreshTokenDirectory } from '../engine/session/refresh-directory.ts';
import { sessionDirectory } from '../engine/session/session-directory.ts';
import { consentAudience } from '../engine/token/token-grants.ts';
import type { VendorGrant } from '../engine/token/tokens.ts';
import { accountEndings } from '../features/account/account-endings.ts';
import type { Actor } from '../features/account/actor.ts';
import { accountApi } from '../features/account/api.ts';
import { ACCOUNT } from '../features/account/page/account-callbacks.ts';
import { logoutAtProvider } from '../features/connections/connections-logout.ts';
import type { DatabaseRequest } from '../features/connections/database/custom/custom-run.ts';
import { findInCustomDatabase } from '../features/connections/database/custom/custom-user.ts';
import { customDatabases } from '../features/connections/database/custom/database-custom.ts';
import { issueTicketLink } from '../features/connections/database/mailed-links/ticket-link.ts';
import { linkAfterLogin } from '../features/connections/linking/after-login.ts';
import { loginPages } from '../features/connections/login-page.ts';
import { offerAfterLogin } from '../features/connections/passkeys/enrollment.ts';
import { renewProviderTokens } from '../features/connections/refresh.ts';
import { describeConnections } from '../features/connections/resolve.ts';
import { importMetadata } from '../features/connections/samlp/provider.ts';
import { exampleOf } from '../features/console/administrators/example.ts';
import { TRY_RESULT } from '../features/console/connections/shared.ts';
import { CONSOLE } from '../features/console/console-callbacks.ts';
import type { ConsoleDependencies } from '../features/console/console-feature.ts';
import { exportPath } from '../features/console/users/transfer.ts';
import { issueEnrollment } from '../features/factors/enrollment-ticket.ts';
import { renewRecoveryCode } from '../features/factors/recovery/codes.ts';
import { createFinish } from '../features/flow/finish.ts';
import { createShowNext } from '../features/flow/flow-routes.ts';
import type { LogoutDependencies } from '../features/logout/logout-feature.ts';
import { managementApi } from '../features/management/api.ts';
import { exportLink } from '../features/management/jobs/links.ts';
import { createUserJobs } from '../features/management/jobs/user-jobs.ts';
import type { ManagementFeatureDependencies } from '../features/management/management-feature.ts';
import { managementOpenApi } from '../features/management/openapi.ts';
import type { Connection } from '../records/collections.ts';
import { firstMethodOf } from '../records/users/first-methods.ts';
import type { Settings } from '../settings/index.ts';
import type { Config } from '../tenant/config.ts';
import { retentionDays } from '../tenant/events.ts';
import type { Parts, TenantDependencies } from './parts.ts';

/** @param parts what was made before the engine. */
export function createCapabilities(
  deps: TenantDependencies,
  parts: Parts,
  { engine, grants }: { engine: Engine; grants: readonly VendorGrant[] },
) {
  const made = { ...parts, ...engine, credentialGrants: grants.filter((one) => one.givesTicket) };
  const ending = { ...made, ...loginEnds(made) };
  const pages = { ...ending, ...pageCapabilities(ending) };
  const account = { ...pages, ...accountCapabilities(pages) };
  const shown = { ...account, ...managementCapabilities(account) };
  return { ...shown, ...consoleCapabilities(deps, shown) };
}

export type Capabilities = ReturnType<typeof createCapabilities>;

type Made = Parts & Engine & { credentialGrants: VendorGrant[] };

/** Returns what ends a login in the browser, and what ends with an account: a login may link two accounts. */
function loginEnds(made: Made) {
  const endings = accountEndings(made);
  const afterLogin = offerAfterLogin(made, linkAfterLogin({ ...made, ...endings }));
  return { ...endings, finish: createFinish({ ...made, afterLogin }) };
}

type Ended = Made & ReturnType<typeof loginEnds>;

/** Returns what the pages of a login ask of each other. */
function pageCapabilities(made: Ended) {
  const { config } = made;
  const loginPageOf = loginPages(made);
  return {
    loginPageOf,
    showNext: createShowNext({ ...made, loginPageOf }),
    describeConnections: (clientId: string, organization?: string) =>
      describeConnections(config, clientId, organization),
    logoutAtProvider: (async (session, back) =>
      (await made.oldSessions.logoutUrl(session, back.returnTo)) ??
      (session && logoutAtProvider(made, session, back))) as LogoutDependencies['logoutAtProvider'],
    refuse: made.authorization.refuse,
    tokenEndpoint: made.tokens.token,
    allowLoopback: made.isForThisMachine,
    /** Endpoints beyond the standards that features have, by their names in the metadata. */
    endpoints: { mfa_challenge_endpoint: `${made.baseUrl}/mfa/challenge` },
    testUrl: `${made.consoleUrl}${TRY_RESULT}`,
  };
}

/** How long a user may take to set a new password at the account page, seconds. */
const PASSWORD_SECONDS = 600;

/** Returns what the account page and the My Account API need beside the rest. */
function accountCapabilities(made: Ended) {
  const { baseUrl, store, config, challenges, random, users, sessions } = made;
  return {
    endOtherSessions: async (userId: string, keepSid: string) => {
      await sessions.endAllOf(userId, { reason: 'session-revoked', keepSid, refreshTokens: true });
    },
    passwordLink: ({ user, clientId, login }: Actor, connection: Connection) =>
      issueTicketLink({ baseUrl, challenges, random, users }, 'reset', {
        user,
        connection,
        clientId,
        ttlSeconds: PASSWORD_SECONDS,
        resultUrl: `${baseUrl}${ACCOUNT}`,
        includeEmail: false,
        marksVerified: false,
        session: login.id,
      }),
    refreshTokens: refreshTokenDirectory({ store, config, challenges }),
    sessionDirectory: sessionDirectory({
      ...made,
      firstMethod: firstMethodIn(config),
    }),
  };
}

/**
 * Returns what the Management API needs beside the rest. Where a user or an application is read, it is one of the tenant: the
 * API shows neither the administrators nor the console.
 */
function managementCapabilities(made: Ended) {
  const { baseUrl, issuer, store, clock, wallClock, random } = made;
  const { challenges, authenticators, browsers, customDatabases, keyHolder, outbound, xml } = made;
  const { sessions, tenantUsers: users, tenantConfig: config } = made;
  const tenantName = new URL(baseUrl).hostname;
  const now = () => new Date(wallClock()).toISOString();
  return {
    tenantName,
    now,
    importMetadata: (strategy: string, options: Record<string, unknown>) =>
      importMetadata({ ...outbound, xml }, strategy, options),
    issueEnrollment: ((enrollment) =>
      issueEnrollment(made, enrollment)) as ManagementFeatureDependencies['issueEnrollment'],
    issueTicket: ((kind, ticket) =>
      issueTicketLink(
        { baseUrl, challenges, random, users },
        kind,
        ticket,
      )) as ManagementFeatureDependencies['issueTicket'],
    jobs: createUserJobs(made),
    /** An administrator's link asks for the session and the role again. */
    linkTo: ((job, { administrator }) =>
      administrator === undefined
        ? exportLink({ clock, baseUrl }, job)
        : `${made.consoleUrl}${exportPath(job.id)}`) as ManagementFeatureDependencies['linkTo'],
    systemApis: () => [managementApi(issuer, config.settings().managementApi), accountApi(issuer)],
    audienceOf: ((key) => consentAudience(issuer, key)) as ManagementFeatureDependencies['audienceOf'],
    endAccess: async (userId: string, reason: 'account-deactivated' | 'password-changed') => {
      await sessions.endAllOf(userId, { reason, refreshTokens: true });
    },
    makeSigningKey: ((alg) =>
      makeSigningKey(wallClock, tenantName, alg)) as ManagementFeatureDependencies['makeSigningKey'],
    rotateKeys: ((alg) =>
      rotateSigningKeys(
        store,
        wallClock,
        tenantName,
        alg,
        keyHolder,
      )) as ManagementFeatureDependencies['rotateKeys'],
    forgetBrowsers: (userId: string) => browsers.forgetAllOf(userId),
    locks: createLocks({ store, config, clock }),
    findInCustomDatabase: (asked: DatabaseRequest) => findInCustomDatabase({ customDatabases, users }, asked),
    tenantRefreshTokens: refreshTokenDirectory({ store, config, challenges }),
    tenantSessionDirectory: sessionDirectory({
      ...made,
      config,
      firstMethod: firstMethodIn(config),
    }),
    renewProviderTokens: renewProviderTokens({ ...made, users }),
    renewRecoveryCode: (userId: string) => renewRecoveryCode({ authenticators, random }, userId),
    scopesOf: async (audience: string) =>
      (await config.resourceServer(audience))?.scopes.map(({ value }) => value),
  };
}

/** Returns what the console needs beside the rest. */
function consoleCapabilities({ settings, pause = timerPause }: TenantDependencies, made: Ended) {
  const { requestReset, administrators, config, consoleUrl, baseUrl, events, rateLimits, clock, packages } =
    made;
  return {
    mailReset: (({ ip, ...about }) =>
      requestReset({
        ...about,
        client: undefined,
        organization: undefined,
        languages: [],
        caller: { ip },
      })) as ConsoleDependencies['mailReset'],
    isMailed: settings.mail !== undefined,
    retentionDays: () => retentionDays(config),
    serverCertificate: () => certificateFile(settings),
    databasesBy: (scripts: Pick<Scripts, 'run'>) =>
      customDatabases({
        scripts,
        packages,
        events,
        rateLimits,
        tenant: new URL(baseUrl).hostname,
        oldTenant: made.oldTenant,
        clock,
        pause,
      }),
    managementOpenApi: () => managementOpenApi(baseUrl),
    /** Returns the login of the example's administrator and the address of the console, if there are both. */
    tenantFile: settings.tenantFile,
    exampleAdministrator: async () => {
      const example = settings.console ? await exampleOf(administrators) : undefined;
      return example && { ...example, consoleUrl: `${consoleUrl}${CONSOLE}` };
    },
  };
}

/**
 * Returns the server's certificate, PEM. It is read each time, because a renewed file is there before the server uses
 * it.
 */
/** @returns the method of a connection by its name; undefined when the connection no longer exists. */
function firstMethodIn(config: Config) {
  return async (name: string): Promise<string | undefined> => {
    const connection = await config.connection(name);
    return connection && firstMethodOf(connection.strategy);
  };
}

async function certificateFile({ tls }: Settings): Promise<string | undefined> {
  if (tls.mode !== 'files') return undefined;
  // A file that cannot be read is reported at the start and by the doctor.
  return readFile(tls.certFile, 'utf8').catch(() => undefined);
}
