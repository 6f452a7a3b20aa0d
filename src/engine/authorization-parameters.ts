// Parameters of /authorize beyond the standard, translated for the engine (docs/wire/authorize.md): `response_type=token`,
// `audience`, a missing scope, `offline_access` without consent prompt, parameters for upstream providers.
import type { ParsedUrlQuery } from 'node:querystring';
import { type Client, errors, type KoaContextWithOIDC } from 'oidc-provider';
import { z } from 'zod';
import type { Config } from '../tenant/config.ts';
import { isBuilt } from '../tenant/strategies.ts';
import { applicationSettings, isInternalCallback } from './applications.ts';
import { namedApi, requestedAudience, toResource } from './audience.ts';
import { POPUP_MODE } from './message-modes.ts';
import { checkOrganization } from './organizations.ts';
import { answerParameters } from './request-object.ts';

/** Internal parameter that carries {@link RequestExtensions} through the engine; a client's own value is dropped. */
export const EXTENSIONS_PARAMETER = 'gatehouse_notes';

/** Stands for a missing nonce where the engine requires one. */
export const PLACEHOLDER_NONCE = 'none-was-sent';

/** The scope when none is requested, as with the hosted service. */
const DEFAULT_SCOPE = 'openid profile email';

/** Parameters known here besides the engine's; unknown ones are kept for upstream providers. */
export const VENDOR_PARAMETERS = [
  'audience',
  'connection',
  'organization',
  'invitation',
  'screen_hint',
  'connection_scope',
] as const;

const ENGINE_PARAMETERS = [
  'acr_values',
  'claims',
  'claims_locales',
  'client_id',
  'code_challenge',
  'code_challenge_method',
  'display',
  'id_token_hint',
  'login_hint',
  'max_age',
  'nonce',
  'prompt',
  'redirect_uri',
  'registration',
  'request',
  'request_uri',
  'resource',
  'response_mode',
  'response_type',
  'scope',
  'state',
  'ui_locales',
];

/** Never forwarded upstream: internal parameters, and those that SDKs add for themselves. */
const NOT_FORWARDED = new Set([
  EXTENSIONS_PARAMETER,
  'auth0Client',
  'login_ticket',
  'realm',
  'owp',
  'protocol',
  '_csrf',
  '_intstate',
  'dpop_jkt',
  'client_secret',
  'code_verifier',
  'access_token',
]);

const KNOWN = new Set<string>([...ENGINE_PARAMETERS, ...VENDOR_PARAMETERS]);
const MOST_FORWARDED = 30;
const LONGEST_FORWARDED = 1000;

/** What {@link normalizeRequest} takes out of a request, to be restored later. */
const extensionsSchema = z.object({
  /** `offline_access` was asked for. */
  offline: z.boolean(),
  /** The nonce is {@link PLACEHOLDER_NONCE}. */
  withoutNonce: z.boolean(),
  /** Unknown parameters, for the upstream provider. */
  upstream: z.record(z.string(), z.string()),
  /** Ticket of a login before this request (cross-origin, or by a link). */
  loginTicket: z.string().optional(),
  /** Why the named API is invalid. */
  invalidTarget: z.string().optional(),
  /** Hash of the request's secret in its browser. */
  browser: z.string().optional(),
});

type RequestExtensions = z.infer<typeof extensionsSchema>;

/**
 * Translates an authorization request for the engine.
 * @param browser hash of the request's secret in its browser.
 */
export function normalizeRequest(query: ParsedUrlQuery, browser: string): ParsedUrlQuery {
  const request: ParsedUrlQuery = {};
  for (const [name, value] of Object.entries(query)) if (KNOWN.has(name)) request[name] = value;
  Object.assign(request, answerParameters(request.request));
  const api = namedApi(request);
  delete request.resource;
  if ('identifier' in api && api.identifier !== undefined) request.resource = toResource(api.identifier);
  // The engine refuses repeated parameters (RFC 6749 §3.1); only single values are changed here.
  if (request.scope === undefined || request.scope === '') request.scope = DEFAULT_SCOPE;
  if (query.owp === 'true' && request.response_mode === undefined) request.response_mode = POPUP_MODE;
  const withoutNonce = normalizeResponseType(request);
  const extensions: RequestExtensions = {
    offline: scopes(request).includes('offline_access'),
    withoutNonce,
    upstream: forUpstream(query),
    browser,
    ...(typeof query.login_ticket === 'string' && { loginTicket: query.login_ticket }),
    ...('fault' in api && { invalidTarget: api.fault }),
  };
  request[EXTENSIONS_PARAMETER] = JSON.stringify(extensions);
  return request;
}

/**
 * `token` alone also returns an ID token (spec "Login"), for which the engine needs `openid` and a nonce.
 * @returns whether the nonce is a placeholder.
 */
