import type { Context } from 'koa';
import { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { Logger } from 'pino';
import type { Actions } from '../../capabilities/actions/actions.ts';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import type { LoginTickets } from '../../capabilities/protection/login-tickets.ts';
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import type { Signing } from '../../capabilities/signing/signing.ts';
import type { ClientCertificates } from '../../capabilities/tls/client-certificates.ts';
import { AuthError, isBusy } from '../../http/errors.ts';
import type { Outbound } from '../../http/outbound/outbound.ts';
import { SIGNING_ALGS, TOKEN_ALGS } from '../../records/base/signing-algs.ts';
import { CREDENTIAL_ALGORITHMS } from '../../records/clients/client-credentials.ts';
import { authenticationClasses } from '../../records/users/authentication-classes.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Measures } from '../../runtime/measures.ts';
import type { Correlation } from '../../runtime/requester.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Users } from '../../users/users.ts';
import {
  CLOSED,
  isOpenTo,
  isOrganizationOpenTo,
  type MachineOrganizations,
  type Organizations,
  organizationOfSession,
} from '../admission/admission.ts';
import { resourceIndicators } from '../admission/audience.ts';
import { lifetimes } from '../admission/lifetimes.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import {
  type ConnectionFault,
  extraParameters,
  type UseTicket,
} from '../authorize/authorization-parameters.ts';
import type { CheckRequest, DirectRedirect, SilentRedirect } from '../authorize/authorize.ts';
import type { PushedRequests } from '../authorize/pushed-requests.ts';
import { waitingPath } from '../authorize/waiting-requests.ts';
import { richAuthorizationRequests } from '../base/authorization-details.ts';
import type { Commits, ReadAhead } from '../base/commit.ts';
import type { ErrorPage } from '../base/message-modes.ts';
import { OIDC_SCOPES } from '../base/request-extensions.ts';
import { mutualTls, refuseUnboundRefresh } from '../binding/certificate-binding.ts';
import {
  DPOP_ALGORITHMS,
  dpopFeature,
  type ProofState,
  refuseUnboundToken,
} from '../binding/proof-of-possession.ts';
import {
  accounts,
  assertClaims,
  type CustomClaims,
  claimsByScope,
  preciseIssue,
  type TokenUsers,
  type VerifiedUsers,
} from '../claims/claims.ts';
import {
  applicationSettings,
  DELIVERY_MODE_PROPERTY,
  engineProfile,
  RESPONSE_TYPES,
  SETTINGS_PROPERTY,
} from '../client/applications.ts';
import { ENCRYPTION } from '../client/client-encryption.ts';
import type { ClientAssertions } from '../client/engine-client-authentication.ts';
import type { ServerLoginCallbacks } from '../client/server-login-callbacks.ts';
import type { BrowserLogins } from '../login/browser-login.ts';
import type { LoginActions } from '../login/login-actions.ts';
import { policy } from '../login/policy.ts';
import type { LogoutChannels } from '../session/logout-channels.ts';
import type { SessionTransfers, TransferredSessions } from '../session/session-transfer.ts';
import { connectionOf } from '../session/sessions.ts';
import { accessTokenFormat } from '../token/access-token.ts';
import type { OldRefreshTokens } from '../token/moved-refresh-tokens.ts';
import { extendRefreshToken, type RefreshTargets } from '../token/refresh.ts';
import { loadGrant } from '../token/token-grants.ts';
import type { VendorGrant } from '../token/tokens.ts';
import { createAdapter } from './adapter.ts';
import { discoveryMembers, engineKeys } from './renewal.ts';

export interface EngineDependencies {
  /** The public origin; the issuer is it with a slash. */
  baseUrl: string;
  issuer: string;
  store: Store;
  config: Config;
  users: Users;
  /** Never goes back; for durations. */
  clock: Clock;
  /** For dates in tokens. */
  wallClock: Clock;
  random: Random;
  log: Logger;
  challenges: Challenges;
  events: Events;
  /** Records which login a request belongs to, for the log. */
  rateLimits: Pick<RateLimits, 'takeFrom' | 'spend'>;
  /** Reaches the public Internet alone. */
  strangersOutbound: Pick<Outbound, 'fetch'>;
  correlation: Pick<Correlation, 'setId' | 'id'>;
  tickets: LoginTickets;
  signing: Signing;
  actions: Actions;
  /** Grant types beyond the engine's. */
  grants: VendorGrant[];
  secondFactor: SecondFactor;
  /** Authentication context classes that a request may ask for. */
  acrValues: readonly string[];
  errorPage: ErrorPage;
  serverLoginCallbacks: ServerLoginCallbacks;
  /** The parameters that endpoints of this server understand. */
  endpointParameters: ReadonlySet<string>;
  checkRequest: CheckRequest;
  directRedirect: DirectRedirect;
  silentRedirect: SilentRedirect;
  connectionFault: ConnectionFault;
  certificates: ClientCertificates;
  /** How applications learn that a session has ended. */
  logoutChannels: LogoutChannels;
  /** The refresh tokens of the tenant that this one takes the place of; undefined where no move is possible. */
  oldRefreshTokens?: OldRefreshTokens | undefined;
  measures?: Pick<Measures, 'tokensIssued'> | undefined;
}

