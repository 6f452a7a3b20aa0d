// Parameters of /authorize beyond the standard, translated for the engine (docs/reference/wire/authorize.md):
// `response_type=token`, `audience`, a missing scope, `offline_access` without consent prompt, parameters for upstream
// providers.
import type { ParsedUrlQuery } from 'node:querystring';
import { type Client, errors, type KoaContextWithOIDC } from 'oidc-provider';
import { isTicket } from '../../capabilities/protection/challenges.ts';
import { isCredentialName } from '../../http/server/application.ts';
import { scopeValues } from '../../records/clients/apis.ts';
import type { Config } from '../../tenant/config.ts';
import type { Organizations } from '../admission/admission.ts';
import { transferOf } from '../admission/exchange-context.ts';
import { POPUP_MODE } from '../base/message-modes.ts';
import {
  EXTENSIONS_PARAMETER,
  PLACEHOLDER_NONCE,
  type RequestExtensions,
  readExtensions,
  requestedApi,
  requestedAudience,
  toResource,
} from '../base/request-extensions.ts';
import { applicationSettings } from '../client/applications.ts';
import type { ServerLoginCallbacks } from '../client/server-login-callbacks.ts';
import { allowsRefresh } from '../session/session-transfer.ts';
import type { ReceivedRequest } from './received-request.ts';
import { responseParameters } from './received-request.ts';

// docs/understand/decisions/authorize.md#a-request-without-scope-gets-openid-profile-email
/** The scope when none is requested, as with the hosted service. */
const DEFAULT_SCOPE = 'openid profile email';

/** Parameters known here besides the engine's. Unknown ones are kept for upstream providers. */
const VENDOR_PARAMETERS = [
  'audience',
  'connection',
  'organization',
  'invitation',
  'screen_hint',
  'connection_scope',
] as const;

