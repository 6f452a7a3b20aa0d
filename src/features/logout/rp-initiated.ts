// GET and POST /oidc/logout: validates the request and decides whether the user is asked first
// (docs/reference/wire/logout.md; OpenID Connect RP-Initiated Logout 1.0 §2).

import type { UserSession } from '../../engine/session/sessions.ts';
import type { IdTokenHint, IdTokenReaders } from '../../engine/token/sent-id-tokens.ts';
import { byCanonicalTag, matchLanguage } from '../../http/languages.ts';
import { isLogoutUrlOf } from '../../records/clients/allowed-urls.ts';
import type { Client, Organization } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import { enabledLocales } from '../../tenant/languages.ts';
import type { ValidLogout } from './end-session.ts';
import { firstLogoutUrl, organizationById } from './redirects.ts';
import { badRequest, notAllowed, unknownClient } from './request.ts';
import { isFlag } from './v2.ts';

export const RP_PARAMETERS = [
  'id_token_hint',
  'logout_hint',
  'post_logout_redirect_uri',
  'client_id',
  'federated',
  'state',
  'ui_locales',
] as const;

export type RpRequest = Partial<Record<(typeof RP_PARAMETERS)[number], string>>;

export interface RpDependencies {
  config: Config;
  readIdTokenHint: IdTokenReaders['readIdTokenHint'];
  clientOfForgottenToken: IdTokenReaders['clientOfForgottenToken'];
}

export interface RpLogout extends ValidLogout {
  /** The application that asks, if known. */
  client: Client | undefined;
  // docs/understand/decisions/sessions-logout.md#oidclogout-asks-for-confirmation-unless-the-request-identifies-the-session
  /** Whether the request identifies this session; if not, the user is asked. */
  identifies(session: UserSession): boolean;
}

/**
 * Validates a request, without ending a session.
 * @param method `federated` is a bare flag in a query and `true` or `false` in a form.
 * @param session the browser's.
 * @throws AuthError 400 naming the broken rule.
 */
export async function validateRpLogout(
  deps: RpDependencies,
  request: RpRequest,
  method: 'GET' | 'POST',
  session: UserSession | undefined,
): Promise<RpLogout> {
  const { logout_hint: logoutHint = '', ui_locales: locales = '' } = request;
  checkLocales(locales, enabledLocales(deps.config.settings().tenant));
  const federated = readFederated(request.federated, method);
  const { hint, forgotten } = await readHint(deps, request.id_token_hint);
  const clientId = request.client_id || forgotten?.client_id || '';
  if (forgotten !== undefined && clientId !== forgotten.client_id) throw otherAudience();
  if (hint !== undefined && logoutHint !== '' && hint.sid !== logoutHint) {
    throw badRequest('logout_hint does not match the sid of the id_token_hint.');
  }
  if (hint !== undefined && clientId !== '' && hint.client.client_id !== clientId) {
    throw otherAudience();
  }
  const namedClient = clientId === '' ? undefined : await deps.config.client(clientId);
  if (clientId !== '' && namedClient === undefined) throw unknownClient(clientId);
  // docs/understand/decisions/sessions-logout.md#organization_name-in-a-logout-url-is-the-organization-of-the-login
  const organization = await organizationById(
    deps.config,
    hint === undefined ? session?.organization : hint.organization,
  );
  return {
    client: namedClient ?? hint?.client,
    clientId: (namedClient ?? hint?.client)?.client_id,
    returnTo: redirectTarget(deps.config, request, { namedClient, hint, organization }),
    federated,
    identifies: (session) => (hint === undefined ? logoutHint === session.sid : belongsTo(hint, session)),
  };
}

/** Whether an ID token belongs to this session; one without `sid` has to belong only to its user. */
function belongsTo({ userId, sid }: IdTokenHint, session: UserSession): boolean {
  return userId === session.userId && (sid === undefined || sid === session.sid);
}

const otherAudience = () => badRequest('client_id does not match the aud of the id_token_hint.');

// docs/understand/decisions/sessions-logout.md#a-logout-with-an-id-token-whose-key-is-gone-is-asked-not-refused
/**
 * Reads an `id_token_hint`. Applications keep ID tokens for as long as their own sessions last, so the key may be gone after
 * rotations: such a token names its application only, and the user is asked.
 */
async function readHint(
  { readIdTokenHint, clientOfForgottenToken }: RpDependencies,
  token: string | undefined,
): Promise<{ hint?: IdTokenHint; forgotten?: Client }> {
  if (token === undefined || token === '') return {};
  const hint = await readIdTokenHint(token);
  if (hint !== undefined) return { hint };
  const forgotten = await clientOfForgottenToken(token);
  if (forgotten === undefined) throw badRequest('The id_token_hint is not an ID token of this server.');
  return { forgotten };
}

/**
 * Returns the URL where the browser goes. With client_id the application's allow-list applies. Without it the
 * tenant's applies, and that of the hint's `aud`: OpenID libraries send no client_id (RP-Initiated Logout 1.0 §2).
 * @throws AuthError 400 for a URL on none of them.
 */
function redirectTarget(
  config: Config,
  { post_logout_redirect_uri: uri = '', state }: RpRequest,
  {
    namedClient,
    hint,
    organization,
  }: {
    namedClient: Client | undefined;
    hint: IdTokenHint | undefined;
    organization: Organization | undefined;
  },
): string | undefined {
  if (uri === '') return namedClient === undefined ? undefined : firstLogoutUrl(namedClient);
  const isOf = (client: Client | undefined) =>
    client !== undefined && isLogoutUrlOf(client, uri, 'whole', organization);
  const isAllowedUri =
    namedClient === undefined
      ? isLogoutUrlOf(config.settings().tenant, uri, 'whole') || isOf(hint?.client)
      : isOf(namedClient);
  if (!isAllowedUri) throw notAllowed('post_logout_redirect_uri', uri);
  return state === undefined ? uri : withParameter(uri, 'state', state);
}

/** Adds a query parameter; the rest keeps its spelling, which was compared with the allow-list. */
function withParameter(address: string, name: string, value: string): string {
  const [, before = '', fragment = ''] = /^([^#]*)(.*)$/s.exec(address) ?? [];
  const parameter = new URLSearchParams({ [name]: value });
  return `${before}${before.includes('?') ? '&' : '?'}${parameter}${fragment}`;
}

/** In a query the flag's presence counts; a form says `true` or `false` (docs/reference/wire/logout.md). */
function readFederated(value: string | undefined, method: 'GET' | 'POST'): boolean {
  if (method === 'GET') return isFlag(value);
  if (value !== undefined && value !== 'true' && value !== 'false') {
    throw badRequest('federated must be true or false.');
  }
  return value === 'true';
}

/** Checks that the first of `ui_locales` is enabled; `de` matches `de-AT` (RFC 4647 §3.4). */
function checkLocales(uiLocales: string, enabled: readonly string[]): void {
  const [first] = uiLocales.split(' ').filter(Boolean);
  if (first === undefined) return;
  if (matchLanguage([first], byCanonicalTag(enabled)) !== undefined) return;
  throw badRequest('The first of ui_locales is not a locale of this tenant.');
}
