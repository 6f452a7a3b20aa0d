// The routes of the engine's endpoints. Each request goes through an endpoint of ours first; some are answered
// without the engine.
import type { Context } from 'koa';
import { z } from 'zod';
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import type { Signing } from '../../capabilities/signing/signing.ts';
import { oauthShape } from '../../http/errors.ts';
import { httpLimits } from '../../http/limits.ts';
import { optional } from '../../http/parameter-schemas.ts';
import { authenticationClasses } from '../../records/users/authentication-classes.ts';
import type { Config } from '../../tenant/config.ts';
import { acceptsPushedRequests } from '../authorize/par-endpoint.ts';
import { engineEvents, engineLimits } from '../base/engine-declaration.ts';
import {
  authorizationParameters,
  discoveryAnswer,
  introspectionAnswer,
  introspectionBody,
  keySetAnswer,
  pushedAnswer,
  pushedBody,
  revocationBody,
  tokenAnswer,
  userinfoAnswer,
} from '../base/parameter-schemas.ts';
import { hasStandardClaims } from '../claims/claims.ts';
import { CHECK_SESSION, hasSessionManagement, sendCheckSession } from '../session/session-management.ts';
import { feature } from './feature.ts';
import type { Engine } from './provider.ts';
import { mtlsAliases } from './renewal.ts';

interface EngineRoutesDependencies
  extends Pick<
    Engine,
    | 'enter'
    | 'sendDiscovery'
    | 'authorization'
    | 'pushRequest'
    | 'tokens'
    | 'userinfo'
    | 'keys'
    | 'introspect'
  > {
  config: Pick<Config, 'settings' | 'customDomains'>;
  rateLimits: RateLimits;
  /** The public origin where clients are asked for certificates, if it is another one. */
  mtlsOrigin: string | undefined;
  signing: Pick<Signing, 'ensure'>;
  /** Endpoints beyond the standards that features have, by their names in the metadata. */
  endpoints: Readonly<Record<string, string>>;
}

/** Bytes; more than a request object and an assertion together need. */
const MAX_PUSHED_BYTES = 10 * 1024;

const authorize = {
  limit: engineLimits.authorize,
  cors: 'none',
  errors: 'page',
  summary: 'Log in (OAuth 2.0 and OpenID Connect authorization request)',
  answers: {
    302: 'To the callback with the response or an error, or to the pages of the login.',
    200: 'With `response_mode` `form_post` or `web_message`: a page that passes the response on.',
  },
  handle: ({ authorization }: EngineRoutesDependencies, ctx: Context) => authorization.request(ctx),
} as const;

const discovery = {
  limit: engineLimits.discovery,
  cors: 'any',
  errors: oauthShape,
  summary: 'The metadata of the server (discovery)',
  answers: { 200: { description: 'The metadata', body: discoveryAnswer } },
  handle: (deps: EngineRoutesDependencies, ctx: Context) =>
    deps.sendDiscovery(ctx, () => makeMetadata(deps, ctx)),
} as const;

const endpoint = { cors: 'applications', errors: oauthShape } as const;
/** Also for pages of applications that registered themselves. */
const clientEndpoint = { cors: 'clients', errors: oauthShape } as const;

const profile = {
  ...clientEndpoint,
  limit: httpLimits.other,
  summary: "The user's profile, by an access token",
  security: ['accessToken'],
  answers: { 200: { description: 'The claims that the scopes of the token allow', body: userinfoAnswer } },
  handle: sendProfile,
} as const;

