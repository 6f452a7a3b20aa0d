// Grants: a first-party application gets what it requests, a third-party one what the user consented to. Each
// authorization has its own grant, so that revoking one (a reused code, a stolen refresh token) spares the user's other
// devices and tabs.
// docs/understand/decisions/authorize.md#each-authorization-has-its-own-grant
import type { IncomingMessage } from 'node:http';
import type Provider from 'oidc-provider';
import type { Grant, KoaContextWithOIDC } from 'oidc-provider';
import { skipsConsentOf } from '../../records/clients/apis.ts';
import { consentId } from '../../records/state/engine.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { Organizations } from '../admission/admission.ts';
import { permittedScopes } from '../admission/audience.ts';
import { transferOf } from '../admission/exchange-context.ts';
import { loginRequirements } from '../admission/second-factor.ts';
import { type AuthorizationDetail, detailsIn } from '../base/authorization-details.ts';
import { isOidcScope, OIDC_CONSENT_KEY, OIDC_SCOPES, toAudience } from '../base/request-extensions.ts';
import { scopesOfClaims } from '../claims/claims.ts';
import { applicationSettings } from '../client/applications.ts';
import type { ServerLoginCallbacks } from '../client/server-login-callbacks.ts';
import type { LoginActions } from '../login/login-actions.ts';
import { connectionOf, credentialVersionOf, factorsOf, presenceOf } from '../session/sessions.ts';

export interface GrantDependencies {
  store: Store;
  config: Config;
  users: Users;
  organizations: Pick<Organizations, 'ensureMembership' | 'rolesOf'>;
}

/** The requested scopes, and the resource indicators of the requested APIs. */
interface RequestedAccess {
  scopes: ReadonlySet<string>;
  resources: readonly string[];
  /** Requested individually, by the `claims` parameter. */
  claims?: ReadonlySet<string>;
  /**
   * The `authorization_details` (RFC 9396): the user is asked each time, and has allowed them once the grant is
   * stored.
   */
  details?: readonly AuthorizationDetail[];
}

/**
 * Builds the grant of a user to an application, without saving it.
 * @returns a grant of only those scopes that need no consent or have it; the consent prompt asks for the others.
 */
export async function buildGrant(
  deps: GrantDependencies,
  provider: Provider,
  grantee: {
    userId: string;
    /** The user's record, where the caller has just read it. */
    user?: User;
    client: { clientId: string } & object;
    /** Whether it is an internal request, which needs no consent. */
    internal?: boolean;
    /** The id of the organization that the login is for. */
    organization?: string | undefined;
    /**
     * Whether the user has just given the application itself the password, or another proof of a login. A first-party
     * application needs no further consent then: it could do with the proof whatever it would ask for.
     */
    isEntrusted?: boolean;
  },
  requested: RequestedAccess,
): Promise<Grant> {
  const { clientId } = grantee.client;
  const grant = new provider.Grant({ accountId: grantee.userId, clientId });
  const firstParty = grantee.internal === true || applicationSettings(grantee.client).firstParty;
  const oidcScopes = OIDC_SCOPES.filter((scope) => requested.scopes.has(scope));
  const apis = await Promise.all(requested.resources.map((id) => deps.config.resourceServer(toAudience(id))));
  const skipsConsent =
    firstParty && (grantee.isEntrusted === true || apis.every((api) => skipsConsentOf(api)));
  const [user, consent] = await Promise.all([
    grantee.user ?? deps.users.get(grantee.userId),
    skipsConsent ? undefined : deps.store.collection('consents').get(consentId(grantee.userId, clientId)),
  ]);
  const allowed = (key: string, scope: string) =>
    skipsConsent || consent?.scopes[key]?.includes(scope) === true;

  for (const detail of requested.details ?? []) grant.addRar(detail);
  grant.addOIDCScope(oidcScopes.filter((scope) => allowed(OIDC_CONSENT_KEY, scope)));
  const claims = [...(requested.claims ?? [])];
  grant.addOIDCClaims(
    claims.filter((claim) => scopesOfClaims([claim]).every((scope) => allowed(OIDC_CONSENT_KEY, scope))),
  );
  for (const [index, resource] of requested.resources.entries()) {
    const api = apis[index];
    if (api === undefined) continue;
    const known = new Set<string>([...oidcScopes, ...api.scopes.map(({ value }) => value)]);
    const scopes = [...requested.scopes].filter((scope) => known.has(scope));
    const permitted = await permittedScopes(deps, api, user, grantee.organization);
    const refused = scopes.filter((scope) => !isOidcScope(scope) && !permitted.includes(scope));
    grant.addResourceScope(
      resource,
      scopes.filter((scope) => allowed(isOidcScope(scope) ? OIDC_CONSENT_KEY : resource, scope)),
    );
    if (refused.length > 0) grant.rejectResourceScope(resource, refused);
  }
  return grant;
}

