// What /authorize takes beyond the standard, turned into what the engine takes: `response_type=token`,
// `audience`, a missing scope, refresh tokens without a consent prompt, parameters for upstream providers.
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

/** The parameter that carries our notes through the engine; whatever a client sends under it is dropped. */
export const NOTES_PARAMETER = 'gatehouse_notes';

/** Stands for a nonce that was not sent, where the engine wants one. */
export const PLACEHOLDER_NONCE = 'none-was-sent';

/** What SDKs ask for when the application names no scope; the hosted service assumes the same. */
const DEFAULT_SCOPE = 'openid profile email';

/** Parameters with a meaning here, the engine's own apart; all others are kept for upstream providers. */
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

/** Never forwarded: ours, or the SDKs' own bookkeeping. */
const NOT_FORWARDED = new Set([
  NOTES_PARAMETER,
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

/** What the normalisation took out of a request, and its way back in. */
const notesSchema = z.object({
  /** `offline_access` was asked for. */
  offline: z.boolean(),
  /** The nonce is a placeholder: the client sent none. */
  withoutNonce: z.boolean(),
  /** Unknown parameters, for the upstream provider. */
  upstream: z.record(z.string(), z.string()),
  /** A ticket of a login that was done before the request (cross-origin, or by a link). */
  loginTicket: z.string().optional(),
  /** Why the API that the request names is none. */
  invalidTarget: z.string().optional(),
  /** Of the secret that the request has in its browser, should it come to wait there: its hash. */
  browser: z.string().optional(),
});

type Notes = z.infer<typeof notesSchema>;

/**
 * An authorization request as the engine takes it, made of one as applications send it.
 * @param browser the hash of the secret that it has in its browser.
 */
export function normalizeRequest(query: ParsedUrlQuery, browser: string): ParsedUrlQuery {
  const request: ParsedUrlQuery = {};
  for (const [name, value] of Object.entries(query)) if (KNOWN.has(name)) request[name] = value;
  Object.assign(request, answerParameters(request.request));
  const api = namedApi(request);
  delete request.resource;
  if ('identifier' in api && api.identifier !== undefined) request.resource = toResource(api.identifier);
  // Any other repeated parameter is the engine's to refuse (RFC 6749 §3.1): only single values are touched.
  if (request.scope === undefined || request.scope === '') request.scope = DEFAULT_SCOPE;
  if (query.owp === 'true' && request.response_mode === undefined) request.response_mode = POPUP_MODE;
  const withoutNonce = normalizeResponseType(request);
  const notes: Notes = {
    offline: scopes(request).includes('offline_access'),
    withoutNonce,
    upstream: forUpstream(query),
    browser,
    ...(typeof query.login_ticket === 'string' && { loginTicket: query.login_ticket }),
    ...('fault' in api && { invalidTarget: api.fault }),
  };
  request[NOTES_PARAMETER] = JSON.stringify(notes);
  return request;
}

/**
 * `token` alone gives an ID token as well (spec "Login"), which the engine issues for a request with
 * `openid` and a nonce. @returns whether the nonce is a placeholder.
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
  // A nonce without an ID token to put it in is harmless; the engine would refuse it.
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

/** The notes of a request that {@link normalizeRequest} made; those that say nothing of one that it did not make. */
export function readNotes(params: Readonly<Record<string, unknown>>): Notes {
  const notes = params[NOTES_PARAMETER];
  const read = notesSchema.safeParse(typeof notes === 'string' ? parseJson(notes) : undefined);
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

/** Ends a login that was done before the request, where the request shows no page. */
export type UseTicket = (ctx: KoaContextWithOIDC, ticket: string | undefined) => Promise<void>;

/**
 * The engine's `extraParams`: our parameters, and the checks on them. The engine runs these when its own
 * checks are done and before it looks at the session, which is the moment to put back what
 * {@link normalizeRequest} had to hide from them, and to log in who brings a login ticket.
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
    [NOTES_PARAMETER]: async (ctx, _value, client) => {
      const { params } = ctx.oidc;
      if (params === undefined) return;
      const { offline, withoutNonce, loginTicket, invalidTarget } = readNotes(params);
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
 * The engine takes `offline_access` out of a request without `prompt=consent` (OIDC Core §11); the hosted
 * service leaves the decision to the application's and the API's settings.
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