function normalizeResponseType(request: ParsedUrlQuery): boolean {
  if (request.response_type === 'token') {
    request.response_type = 'id_token token';
    if (typeof request.scope === 'string' && !scopes(request).includes('openid')) {
      request.scope = `openid ${request.scope}`;
    }
    if (request.nonce !== undefined && request.nonce !== '') return false;
    request.nonce = PLACEHOLDER_NONCE;
    return true;
  }
  const givesIdToken = single(request.response_type)?.split(' ').includes('id_token') === true;
  // The engine would refuse a nonce without an ID token; it is harmless.
  if (!givesIdToken && !scopes(request).includes('openid')) delete request.nonce;
  return false;
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function scopes(request: ParsedUrlQuery): string[] {
  return typeof request.scope === 'string' ? request.scope.split(' ') : [];
}

function forUpstream(query: ParsedUrlQuery): Record<string, string> {
  const unknown = Object.entries(query).filter(
    (entry): entry is [string, string] =>
      !KNOWN.has(entry[0]) && !NOT_FORWARDED.has(entry[0]) && typeof entry[1] === 'string',
  );
  return Object.fromEntries(
    unknown.filter(([, value]) => value.length <= LONGEST_FORWARDED).slice(0, MOST_FORWARDED),
  );
}

/** The extensions of a normalized request; empty for any other. */
export function readExtensions(params: Readonly<Record<string, unknown>>): RequestExtensions {
  const extensions = params[EXTENSIONS_PARAMETER];
  const read = extensionsSchema.safeParse(typeof extensions === 'string' ? parseJson(extensions) : undefined);
  return read.success ? read.data : { offline: false, withoutNonce: false, upstream: {} };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Validator = (ctx: KoaContextWithOIDC, value: string | undefined, client: Client) => Promise<void> | void;

/** Completes a silent request with the login of its ticket. */
export type UseTicket = (ctx: KoaContextWithOIDC, ticket: string | undefined) => Promise<void>;

/**
 * The engine's `extraParams`: our parameters and their checks. The engine runs them after its own checks and before it
 * reads the session: the moment to restore what {@link normalizeRequest} took out, and to use a login ticket.
 */
export function extraParameters(
  config: Config,
  baseUrl: string,
  useTicket: UseTicket,
): Record<string, Validator | null> {
  return {
    ...Object.fromEntries(VENDOR_PARAMETERS.map((name) => [name, null])),
    connection: async (_ctx, name, client) => {
      if (name === undefined) return;
      const connection = await config.connection(name);
      if (connection === undefined) throw new errors.InvalidRequest('the connection was not found');
      if (!connection.enabled_clients.includes(client.clientId)) {
        throw new errors.InvalidRequest('the connection is not enabled for this application');
      }
      const { strategy } = connection;
      if (!isBuilt(strategy)) {
        throw new errors.InvalidRequest(
          `the connection ${name} is of a kind (${strategy}) that is not available here`,
        );
      }
    },
    organization: (_ctx, idOrName, client) => checkOrganization(config, idOrName, client),
    [EXTENSIONS_PARAMETER]: async (ctx, _value, client) => {
      const { params } = ctx.oidc;
      if (params === undefined) return;
      const { offline, withoutNonce, loginTicket, invalidTarget } = readExtensions(params);
      if (invalidTarget !== undefined) throw new errors.InvalidTarget(invalidTarget);
      if (
        applicationSettings(client).codeForUsOnly &&
        !isInternalCallback(baseUrl, String(params.redirect_uri)) &&
        String(params.response_type).split(' ').includes('code')
      ) {
        throw new errors.UnauthorizedClient("Grant type 'authorization_code' not allowed for the client.");
      }
      if (withoutNonce) params.nonce = undefined;
      if (offline && (await mayStayOnline(config, params, client))) stayOnline(params);
      await useTicket(ctx, loginTicket);
    },
  };
}

/**
 * Restores `offline_access`, which the engine removes without `prompt=consent` (OIDC Core §11): here the application's and
 * the API's settings decide.
 */
function stayOnline(params: Record<string, unknown>): void {
  const kept = String(params.scope ?? '')
    .split(' ')
    .filter((scope) => scope !== 'offline_access' && scope !== '');
  params.scope = [...kept, 'offline_access'].join(' ');
}

async function mayStayOnline(
  config: Config,
  params: Readonly<Record<string, unknown>>,
  client: Client,
): Promise<boolean> {
  if (!client.grantTypeAllowed('refresh_token')) return false;
  if (!String(params.response_type).split(' ').includes('code')) return false;
  const audience = requestedAudience(params);
  return audience === undefined || (await config.resourceServer(audience))?.allow_offline_access === true;
}
