// The JWT access token of an API, in the API's dialect: the hosted service's, or RFC 9068 where it asks for that.
import type {
  AccessToken,
  Client,
  ClientCredentials,
  JWTStructured,
  KoaContextWithOIDC,
} from 'oidc-provider';
import type { Actions } from '../../capabilities/actions/actions.ts';
import { jwtHeader } from '../../capabilities/signing/verify-jwt.ts';
import { scopeValues } from '../../records/clients/apis.ts';
import type { ResourceServer as Api } from '../../records/collections.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import type { Presence } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import { type MachineOrganizations, type Organizations, organizationOf } from '../admission/admission.ts';
import { actorOf, exchangeLimits } from '../admission/exchange-context.ts';
import type { SecondFactor, TokenLogin } from '../admission/second-factor.ts';
import { toAudience } from '../base/request-extensions.ts';
import { ISSUED_AT_MS } from '../base/signed-tokens.ts';
import {
  type CustomClaims,
  hasStandardClaims,
  type IdTokenParts,
  standardIdToken,
} from '../claims/claims.ts';
import { applicationSettings } from '../client/applications.ts';
import type { LoginActions } from '../login/login-actions.ts';
import { machineClaims } from '../login/machine-actions.ts';
import { credentialVersionOf } from '../session/sessions.ts';
import { ID_TOKEN_TYPES } from './sent-id-tokens.ts';

type Customizer = (
  ctx: KoaContextWithOIDC | undefined,
  token: AccessToken | ClientCredentials,
  jwt: JWTStructured,
) => Promise<void>;

/** The audience of JWTs that `/userinfo` accepts. */
export function userinfoAudience(issuer: string): string {
  return `${issuer}userinfo`;
}

interface AccessTokenDependencies {
  issuer: string;
  actions: Actions;
  loginActions: Pick<LoginActions, 'claimsOf'>;
  config: Config;
  users: Users;
  organizations: Pick<Organizations, 'claims' | 'rolesOf'>;
  machines: Pick<MachineOrganizations, 'of'>;
  customClaims: CustomClaims;
  secondFactor: Pick<SecondFactor, 'tokenClaims'>;
}

/** The engine's `formats.customizers.jwt`: rewrites its payload into the API's dialect. */
export function accessTokenFormat({
  issuer,
  actions,
  loginActions,
  config,
  users,
  organizations,
  machines,
  secondFactor,
  customClaims,
}: AccessTokenDependencies): Customizer {
  return async (ctx, token, jwt) => {
    const { payload } = jwt;
    const userId = 'accountId' in token ? token.accountId : undefined;
    const requestedScope = typeof payload.scope === 'string' ? payload.scope : '';
    const resource = token.resourceServer?.identifier();
    const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
    const rfc9068 = api?.token_dialect.startsWith('rfc9068') === true;
    const client = payload.client_id;
    const gty = grantType(token, userId);
    const organization = userId === undefined ? machines.of(ctx?.req) : organizationOf(ctx);
    const machine = { clientId: String(client), api, scope: requestedScope, organization };
    const { claims: actionClaims, scope } =
      userId !== undefined
        ? { claims: loginActions.claimsOf(ctx)?.accessToken, scope: requestedScope }
        : await machineTokenClaims({ actions, config }, ctx, token, machine);
    jwt.header = { ...jwt.header, typ: rfc9068 ? 'at+jwt' : 'JWT' };
    jwt.payload = {
      // First, so that no declared claim replaces one of ours.
      ...permittedClaims(api, {
        ...(await customClaims.of({
          to: 'access_token',
          clientId: String(client),
          userId,
          organization,
          audience: api?.identifier,
        })),
        ...actionClaims,
      }),
      iss: payload.iss,
      sub: userId ?? `${String(client)}@clients`,
      aud: scope.split(' ').includes('openid') ? [payload.aud, userinfoAudience(issuer)] : payload.aud,
      iat: payload.iat,
      exp: payload.exp,
      ...(payload[ISSUED_AT_MS] === undefined ? {} : { [ISSUED_AT_MS]: payload[ISSUED_AT_MS] }),
      ...(rfc9068 ? { client_id: client, jti: payload.jti } : { azp: client }),
      ...(scope === '' ? {} : { scope }),
      ...(gty === undefined ? {} : { gty }),
      ...(api?.token_dialect.endsWith('_authz') === true
        ? {
            permissions: await permissions(users, userId, api.identifier, {
              scope,
              roles: userId === undefined ? [] : await organizations.rolesOf(organization, userId),
            }),
          }
        : {}),
      ...(organization === undefined ? {} : await organizations.claims(organization)),
      ...(actorOf(ctx) === undefined ? {} : { act: actorOf(ctx) }),
      ...(payload.cnf === undefined ? {} : { cnf: payload.cnf }),
      ...(await grantClaim(config, ctx, token, api)),
      ...(payload.authorization_details === undefined
        ? {}
        : { authorization_details: payload.authorization_details }),
      ...(userId === undefined || api === undefined
        ? {}
        : await secondFactor.tokenClaims(api.identifier, loginOf(ctx, userId))),
    };
  };
}

// docs/understand/decisions/tokens.md#a-token-for-an-api-with-an-application-of-its-own-names-its-grant
async function grantClaim(
  config: Pick<Config, 'hasApplication'>,
  ctx: KoaContextWithOIDC | undefined,
  token: AccessToken | ClientCredentials,
  api: Api | undefined,
): Promise<{ grant_id?: string }> {
  const own = 'grantId' in token ? token.grantId : undefined;
  // A token that was exchanged ends with the grant that the first one of the chain was issued for.
  const id = (ctx && exchangeLimits.of(ctx))?.grantId ?? own;
  if (id === undefined || api === undefined || !(await config.hasApplication(api.identifier))) return {};
  return { grant_id: id };
}

