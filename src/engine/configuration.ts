import type { Context } from 'koa';
import type { Configuration } from 'oidc-provider';
import type { Logger } from 'pino';
import type { Actions } from '../capabilities/actions/actions.ts';
import type { Challenges } from '../capabilities/protection/challenges.ts';
import type { LoginTickets } from '../capabilities/protection/login-tickets.ts';
import type { Signing } from '../capabilities/signing/signing.ts';
import type { ClientCertificates } from '../capabilities/tls/client-certificates.ts';
import { AuthError, isBusy } from '../http/errors.ts';
import { authenticationClasses } from '../records/authentication-classes.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Correlation } from '../runtime/correlation.ts';
import type { Measures } from '../runtime/measures.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';
import type { Users } from '../users/users.ts';
import { accessTokenFormat } from './access-token.ts';
import { createAdapter } from './adapter.ts';
import {
  applicationSettings,
  DELIVERY_MODE_PROPERTY,
  RESPONSE_TYPES,
  SETTINGS_PROPERTY,
} from './applications.ts';
import { resourceIndicators } from './audience.ts';
import { richAuthorizationRequests } from './authorization-details.ts';
import type { CheckRequest, DirectRedirect } from './authorize.ts';
import type { BrowserLogins } from './browser-login.ts';
import { refuseUnboundRefresh } from './certificate-binding.ts';
import { accounts, claimsByScope, OIDC_SCOPES, type VerifiedUsers } from './claims.ts';
import type { ClientAssertions } from './client-assertion.ts';
import type { Commits } from './commit.ts';
import { engineProfile } from './compliance.ts';
import type { CustomClaims } from './custom-claims.ts';
import { discoveryMembers } from './discovery.ts';
import { dpopFeature, type ProofState } from './dpop.ts';
import { preciseIssue, type TokenUsers } from './email-at-issue.ts';
import { ALGORITHMS, CLIENT_AUTHENTICATION, DISCOVERY, FEATURES, ROUTES } from './engine-features.ts';
import { assertClaims } from './essential-claims.ts';
import { loadGrant } from './grants.ts';
import { lastSteps } from './last-steps.ts';
import { lifetimes } from './lifetimes.ts';
import type { LoginActions } from './login-actions.ts';
import type { LogoutChannels } from './logout-channels.ts';
import type { MachineOrganizations } from './machine-organizations.ts';
import type { ErrorPage } from './message-modes.ts';
import { mutualTls } from './mtls.ts';
import type { Organizations } from './organizations.ts';
import type { OwnCallbacks } from './own-callbacks.ts';
import { type ConnectionFault, extraParameters, type UseTicket } from './parameter-checks.ts';
import { interactionPath } from './pending-interaction.ts';
import { policy } from './policy.ts';
import { refuseUnboundToken } from './proof-of-possession.ts';
import type { PushedRequests } from './pushed-requests.ts';
import type { ReadAhead } from './read-ahead.ts';
import { extendRefreshToken } from './refresh.ts';
import type { RefreshTargets } from './refresh-targets.ts';
import { engineKeys } from './renewal.ts';
import type { SecondFactor } from './second-factor.ts';
import type { SessionTransfers } from './session-transfer.ts';
import type { TransferredSessions } from './session-transfer-checks.ts';
import type { VendorGrant } from './tokens.ts';

export interface EngineDependencies {
  /** The public origin; the issuer is it with a slash. */
  settings: { baseUrl: string; issuer: string };
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
  ownCallbacks: OwnCallbacks;
  /** The parameters that endpoints of this server understand. */
  ownParameters: ReadonlySet<string>;
  checkRequest: CheckRequest;
  directRedirect: DirectRedirect;
  connectionFault: ConnectionFault;
  /** The certificates that clients show. */
  certificates: ClientCertificates;
  /** How applications learn that a session has ended. */
  logoutChannels: LogoutChannels;
  measures?: Pick<Measures, 'tokensIssued'> | undefined;
}