const ENGINE_PARAMETERS = [
  'acr_values',
  'authorization_details',
  'claims',
  'claims_locales',
  'client_id',
  'code_challenge',
  'code_challenge_method',
  'display',
  'dpop_jkt',
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

/** The parameter of a session transfer token. */
const TRANSFER_PARAMETER = 'session_transfer_token';

/** Parameters that SDKs add for themselves; no endpoint has them. */
const ADDED_BY_SDKS: ReadonlySet<string> = new Set(['auth0Client', 'owp', 'protocol', '_intstate']);

const KNOWN = new Set<string>([...ENGINE_PARAMETERS, ...VENDOR_PARAMETERS]);
const MAX_FORWARDED = 30;
const MAX_FORWARDED_LENGTH = 1000;

/**
 * Translates an authorization request for the engine.
 * @param deps `endpointParameters` are those that endpoints of this server understand; they are not forwarded upstream.
 * @param browser hash of the request's secret in its browser; a pushed request has none yet.
 */
export async function normalizeRequest(
  {
    config,
    endpointParameters,
  }: { config: Pick<Config, 'settings' | 'resourceServer'>; endpointParameters: ReadonlySet<string> },
  { parameters: query, refused, pushed, isSigned }: ReceivedRequest,
  browser?: string,
): Promise<ParsedUrlQuery> {
  const request: ParsedUrlQuery = {};
  for (const [name, value] of Object.entries(query)) if (KNOWN.has(name)) request[name] = value;
  Object.assign(request, responseParameters(request.request));
  const api = await requestedApi(config, request);
  delete request.resource;
  if ('identifier' in api && api.identifier !== undefined) request.resource = toResource(api.identifier);
  // The engine refuses repeated parameters (RFC 6749 §3.1); only single values are changed here.
  if (request.scope === undefined || request.scope === '') request.scope = DEFAULT_SCOPE;
  if (query.owp === 'true' && request.response_mode === undefined) request.response_mode = POPUP_MODE;
  const withoutNonce = normalizeResponseType(request);
  const extensions: RequestExtensions = {
    offline: scopes(request).includes('offline_access'),
    withoutNonce,
    upstream: upstreamParameters(query, endpointParameters),
    ...(browser !== undefined && { browser }),
    ...(refused && { refused }),
    ...(pushed !== undefined && { pushed }),
    ...((isSigned || pushed !== undefined) && { isFixed: true }),
    ...(typeof query.login_ticket === 'string' && { loginTicket: query.login_ticket }),
    ...(isToken(query[TRANSFER_PARAMETER]) && { transferToken: query[TRANSFER_PARAMETER] }),
    ...('fault' in api && { invalidTarget: api.fault }),
  };
  request[EXTENSIONS_PARAMETER] = JSON.stringify(extensions);
  return request;
}

// docs/understand/decisions/authorize.md#response_typetoken-also-returns-an-id-token
/**
 * `token` alone also returns an ID token (docs/reference/wire/authorize.md), for which the engine needs `openid` and a
 * nonce.
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

const isToken = (value: unknown): value is string => typeof value === 'string' && isTicket(value);

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function scopes(request: ParsedUrlQuery): string[] {
  return typeof request.scope === 'string' ? request.scope.split(' ') : [];
}

/**
 * Returns the parameters for an upstream provider: those that are neither ours nor a credential. They are stored with the
 * waiting request and shown to a login page of the tenant, too.
 */
function upstreamParameters(
  query: ParsedUrlQuery,
  endpointParameters: ReadonlySet<string>,
): Record<string, string> {
  const isForeign = (name: string) =>
    !KNOWN.has(name) && !endpointParameters.has(name) && !ADDED_BY_SDKS.has(name) && !isCredentialName(name);
  const foreign = Object.entries(query).filter(
    (entry): entry is [string, string] =>
      isForeign(entry[0]) && entry[0] !== EXTENSIONS_PARAMETER && typeof entry[1] === 'string',
  );
  return Object.fromEntries(
    foreign.filter(([, value]) => value.length <= MAX_FORWARDED_LENGTH).slice(0, MAX_FORWARDED),
  );
}

// Checks the parameters of /authorize beyond the standard.

type Validator = (ctx: KoaContextWithOIDC, value: string | undefined, client: Client) => Promise<void> | void;

// docs/understand/decisions/authorize.md#a-connection-that-is-not-enabled-for-the-application-is-refused
/** Why an application's request may not name a connection; undefined when it may. */
export type ConnectionFault = (clientId: string, name: string) => Promise<string | undefined>;

/** Logs the user in for a silent request that has a login ticket or a session transfer token. */
export type UseTicket = (ctx: KoaContextWithOIDC) => Promise<void>;

/**
 * The engine's `extraParams`: our parameters and their checks. The engine runs them after its own checks and before it
 * reads the session: the moment to restore what `normalizeRequest` took out, and to use a login ticket.
 */
export function extraParameters(
  {
    config,
    connectionFault,
    organizations,
  }: {
    config: Config;
    connectionFault: ConnectionFault;
    organizations: Pick<Organizations, 'checkOrganization' | 'checkInvitation'>;
  },
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'has'>,
  useTicket: UseTicket,
): Record<string, Validator | null> {
  return {
    ...Object.fromEntries(VENDOR_PARAMETERS.map((name) => [name, null])),
    connection: async (_ctx, name, client) => {
      const fault = name === undefined ? undefined : await connectionFault(client.clientId, name);
      if (fault !== undefined) throw new errors.InvalidRequest(fault);
    },
    // In this order, because an invitation is for the organization.
    organization: organizations.checkOrganization,
    invitation: organizations.checkInvitation,
    [EXTENSIONS_PARAMETER]: async (ctx, _value, client) => {
      const { params } = ctx.oidc;
      if (params === undefined) return;
      const { offline, withoutNonce, invalidTarget } = readExtensions(params);
      if (invalidTarget !== undefined) throw new errors.InvalidTarget(invalidTarget);
      if (
        applicationSettings(client).isCodeInternalOnly &&
        !serverLoginCallbacks.has(String(params.redirect_uri)) &&
        String(params.response_type).split(' ').includes('code')
      ) {
        throw new errors.UnauthorizedClient("Grant type 'authorization_code' not allowed for the client.");
      }
      // The rest applies when the browser comes, not when the request is pushed.
      if (ctx.oidc.route === 'pushed_authorization_request') return;
      if (withoutNonce) params.nonce = undefined;
      await useTicket(ctx);
      if (offline && (await allowsOfflineAccess(config, ctx, client))) restoreOfflineAccess(params);
    },
  };
}

// docs/understand/decisions/authorize.md#offline_access-needs-no-consent-prompt
/**
 * Restores `offline_access`, which the engine removes without `prompt=consent` (OIDC Core §11). Here the settings
 * of application and API decide.
 */
function restoreOfflineAccess(params: Record<string, unknown>): void {
  const scopes = scopeValues(String(params.scope ?? '')).filter((scope) => scope !== 'offline_access');
  params.scope = [...scopes, 'offline_access'].join(' ');
}

async function allowsOfflineAccess(
  config: Config,
  { oidc: { params = {}, session } }: KoaContextWithOIDC,
  client: Client,
): Promise<boolean> {
  const transfer = readExtensions(params).handed?.transfer ?? transferOf(session);
  if (!allowsRefresh(client, transfer)) return false;
  if (!client.grantTypeAllowed('refresh_token')) return false;
  if (!String(params.response_type).split(' ').includes('code')) return false;
  const audience = requestedAudience(params);
  return audience === undefined || (await config.resourceServer(audience))?.allow_offline_access === true;
}