export const engine = feature<EngineRoutesDependencies>({
  name: 'engine',
  limits: engineLimits,
  events: engineEvents,
  collections: ['signingKeys', 'sharedSecrets', 'artifacts', 'consents'],
  routes: {
    'GET /authorize': { ...authorize, query: authorizationParameters },
    'POST /authorize': { ...authorize, uncheckedBody: authorizationParameters, bodyTypes: ['form'] },
    'GET /authorize/:uid': {
      limit: engineLimits.authorize,
      cors: 'none',
      errors: 'page',
      handle: ({ authorization }, ctx) => authorization.resume(ctx),
    },
    'POST /oauth/par': {
      ...endpoint,
      limit: engineLimits.par,
      bodies: { maxBytes: MAX_PUSHED_BYTES },
      summary: 'Push an authorization request (RFC 9126)',
      security: ['client'],
      uncheckedBody: pushedBody,
      answers: {
        201: { description: 'The `request_uri` for `/authorize`', body: pushedAnswer },
      },
      handle: ({ pushRequest }, ctx) => pushRequest(ctx),
    },
    'POST /oauth/token': {
      ...clientEndpoint,
      limit: engineLimits.token,
      summary: 'Exchange a grant for tokens',
      security: ['client'],
      answers: { 200: { description: 'The tokens', body: tokenAnswer } },
      handle: ({ tokens }, ctx) => tokens.token(ctx),
    },
    'POST /oauth/revoke': {
      ...clientEndpoint,
      limit: engineLimits.revoke,
      summary: 'Revoke a refresh token (RFC 7009)',
      security: ['client'],
      uncheckedBody: revocationBody,
      answers: { 200: 'Revoked; also for a token that is not one of the application' },
      handle: ({ tokens }, ctx) => tokens.revoke(ctx),
    },
    'POST /oauth/introspect': {
      ...endpoint,
      cors: 'none',
      limit: engineLimits.introspect,
      summary: 'Tell the client of an API whether an access token for that API is active (RFC 7662)',
      security: ['client'],
      uncheckedBody: introspectionBody,
      answers: {
        200: { description: 'Whether the token is active, and its claims', body: introspectionAnswer },
      },
      handle: async ({ introspect }, ctx) => {
        const found = await introspect(ctx);
        ctx.set('Cache-Control', 'no-store');
        ctx.body = found;
      },
    },
    'GET|HEAD /.well-known/openid-configuration': discovery,
    'GET|HEAD /.well-known/oauth-authorization-server': discovery,
    // The slash at the end of the issuer goes before its path is inserted (RFC 8414 §3.1). Clients leave it, such as the
    // SDK of the Model Context Protocol for Go.
    'GET|HEAD /.well-known/oauth-authorization-server/': discovery,
    'GET|HEAD /.well-known/jwks.json': {
      ...discovery,
      summary: 'The public keys that tokens are signed with',
      answers: { 200: { description: 'The keys, the current one first', body: keySetAnswer } },
      handle: sendKeys,
    },
    [`GET ${CHECK_SESSION}` as const]: {
      limit: engineLimits.discovery,
      cors: 'none',
      errors: 'page',
      handle: ({ config }, ctx) => sendCheckSession(config, ctx),
    },
    'GET /userinfo': profile,
    'POST /userinfo': {
      ...profile,
      uncheckedBody: z.object({
        access_token: optional('The access token, instead of the header (RFC 6750 §2.2).'),
      }),
    },
  },
});

async function makeMetadata(deps: EngineRoutesDependencies, ctx: Context): Promise<void> {
  const { enter, config } = deps;
  await enter(ctx);
  const isStandard = hasStandardClaims(config, undefined);
  const { supported: acr_values_supported } = authenticationClasses(config.settings().tenant);
  // A tenant with standard claims gets only standard metadata.
  const metadata: Record<string, unknown> = {
    ...(ctx.body as Record<string, unknown>),
    acr_values_supported,
    ...(isStandard ? {} : deps.endpoints),
  };
  const { flags, dynamic_client_registration_security_mode: mode } = config.settings().tenant;
  if (flags.enable_dynamic_client_registration === true) {
    metadata.registration_endpoint = `${String(metadata.issuer)}oidc/register`;
    metadata.userinfo_signing_alg_values_supported = ['RS256'];
    // Only of applications that register themselves, and what they have registered.
    if (mode === 'permissive')
      Object.assign(metadata, {
        request_uri_parameter_supported: true,
        require_request_uri_registration: true,
      });
  }
  if (config.settings().tenant.client_id_metadata_document_supported === true)
    metadata.client_id_metadata_document_supported = true;
  if (!acceptsPushedRequests(config)) delete metadata.pushed_authorization_request_endpoint;
  // Its value is a template and no URL, as with the hosted service.
  if (isStandard) delete metadata.global_token_revocation_endpoint;
  if (hasSessionManagement(config))
    metadata.check_session_iframe = `${String(metadata.issuer)}${CHECK_SESSION.slice(1)}`;
  const origin = deps.mtlsOrigin ?? (await edgeOrigin(config));
  ctx.body = origin === undefined ? metadata : { ...metadata, ...mtlsAliases(metadata, origin) };
}

/**
 * Returns the origin where the reverse proxy of a custom domain asks for certificates, named as with the hosted
 * service.
 */
async function edgeOrigin(config: EngineRoutesDependencies['config']): Promise<string | undefined> {
  if (config.settings().tenant.mtls?.enable_endpoint_aliases !== true) return undefined;
  const [domain] = await config.customDomains();
  return domain && `https://mtls.${domain.domain}`;
}

async function sendKeys({ keys, signing }: EngineRoutesDependencies, ctx: Context): Promise<void> {
  await signing.ensure();
  ctx.set('Cache-Control', 'public, max-age=15, stale-while-revalidate=15');
  ctx.body = keys.keySet();
}

async function sendProfile(deps: EngineRoutesDependencies, ctx: Context): Promise<void> {
  const userId = await deps.userinfo.authenticate(ctx);
  if (userId === undefined) return;
  await deps.rateLimits.take(ctx, engineLimits.userinfo, userId);
  await deps.userinfo.respond(ctx);
}