/** Makes the engine's `loadExistingGrant`: it builds a new grant for each request. */
export function loadGrant(
  deps: GrantDependencies,
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'isWithoutConsent'>,
): (ctx: KoaContextWithOIDC) => Promise<Grant | undefined> {
  return async ({ oidc }) => {
    if (oidc.account === undefined || oidc.client === undefined) return undefined;
    return buildGrant(
      deps,
      oidc.provider,
      {
        userId: oidc.account.accountId,
        client: oidc.client,
        internal: serverLoginCallbacks.isWithoutConsent(String(oidc.params?.redirect_uri)),
        organization: loginRequirements(oidc.params).organization,
      },
      {
        scopes: oidc.requestParamScopes,
        resources: Object.keys(oidc.resourceServers ?? {}),
        claims: oidc.requestParamClaims,
        details: detailsIn(oidc.params?.authorization_details),
      },
    );
  };
}

/** Stores the grants of answered requests. */
export interface GrantStorage {
  /** Waits until a request's grant is stored, if it got one. */
  waitUntilStored(req: IncomingMessage): Promise<void>;
}

/**
 * Stores a request's grant when all prompts are passed and the response is issued, so that a request that waits or
 * fails leaves no grant behind.
 */
export function storeGrants(provider: Provider, loginActions: Pick<LoginActions, 'claimsOf'>): GrantStorage {
  const saves = new WeakMap<IncomingMessage, Promise<unknown>>();
  provider.on('authorization.accepted', (ctx) => {
    const { req, oidc } = ctx;
    const { grant, session, client } = oidc;
    if (grant === undefined || session === undefined || client === undefined) return;
    const { uid: sessionUid, amr = [] } = session;
    const presence = presenceOf(session);
    const credentialVersion = credentialVersionOf(session);
    const { organization } = loginRequirements(oidc.params);
    // policy.ts has just checked that the user is a member.
    const organizationMember = organization === undefined ? {} : { organization };
    const connection = connectionOf(session);
    const connectionMember = connection === undefined ? {} : { connection };
    Object.assign(grant, {
      sessionUid,
      amr,
      presence,
      // Endpoints that require a recent login check this time.
      authTime: presence === 'present' ? session.loginTs : undefined,
      credentialVersion,
      factors: factorsOf(session),
      ...organizationMember,
      ...connectionMember,
      actions: loginActions.claimsOf(ctx),
      transfer: transferOf(session),
    });
    Object.assign(session, organizationMember);
    // The id is assigned synchronously. `kept` reports a failure.
    const saved = grant.save();
    session.grantIdFor(client.clientId, grant.jti);
    saved.catch(() => undefined);
    saves.set(req, saved);
  });
  return {
    waitUntilStored: async (req) => {
      await saves.get(req);
    },
  };
}

/** The most hosts that are remembered of an application; it may have 10 callbacks if it registered itself. */
const MAX_HOSTS = 20;

/**
 * Adds to what a user has consented to for an application; concurrent consents are merged.
 * @param scopes by consent key: {@link OIDC_CONSENT_KEY} or a resource indicator.
 * @param host where the user was told that the access goes; undefined where the page does not say it.
 */
export async function rememberConsent(
  store: Store,
  userId: string,
  clientId: string,
  scopes: Readonly<Record<string, readonly string[]>>,
  host?: string,
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
  await consents.upsert(id, (current) => {
    const hosts = [...new Set([...(current?.hosts ?? []), ...(host === undefined ? [] : [host])])];
    return {
      id,
      user_id: userId,
      client_id: clientId,
      scopes: merge(current?.scopes ?? {}),
      ...(hosts.length > 0 && { hosts: hosts.slice(-MAX_HOSTS) }),
    };
  });
}

/**
 * Returns the identifier of the API that a consent's key means. Consents for OpenID Connect scopes belong to the
 * userinfo endpoint.
 * @returns undefined for a key that names none.
 */
export function consentAudience(issuer: string, key: string): string | undefined {
  if (key === OIDC_CONSENT_KEY) return `${issuer}userinfo`;
  try {
    return toAudience(key);
  } catch {
    return undefined;
  }
}