/** Binds a waiting request to its browser, by a cookie. */
export type BindInteraction = (ctx: Context, uid: string) => void;

/** Returns the engine's configuration. */
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
  bind: BindInteraction,
  logins: BrowserLogins,
): Configuration {
  const { settings, config, wallClock } = deps;
  const lacksFactorDescription = deps.secondFactor.description;
  return {
    adapter: createAdapter({ ...deps, grantTypes }),
    jwks: engineKeys(deps.signing.sign, config.signingKeys()),
    routes: ROUTES,
    features: features(deps),
    discovery: { ...DISCOVERY, ...discoveryMembers(settings.baseUrl) },
    enableHttpPostMethods: false,
    scopes: [...OIDC_SCOPES],
    acrValues: [...deps.acrValues],
    claims: claimsByScope,
    responseTypes: RESPONSE_TYPES,
    clientAuthMethods: [...CLIENT_AUTHENTICATION],
    enabledJWA: ALGORITHMS,
    assertJwtClientAuthClaimsAndHeader: deps.assertions.check,
    extraTokenClaims: tokenClaims(deps),
    // SDKs read the profile from the ID token (docs/decisions.md "User info").
    conformIdTokenClaims: false,
    allowOmittingSingleRegisteredRedirectUri: false,
    extraParams: extraParameters(deps, deps.ownCallbacks, useTicket),
    extraClientMetadata: { properties: [SETTINGS_PROPERTY, DELIVERY_MODE_PROPERTY] },
    cookies: cookies(),
    interactions: {
      policy: policy({
        ...deps,
        ...logins,
        lacksFactorDescription,
        lastSteps: lastSteps({ ...deps, lacksFactorDescription }),
      }),
      url: (ctx, { uid }) => {
        bind(ctx, uid);
        return interactionPath(uid);
      },
    },
    findAccount: logins.wrapFindAccount(accounts(deps)),
    loadExistingGrant: loadGrant(deps, deps.ownCallbacks),
    // A logout does not revoke an application's tokens, as with the hosted service.
    expiresWithSession: () => false,
    rotateRefreshToken: rotates(deps),
    ttl: lifetimes(config, wallClock),
    formats: { customizers: { jwt: accessTokenFormat({ ...deps, issuer: settings.issuer }) } },
    // Our own CORS middleware answers.
    clientBasedCORS: () => true,
    renderError: renderErrorOn(deps.errorPage),
  };
}

/** Checks every access token before it is issued, and adds the claims that belong to no API. */
function tokenClaims(
  deps: Pick<EngineDependencies, 'config' | 'clock'> & { tokenUsers: TokenUsers },
): NonNullable<Configuration['extraTokenClaims']> {
  return async (ctx, token) => {
    await refuseUnboundToken(deps, ctx, token);
    return preciseIssue(deps, ctx, token);
  };
}

/** Shows the engine's errors on our error page. */
function renderErrorOn(page: ErrorPage): NonNullable<Configuration['renderError']> {
  return (ctx, { error, error_description: description = 'The request is invalid.' }, cause) => {
    const shown = new AuthError(ctx.status, error, description, { cause });
    if (isBusy(shown)) ctx.set('Retry-After', '1');
    return page(ctx, shown);
  };
}

function features(deps: Parameters<typeof engineConfiguration>[0]): Configuration['features'] {
  return {
    ...FEATURES,
    dPoP: dpopFeature(deps, deps.proofs),
    fapi: { enabled: true, profile: (ctx, client) => engineProfile(ctx, client, deps.ownCallbacks) },
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
    await deps.targets.decide(ctx, client, token);
    await deps.transferred.checkRefresh(ctx);
    await refuseUnboundRefresh(deps, ctx, { client, token });
    await deps.loginActions.atRefresh(ctx);
    if (applicationSettings(client).refreshToken.rotation_type === 'rotating') return true;
    await extendRefreshToken(deps, token, client);
    return false;
  };
}

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
