// Native social login: a token exchange (RFC 8693 §2.1) of what a mobile app got from a provider's own SDK
// (docs/wire/token.md). It is verified with the application's connection to that provider, and is then a login like any other.
import { z } from 'zod';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import type { ExchangeToken } from '../../../engine/token-exchange.ts';
import type { GrantDeclaration, GrantRequest } from '../../../engine/tokens.ts';
import { requiredField } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import { optional, required } from '../../../http/parameter-schemas.ts';
import type { Client, Connection } from '../../../records/collections.ts';
import type { StrategyName } from '../../../records/connections.ts';
import type { UpstreamDependencies, UpstreamIdentity } from '../redirect.ts';
import { connectionsFor } from '../resolve.ts';
import { strategyOf } from '../strategies.ts';
import type { Upstream } from '../upstream/begin.ts';
import { type CompleteDependencies, loginOf } from '../upstream/complete.ts';
import { appleIdentity } from './apple.ts';
import { facebookIdentity } from './facebook.ts';
import { googleIdentity } from './google.ts';
import type { NativeToken } from './token.ts';

export interface NativeGrantDependencies extends CompleteDependencies {
  rateLimits: Pick<RateLimits, 'takeFrom'>;
  /** Exchanges tokens that this server issued. */
  exchangeToken: ExchangeToken;
  /** Exchanges tokens that an action of the tenant verifies (custom token exchange). */
  exchangeCustomToken: ExchangeToken;
}

/** A provider whose SDK apps can log in with. */
interface NativeProvider {
  strategy: StrategyName;
  /** The member of the application's `native_social_login` that enables it. */
  setting: 'apple' | 'google' | 'facebook';
  /** Verifies a code or token. @throws AuthError by `upstreamFault` for one that is not valid, or was issued for another app. */
  identify(deps: UpstreamDependencies, token: NativeToken): Promise<UpstreamIdentity>;
}

/** The providers, by the path of the `subject_token_type`, whose host is the tenant's `vendor_host`. */
const NATIVE_PROVIDERS: Readonly<Record<string, NativeProvider>> = {
  '/oauth/token-type/apple-authz-code': { strategy: 'apple', setting: 'apple', identify: appleIdentity },
  '/oauth/token-type/google-id-token': {
    strategy: 'google-oauth2',
    setting: 'google',
    identify: googleIdentity,
  },
  '/oauth/token-type/facebook-info-session-access-token': {
    strategy: 'facebook',
    setting: 'facebook',
    identify: facebookIdentity,
  },
};

/** The token exchange grant: tokens of this server, of custom token exchange, and of native social login. */
export const nativeGrant: GrantDeclaration<NativeGrantDependencies> = {
  grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
  summary:
    "A token of this server, one that an action verifies, or a code or token of Apple's, Google's or Facebook's native SDK",
  parameters: z.object({
    subject_token: required('The code or token.'),
    subject_token_type: required('The type of the subject token.'),
    actor_token: optional('A token of the actor, who acts for the user.'),
    actor_token_type: optional('The type of the actor token.'),
    requested_token_type: optional('`urn:ietf:params:oauth:token-type:access_token`'),
    user_profile: optional('The profile of the user, as the app received it from the provider, in JSON.'),
  }),
  gty: 'urn:ietf:params:oauth:grant-type:token-exchange',
  events: { success: 'sens', failure: 'fens' },
  authenticate: async (deps, request) => {
    const answer = (await deps.exchangeToken(request)) ?? (await deps.exchangeCustomToken(request));
    if (answer !== undefined) return answer;
    const { params, clientId, ctx } = request;
    const token = requiredField(params, 'subject_token');
    const provider = providerOf(deps, requiredField(params, 'subject_token_type'));
    const client = await clientOf(deps, clientId, provider);
    const upstream = await connectionOf(deps, request, provider);
    await deps.rateLimits.takeFrom(ctx, 'nativeSocial');
    const nativeToken = { connection: upstream.connection, client, token, userProfile: params.user_profile };
    try {
      const identity = await provider.identify(deps, nativeToken);
      return { login: await loginOf(deps, ctx, clientId, upstream, identity) };
    } catch (thrown) {
      throw invalidGrant(deps, upstream.connection, thrown);
    }
  },
};

function providerOf({ config }: NativeGrantDependencies, type: string): NativeProvider {
  const prefix = `http://${config.settings().vendor_host}`;
  const path = type.startsWith(prefix) ? type.slice(prefix.length) : '';
  const provider = Object.hasOwn(NATIVE_PROVIDERS, path) ? NATIVE_PROVIDERS[path] : undefined;
  if (provider !== undefined) return provider;
  throw new AuthError(400, 'invalid_request', 'The subject_token_type is not supported.');
}

async function clientOf(
  { config }: NativeGrantDependencies,
  clientId: string,
  { setting }: NativeProvider,
): Promise<Client> {
  const client = await config.client(clientId);
  if (client?.native_social_login?.[setting]?.enabled === true) return client;
  throw new AuthError(403, 'unauthorized_client', 'Native social login is not enabled for this client.');
}

/** Returns the application's first connection to the provider, by name. */
async function connectionOf(
  { config }: NativeGrantDependencies,
  { clientId }: GrantRequest,
  provider: NativeProvider,
): Promise<Upstream> {
  for (const connection of await connectionsFor(config, clientId, undefined)) {
    const strategy = strategyOf(connection);
    if (strategy?.page === 'redirect' && strategy.name === provider.strategy) return { connection, strategy };
  }
  throw new AuthError(403, 'unauthorized_client', 'The connection is not enabled for this client.');
}

/** Returns the error for the token endpoint (RFC 6749 §5.2), and writes the cause to the server's own log. */
function invalidGrant({ log }: NativeGrantDependencies, { name }: Connection, thrown: unknown): unknown {
  if (!(thrown instanceof AuthError)) return thrown;
  if (thrown.cause !== undefined) {
    log.warn({ err: thrown.cause, connection: name }, 'a native login at an upstream provider failed');
  }
  return new AuthError(403, 'invalid_grant', thrown.error_description);
}