/** Binds a waiting request to its browser, by a cookie. */
export type BindWaitingRequest = (ctx: Context, uid: string) => void;

export function engineConfiguration(
  deps: EngineDependencies & {
    commits: Commits;
    ahead: ReadAhead;
    verifiedUsers: VerifiedUsers;
    tokenUsers: TokenUsers;
    loginActions: LoginActions;
    organizations: Organizations;
    machines: MachineOrganizations;
    customClaims: CustomClaims;
    targets: RefreshTargets;
    transferred: TransferredSessions;
    transfers: SessionTransfers;
    pushedRequests: PushedRequests;
    proofs: ProofState;
    assertions: ClientAssertions;
  },
  grantTypes: () => ReadonlySet<string>,
  useTicket: UseTicket,
  bind: BindWaitingRequest,
  logins: BrowserLogins,
): Configuration {
  const { baseUrl, config, wallClock } = deps;
  return {
    adapter: createAdapter({ ...deps, grantTypes }),
    jwks: engineKeys(deps.signing.sign, config.signingKeys()),
    routes: ROUTES,
    features: features(deps),
    discovery: { ...DISCOVERY, ...discoveryMembers(baseUrl) },
    enableHttpPostMethods: false,
    scopes: [...OIDC_SCOPES],
    acrValues: [...deps.acrValues],
    claims: claimsByScope,
    responseTypes: RESPONSE_TYPES,
    clientAuthMethods: [...CLIENT_AUTHENTICATION],
    enabledJWA: ALGORITHMS,
    assertJwtClientAuthClaimsAndHeader: deps.assertions.check,
    extraTokenClaims: tokenClaims(deps),
    // SDKs read the profile from the ID token:
    // docs/understand/decisions/tokens.md#standard_claims-gives-an-application-the-claims-of-openid-connect-core
    conformIdTokenClaims: false,
    allowOmittingSingleRegisteredRedirectUri: false,
    extraParams: extraParameters(deps, deps.serverLoginCallbacks, useTicket),
    extraClientMetadata: { properties: [SETTINGS_PROPERTY, DELIVERY_MODE_PROPERTY] },
    cookies: cookies(),
    interactions: {
      policy: policy({ ...deps, ...logins, lacksFactorDescription: deps.secondFactor.description }),
      url: (ctx, { uid }) => {
        bind(ctx, uid);
        return waitingPath(uid);
      },
    },
    findAccount: logins.wrapFindAccount(accounts(deps)),
    loadExistingGrant: loadGrant(deps, deps.serverLoginCallbacks),
    // A logout does not revoke an application's tokens, as with the hosted service.
    expiresWithSession: () => false,
    rotateRefreshToken: rotates(deps),
    ttl: lifetimes(config, wallClock),
    formats: { customizers: { jwt: accessTokenFormat(deps) } },
    // Our own CORS middleware answers.
    clientBasedCORS: () => true,
    renderError: renderErrorOn(deps.errorPage),
  };
}

/** Checks every access token before it is issued, and adds the claims that belong to no API. */
function tokenClaims(
  deps: Pick<EngineDependencies, 'config' | 'clock' | 'users'> & { tokenUsers: TokenUsers },
): NonNullable<Configuration['extraTokenClaims']> {
  return async (ctx, token) => {
    await refuseClosed(deps, ctx);
    await refuseUnboundToken(deps, ctx, token);
    return preciseIssue(deps, ctx, token);
  };
}

/**
 * Refuses tokens of a stranger for a login by a connection, or for an organization, that is not open to strangers any more.
 * @throws errors.InvalidGrant
 */
async function refuseClosed(
  { config, users }: Pick<EngineDependencies, 'config' | 'users'>,
  ctx: KoaContextWithOIDC | undefined,
): Promise<void> {
  const { Grant: grant, Client: client } = ctx?.oidc.entities ?? {};
  if (grant === undefined || client === undefined || !applicationSettings(client).isStranger) return;
  const [connection, organization] = [connectionOf(grant), organizationOfSession(grant)];
  const { accountId: userId = '' } = grant;
  const isOpen =
    (connection === undefined ||
      (await isOpenTo({ config, users }, client.clientId, { userId, connection }))) &&
    (organization === undefined || (await isOrganizationOpenTo(config, client, organization)));
  if (!isOpen) throw new errors.InvalidGrant(CLOSED);
}