/**
 * Returns those of the tenant's claims that a token may have. In tokens for our own APIs, which read claims of
 * their own, only claims that are named by a URL are allowed.
 */
function permittedClaims(api: Api | undefined, claims: Record<string, unknown>): Record<string, unknown> {
  if (api?.is_system !== true) return claims;
  return Object.fromEntries(Object.entries(claims).filter(([name]) => URL.canParse(name)));
}

/** Runs the actions for a client_credentials token. They may change its scope. */
async function machineTokenClaims(
  deps: Pick<AccessTokenDependencies, 'actions' | 'config'>,
  ctx: KoaContextWithOIDC | undefined,
  token: AccessToken | ClientCredentials,
  {
    api,
    ...about
  }: { clientId: string; api: Api | undefined; scope: string; organization: string | undefined },
): ReturnType<typeof machineClaims> {
  const allowed = scopeValues(token.resourceServer?.scope);
  const isSystemApi = api?.is_system === true;
  const outcome = await machineClaims(deps, ctx, {
    ...about,
    audience: api?.identifier,
    allowed,
    isSystemApi,
  });
  // The token response has the changed scope, too.
  if (outcome.scope !== about.scope) Object.assign(token, { scope: outcome.scope || undefined });
  return outcome;
}

/** Returns the login from which a grant was made; without a grant, one of which nothing but the user is known. */
function loginOf(ctx: KoaContextWithOIDC | undefined, userId: string): TokenLogin {
  const grant: object = ctx?.oidc.entities.Grant ?? {};
  const { amr = [], presence = 'absent', factors, authTime, sessionUid, jti } = grant as StoredLogin;
  return {
    userId,
    amr,
    presence,
    factors,
    credentialVersion: credentialVersionOf(grant),
    authTime,
    sessionId: sessionUid ?? (ctx && exchangeLimits.of(ctx))?.sessionId,
    grant: jti && sha256(`grant\n${jti}`),
  };
}

/** The members of a grant that describe its login. */
interface StoredLogin {
  amr?: readonly string[];
  presence?: Presence;
  factors?: string;
  authTime?: number;
  sessionUid?: string;
  jti?: string;
}

/** `gty` of grants other than a browser login. */
function grantType(token: AccessToken | ClientCredentials, userId: string | undefined): string | undefined {
  if (userId === undefined) return 'client-credentials';
  const gty = 'gty' in token && typeof token.gty === 'string' ? token.gty : '';
  if (gty.endsWith('refresh_token')) return 'refresh_token';
  return gty === 'authorization_code' || gty === 'implicit' || gty === '' ? undefined : gty;
}

// docs/understand/decisions/tokens.md#permissions-are-the-users-permissions-at-the-api
/** A user's permissions, those of their roles included; for a client, the scopes of its client grant. */
async function permissions(
  users: Users,
  userId: string | undefined,
  identifier: string,
  { scope, roles }: { scope: string; roles: readonly string[] },
) {
  if (userId === undefined) return scopeValues(scope);
  const user = await users.get(userId);
  return user === undefined ? [] : users.permissionsAt(user, identifier, roles);
}

// The claims of ID tokens beyond those of the engine.

/** The engine's ID token while it is made. */
interface IdTokenInstance extends IdTokenParts {
  client: Client;
  ctx: KoaContextWithOIDC;
  payload(): Promise<Record<string, unknown>>;
}

/** The engine's class of ID tokens. */
export interface IdTokenClass {
  prototype: IdTokenInstance;
  /** Verifies an `id_token_hint`. */
  validate(token: string, client: Client): Promise<unknown>;
}

/** Adds claims to the ID tokens of an engine. @param model the engine's class of ID tokens. */
export function adaptIdToken(
  model: IdTokenClass,
  {
    config,
    customClaims,
    loginActions,
  }: { config: Config; customClaims: CustomClaims; loginActions: Pick<LoginActions, 'claimsOf'> },
): void {
  const { validate } = model;
  // The engine verifies hints by their signature and claims alone.
  model.validate = async function validateHint(this: IdTokenClass, token, client) {
    jwtHeader(token, ID_TOKEN_TYPES);
    return validate.call(this, token, client);
  };
  const { payload } = model.prototype;
  model.prototype.payload = async function idTokenPayload(this: IdTokenInstance) {
    this.available = { ...this.available, amr: claimedMethods(this.available.amr) };
    if (hasStandardClaims(config, applicationSettings(this.client))) {
      standardIdToken(this, this.ctx.oidc.params?.response_type);
    }
    const declared = await customClaims.of({
      to: 'id_token',
      clientId: this.client.clientId,
      userId: String(this.available.sub),
      organization: organizationOf(this.ctx),
    });
    const actionClaims = loginActions.claimsOf(this.ctx)?.idToken;
    const act = actorOf(this.ctx);
    return { ...declared, ...actionClaims, ...(await payload.call(this)), ...(act && { act }) };
  };
}

/**
 * Returns the `amr` of ID tokens: only `mfa`, as with the hosted service. Applications take any `amr` as a sign of
 * a second factor.
 */
function claimedMethods(methods: unknown): string[] | undefined {
  return Array.isArray(methods) && methods.includes('mfa') ? ['mfa'] : undefined;
}
