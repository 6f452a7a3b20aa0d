// What a link is asked for with: the parameters of the login that it begins, and the query that it carries.
import { z } from 'zod';
import type { Fields } from '../../http/body-fields.ts';
import { optional, required } from '../../http/described.ts';
import { AuthError } from '../../http/errors.ts';
import { authenticationMethod } from '../../records/client-authentication.ts';
import type { Client } from '../../records/collections.ts';

/** What a link carries. */
export const linkQuery = z.looseObject({
  client_id: required('The application.'),
  connection: required('The name of a passwordless connection.'),
  email: optional('For a connection by e-mail.'),
  phone_number: optional('For a connection by SMS.'),
  verification_code: required('The code.'),
});

/** Not settable by `authParams`: the link's own parameters, credentials, and prompts, because the user comes logged in. */
const RESERVED = new Set([
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'connection',
  'email',
  'phone_number',
  'verification_code',
  'login_ticket',
  'session_transfer_token',
  'code_verifier',
  '_csrf',
  'prompt',
  'request',
  'request_uri',
]);

/** Parameters that are text by their standards (OpenID Connect Core §3.1.2.1, RFC 7636 §4.3) or by the contract. */
const STANDARD = new Set([
  'scope',
  'redirect_uri',
  'response_type',
  'response_mode',
  'state',
  'nonce',
  'audience',
  'organization',
  'protocol',
  'code_challenge',
  'code_challenge_method',
  'acr_values',
  'ui_locales',
]);

/** Limits of a link in a mail. */
const MOST_PARAMETERS = 30;

const LONGEST_QUERY = 6_000;

const LONGEST_VALUE = 2_048;

/** Parameters of the link's authorization request. */
export interface LinkParameters {
  response_type?: string;
  response_mode?: string;
  redirect_uri?: string;
  state?: string;
  code_challenge?: string;
  organization?: string;
  ui_locales?: string;
  [name: string]: string | undefined;
}

/**
 * The parameters for the authorization request, out of others: all that are not the link's own. Where nothing says
 * that one is text, numbers and booleans count as such, as they would in a query.
 * @throws AuthError 400 when one is something else, and when they are too many or too long.
 */
export function linkParameters(fields: Fields, error: string): LinkParameters {
  const params: LinkParameters = {};
  for (const [name, given] of Object.entries(fields)) {
    if (RESERVED.has(name) || given === undefined || given === null || given === '') continue;
    const isPlain = typeof given === 'number' || typeof given === 'boolean';
    const value = isPlain && !STANDARD.has(name) ? String(given) : given;
    if (typeof value !== 'string' || value.length > LONGEST_VALUE) {
      const which = name.slice(0, 100);
      throw new AuthError(400, error, `error in ${which} - must be a string of at most 2048 characters`);
    }
    Object.defineProperty(params, name, { value, enumerable: true });
  }
  const query = new URLSearchParams(params as Record<string, string>);
  if (query.size > MOST_PARAMETERS || query.toString().length > LONGEST_QUERY) {
    throw new AuthError(400, error, 'error in authParams - too many parameters, or too long together');
  }
  return params;
}

/**
 * Checks a link's callback before anything is sent.
 * @throws AuthError 400 when the application has no such callback.
 */
export function checkRedirectUri(client: Client, { redirect_uri: redirectUri }: LinkParameters): void {
  if (redirectUri === undefined ? client.callbacks.length > 0 : client.callbacks.includes(redirectUri))
    return;
  throw badLink(
    redirectUri === undefined
      ? 'the application has no callback that a link could lead to'
      : 'redirect_uri is not registered for this application',
  );
}

/**
 * Checks a link's response type before anything is sent, so that no link is sent that can only fail.
 * @param params with defaults.
 * @throws AuthError 400 when the application may not have such a response.
 */
export function checkResponseType(client: Client, params: LinkParameters): void {
  const types = (params.response_type ?? '').split(' ');
  const may = (grant: string) => client.grant_types?.includes(grant) === true;
  if (types.includes('code')) {
    if (!may('authorization_code')) throw badLink('the application may not use codes');
    // RFC 9700 §2.1.1: public clients need PKCE.
    if (authenticationMethod(client) === 'none' && params.code_challenge === undefined) {
      throw badLink('a code for an application without a secret needs code_challenge');
    }
  }
  const isImplicit = types.some((type) => type === 'token' || type === 'id_token');
  if (isImplicit && !may('implicit')) {
    throw badLink('the application may not get tokens at its callback: it needs code_challenge');
  }
}

function badLink(what: string): AuthError {
  return new AuthError(400, 'bad.authParams', `error in authParams - ${what}`);
}

/** The type of a JSON value as the errors name it: as `typeof` gives it, and `array` for arrays. */
export function typeOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value;
}