function renderErrorOn(page: ErrorPage): NonNullable<Configuration['renderError']> {
  return (ctx, { error, error_description: description = 'The request is invalid.' }, cause) => {
    // Those of silent requests have the status of a redirect, which this page is not.
    const status = ctx.status < 400 ? 400 : ctx.status;
    const shown = new AuthError(status, error, description, { cause });
    if (isBusy(shown)) ctx.set('Retry-After', '1');
    return page(ctx, shown);
  };
}

function features(deps: Parameters<typeof engineConfiguration>[0]): Configuration['features'] {
  return {
    ...FEATURES,
    dPoP: dpopFeature(deps, deps.proofs),
    fapi: { enabled: true, profile: (ctx, client) => engineProfile(ctx, client, deps.serverLoginCallbacks) },
    mTLS: mutualTls(deps),
    resourceIndicators: { enabled: true, ...resourceIndicators(deps) },
    richAuthorizationRequests: richAuthorizationRequests(deps.config),
    claimsParameter: {
      enabled: true,
      assertClaimsParameter: assertClaims(() => authenticationClasses(deps.config.settings().tenant)),
    },
  };
}

/** Whether a refresh rotates the refresh token. One that is not rotated has its idle lifetime renewed. */
function rotates(deps: Parameters<typeof engineConfiguration>[0]): Configuration['rotateRefreshToken'] {
  return async (ctx) => {
    const { RefreshToken: token, Client: client } = ctx.oidc.entities;
    if (token === undefined || client === undefined) return true;
    deps.transfers.check(ctx);
    await refuseClosed(deps, ctx);
    await deps.targets.decide(ctx, client, token);
    await deps.transferred.checkRefresh(ctx);
    await refuseUnboundRefresh(deps, ctx, { client, token });
    await deps.loginActions.atRefresh(ctx);
    if (applicationSettings(client).refreshToken.rotation_type === 'rotating') return true;
    await extendRefreshToken(deps, token, client);
    return false;
  };
}

// docs/understand/decisions/sessions-logout.md#cookies-are-secure-httponly-and-host-only
/**
 * SameSite `None`, because silent logins frame /authorize from the application's site. A forged cross-site request ends at
 * a page that asks, or at the application's registered callback.
 */
function cookies(): Configuration['cookies'] {
  return {
    names: {
      session: '__Host-gatehouse_session',
      interaction: '__Secure-gatehouse_interaction',
      resume: '__Secure-gatehouse_resume',
    },
    long: { httpOnly: true, secure: true, sameSite: 'none', signed: false, path: '/' },
    short: { httpOnly: true, secure: true, sameSite: 'lax', signed: false },
  };
}

// The engine's features that are on, their algorithms and their paths.

/** The engine's features that are on. Logout, userinfo and second factors are our own code. */
const FEATURES: NonNullable<Configuration['features']> = {
  devInteractions: { enabled: false },
  // Tokens are signed by src/signing, in this process or by a key service.
  externalSigningSupport: { enabled: true, ack: 'experimental-01' },
  encryption: { enabled: true },
  pushedAuthorizationRequests: { enabled: true },
  jwtResponseModes: { enabled: true },
  rpInitiatedLogout: { enabled: false },
  clientCredentials: { enabled: true },
  revocation: {
    enabled: true,
    // Another client's token is neither revoked nor revealed (RFC 7009 §2.1).
    allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
  },
};

const CLIENT_AUTHENTICATION = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'tls_client_auth',
  'self_signed_tls_client_auth',
  'none',
] as const;

const ALGORITHMS: NonNullable<Configuration['enabledJWA']> = {
  clientAuthSigningAlgValues: [...CREDENTIAL_ALGORITHMS],
  idTokenSigningAlgValues: [...TOKEN_ALGS],
  authorizationSigningAlgValues: [...SIGNING_ALGS],
  ...ENCRYPTION,
  dPoPSigningAlgValues: [...DPOP_ALGORITHMS],
};

const ROUTES: NonNullable<Configuration['routes']> = {
  authorization: '/authorize',
  token: '/oauth/token',
  revocation: '/oauth/revoke',
  pushed_authorization_request: '/oauth/par',
  userinfo: '/userinfo',
  jwks: '/.well-known/jwks.json',
  end_session: '/oidc/logout',
};

/** Metadata that the engine lacks: request objects are read before the engine, which does not know of them. */
const DISCOVERY: NonNullable<Configuration['discovery']> = {
  request_parameter_supported: true,
  request_object_signing_alg_values_supported: CREDENTIAL_ALGORITHMS,
};
