// What an authorization gives: for a first-party application all it asked for, for a third-party one what
// the user has allowed it. Each authorization gets a grant of its own, so that revoking one (a reused
// code, a stolen refresh token) leaves the user's other devices and tabs alone.
import type { IncomingMessage } from 'node:http';
import type Provider from 'oidc-provider';
import type { Grant, KoaContextWithOIDC } from 'oidc-provider';
import type { ResourceServer as Api } from '../records/collections.ts';
import { consentId } from '../records/engine.ts';
import type { Frozen } from '../records/record.ts';
import type { UserRecord } from '../records/users.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { Users } from '../users/users.ts';
import { applicationSettings, isInternalCallback } from './applications.ts';
import { toAudience } from './audience.ts';
import { credentialVersionOf, factorsOf } from './browser-login.ts';
import { OIDC_SCOPES, scopesOfClaims } from './claims.ts';

export interface GrantDependencies {
  store: Store;
  config: Config;
  users: Users;
}

/** What is asked for: scopes as requested, resource indicators of the APIs. */
export interface Requested {
  scopes: ReadonlySet<string>;
  resources: readonly string[];
  /** Asked for one by one, by the `claims` parameter. */
  claims?: ReadonlySet<string>;
}

/** The consent key of the OIDC scopes, beside the resource indicators of APIs. */
export const OIDC = '';

/**
 * Builds (and does not save) the grant of a user to an application.
 * @returns the grant, with what the user has not allowed left out: the consent prompt asks for that.
 */
export async function buildGrant(
  deps: GrantDependencies,
  provider: Provider,
  who: {
    userId: string;
    client: { clientId: string } & object;
    /** The request is ours on the application's behalf: there is nothing to be asked about. */
    internal?: boolean;
  },
  requested: Requested,
): Promise<Grant> {
  const { clientId } = who.client;
  const grant = new provider.Grant({ accountId: who.userId, clientId });
  const user = await deps.users.get(who.userId);
  const consent = await deps.store.collection('consents').get(consentId(who.userId, clientId));
  const firstParty = who.internal === true || applicationSettings(who.client).firstParty;
  const oidcScopes = OIDC_SCOPES.filter((scope) => requested.scopes.has(scope));
  const apis = await Promise.all(requested.resources.map((id) => deps.config.resourceServer(toAudience(id))));
  const skips =
    firstParty && apis.every((api) => api?.skip_consent_for_verifiable_first_party_clients !== false);
  const allowed = (key: string, scope: string) => skips || consent?.scopes[key]?.includes(scope) === true;

  grant.addOIDCScope(oidcScopes.filter((scope) => allowed(OIDC, scope)));
  const claims = [...(requested.claims ?? [])];
  grant.addOIDCClaims(
    claims.filter((claim) => scopesOfClaims([claim]).every((scope) => allowed(OIDC, scope))),
  );
  for (const [index, resource] of requested.resources.entries()) {
    const api = apis[index];
    if (api === undefined) continue;
    const wanted = new Set<string>([...oidcScopes, ...api.scopes.map(({ value }) => value)]);
    const scopes = [...requested.scopes].filter((scope) => wanted.has(scope));
    const refused = scopes.filter((scope) => !permitted(api, user, scope));
    grant.addResourceScope(
      resource,
      scopes.filter((scope) => allowed(isOidc(scope) ? OIDC : resource, scope)),
    );
    if (refused.length > 0) grant.rejectResourceScope(resource, refused);
  }
  return grant;
}

const isOidc = (scope: string) => (OIDC_SCOPES as readonly string[]).includes(scope);

/** With `enforce_policies` an API's scope needs the user's permission of the same name. */
function permitted(api: Api, user: Frozen<UserRecord> | undefined, scope: string): boolean {
  if (!api.enforce_policies || isOidc(scope)) return true;
  return permissionsAt(user, api.identifier).includes(scope);
}

/** What a user may do at an API, by name. */
export function permissionsAt(user: Frozen<UserRecord> | undefined, identifier: string): string[] {
  return (user?.permissions ?? [])
    .filter((permission) => permission.resource_server_identifier === identifier)
    .map((permission) => permission.permission_name);
}

/** The engine's `loadExistingGrant`: a fresh grant for the request at hand. */
export function loadGrant(
  deps: GrantDependencies,
  baseUrl: string,
): (ctx: KoaContextWithOIDC) => Promise<Grant | undefined> {
  return async ({ oidc }) => {
    if (oidc.account === undefined || oidc.client === undefined) return undefined;
    return buildGrant(
      deps,
      oidc.provider,
      {
        userId: oidc.account.accountId,
        client: oidc.client,
        internal: isInternalCallback(baseUrl, String(oidc.params?.redirect_uri)),
      },
      {
        scopes: oidc.requestParamScopes,
        resources: Object.keys(oidc.resourceServers ?? {}),
        claims: oidc.requestParamClaims,
      },
    );
  };
}

/** What keeps the grants of requests that are answered. */
export interface GrantKeeper {
  /** Waits until the grant of a request is stored, where it got one. */
  kept(req: IncomingMessage): Promise<void>;
}

/**
 * Stores the grant of an authorization request when all prompts are content and the response is about to be issued: a
 * request that still waits for its user or fails must not leave one behind.
 */
export function keepGrants(provider: Provider): GrantKeeper {
  const saves = new WeakMap<IncomingMessage, Promise<unknown>>();
  provider.on('authorization.accepted', ({ req, oidc }) => {
    const { grant, session, client } = oidc;
    if (grant === undefined || session === undefined || client === undefined) return;
    const { uid: sessionUid, amr = [] } = session;
    const credentialVersion = credentialVersionOf(session);
    Object.assign(grant, { sessionUid, amr, credentialVersion, factors: factorsOf(session) });
    // Its failure is met where it is waited for. It has its id before anything is waited for.
    const saved = grant.save();
    session.grantIdFor(client.clientId, grant.jti);
    saved.catch(() => undefined);
    saves.set(req, saved);
  });
  return {
    kept: async (req) => {
      await saves.get(req);
    },
  };
}

/**
 * Remembers what a user allowed an application, beside what was allowed before or is at the same time.
 * @param scopes by consent key: {@link OIDC} or a resource indicator.
 */
export async function rememberConsent(
  store: Store,
  userId: string,
  clientId: string,
  scopes: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  const consents = store.collection('consents');
  const id = consentId(userId, clientId);
  const merge = (before: Readonly<Record<string, readonly string[]>>) =>
    Object.fromEntries(
      [...new Set([...Object.keys(before), ...Object.keys(scopes)])].map((key) => [
        key,
        [...new Set([...(before[key] ?? []), ...(scopes[key] ?? [])])],
      ]),
    );
  await consents.upsert(id, (current) => ({
    id,
    user_id: userId,
    client_id: clientId,
    scopes: merge(current?.scopes ?? {}),
  }));
}
