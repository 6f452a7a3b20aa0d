// The parameters of a login link: those of its request to /passwordless/start, and those in its query.
import { z } from 'zod';
import { AuthError } from '../../../http/errors.ts';
import { optional, required } from '../../../http/parameter-schemas.ts';
import type { Fields } from '../../../http/server/body.ts';
import { firstAddress, isCallbackOf } from '../../../records/clients/allowed-urls.ts';
import { authenticationMethod } from '../../../records/clients/client-authentication.ts';
import type { Client } from '../../../records/collections.ts';
import type { Config } from '../../../tenant/config.ts';

export const linkQuery = z.looseObject({
  client_id: required('The application.'),
  connection: required('The name of a passwordless connection.'),
  email: optional('The e-mail address, for an e-mail connection.'),
  phone_number: optional('The phone number, for an SMS connection.'),
  verification_code: required('The code.'),
});

// docs/understand/decisions/passwordless-messages.md#authparams-may-contain-any-parameters
/**
 * Parameters that `authParams` cannot set: the link's own, credentials, and `prompt`, because the link itself logs the user
 * in.
 */
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

/** Parameters that are strings by their standards (OpenID Connect Core §3.1.2.1, RFC 7636 §4.3) or by the contract. */
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

const MAX_PARAMETERS = 30;

const MAX_QUERY_LENGTH = 6_000;

const MAX_VALUE_LENGTH = 2_048;

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
 * Returns the parameters of the authorization request: all fields that are not reserved for the link. Numbers and booleans
 * become strings, as in a query, unless a standard defines the parameter as a string.
 * @param error code of the error that is thrown.
 * @throws AuthError 400 if a parameter has another type, or if they are too many or too long.
 */
export function linkParameters(fields: Fields, error: string): LinkParameters {
  const params: LinkParameters = {};
  for (const [name, input] of Object.entries(fields)) {
    if (RESERVED.has(name) || input === undefined || input === null || input === '') continue;
    const isPlain = typeof input === 'number' || typeof input === 'boolean';
    const value = isPlain && !STANDARD.has(name) ? String(input) : input;
    if (typeof value !== 'string' || value.length > MAX_VALUE_LENGTH) {
      const parameter = name.slice(0, 100);
      throw new AuthError(400, error, `error in ${parameter} - must be a string of at most 2048 characters`);
    }
    Object.defineProperty(params, name, { value, enumerable: true });
  }
  const query = new URLSearchParams(params as Record<string, string>);
  if (query.size > MAX_PARAMETERS || query.toString().length > MAX_QUERY_LENGTH) {
    throw new AuthError(400, error, 'error in authParams - too many parameters, or too long together');
  }
  return params;
}

/**
 * Checks a link's redirect URI before anything is sent.
 * @throws AuthError 400 if it is not one of the application's callbacks, or it is missing and the application has none.
 */
export async function checkRedirectUri(
  config: Pick<Config, 'organization'>,
  client: Client,
  { redirect_uri: redirectUri, organization: named }: LinkParameters,
): Promise<void> {
  const organization = named === undefined ? undefined : await config.organization(named);
  const isAllowed =
    redirectUri === undefined
      ? firstAddress(client.callbacks) !== undefined
      : isCallbackOf(client, redirectUri, organization);
  if (isAllowed) return;
  throw badLink(
    redirectUri === undefined
      ? 'the application has no callback that a link could lead to'
      : 'redirect_uri is not registered for this application',
  );
}

/**
 * Checks a link's response type before anything is sent: a link must not be sent if its authorization request would fail.
 * @param params with the defaults filled in.
 * @throws AuthError 400 if the application may not use that response type.
 */
export function checkResponseType(client: Client, params: LinkParameters): void {
  const types = (params.response_type ?? '').split(' ');
  const mayUse = (grant: string) => client.grant_types?.includes(grant) === true;
  if (types.includes('code')) {
    if (!mayUse('authorization_code')) throw badLink('the application may not use codes');
    // RFC 9700 §2.1.1: public clients need PKCE.
    if (authenticationMethod(client) === 'none' && params.code_challenge === undefined) {
      throw badLink('a code for an application without a secret needs code_challenge');
    }
  }
  const isImplicit = types.some((type) => type === 'token' || type === 'id_token');
  if (isImplicit && !mayUse('implicit')) {
    throw badLink('the application may not get tokens at its callback: it needs code_challenge');
  }
}

function badLink(what: string): AuthError {
  return new AuthError(400, 'bad.authParams', `error in authParams - ${what}`);
}

/** Returns the type of a JSON value as errors name it: `array` for arrays, else that of `typeof`. */
export function typeOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value;
}
