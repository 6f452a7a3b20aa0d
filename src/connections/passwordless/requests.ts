// Bodies of the passwordless endpoints (docs/wire/passwordless.md), with the hosted service's error codes
// (docs/wire/passwordless.md).
import { z } from 'zod';
import { type FieldErrors, type Fields, requiredField, textField } from '../../http/body-fields.ts';
import { CLIENT_FIELDS, optional, required, unchecked } from '../../http/described.ts';
import { AuthError } from '../../http/errors.ts';
import { authenticationMethod } from '../../records/client-authentication.ts';
import type { Client } from '../../records/collections.ts';

/** What POST /passwordless/start may carry; what SDKs add to every body is let through. */
export const startBody = z.strictObject({
  ...CLIENT_FIELDS,
  connection: required('The name of a passwordless connection.'),
  email: optional('Where the code or link goes, for a connection by e-mail.'),
  phone_number: optional('Where the code goes, for a connection by SMS (E.164).'),
  send: optional('`link` (the default) or `code`; by e-mail alone.'),
  authParams: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Parameters of the authorization request that the link leads to; in a form JSON text.'),
  auth0Client: unchecked('What SDKs say of themselves.'),
});

/** What it answers. */
export const startAnswer = z.object({
  _id: z.string().describe('Stands for the address, whether or not it has a user.'),
  email: z.string().optional(),
  email_verified: z.boolean().optional(),
  phone_number: z.string().optional(),
  phone_verified: z.boolean().optional(),
  request_language: z.string().nullable().optional(),
});

/** What POST /passwordless/verify may carry: the one form or the other. */
export const verifyBody = z.union([
  z.object({
    ...CLIENT_FIELDS,
    grant_type: z.literal('password'),
    connection: required('The name of a passwordless connection.'),
    username: required('The e-mail address or phone number.'),
    password: required('The code.'),
    scope: optional('As at the token endpoint.'),
    audience: optional('As at the token endpoint.'),
  }),
  z.object({
    client_id: required('The application.'),
    connection: required('The name of a passwordless connection.'),
    email: optional('For a connection by e-mail.'),
    phone_number: optional('For a connection by SMS.'),
    verification_code: required('The code.'),
  }),
]);

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

export interface StartRequest {
  connection: string;
  email: string | undefined;
  phone_number: string | undefined;
  send: 'link' | 'code';
  authParams: LinkParameters;
}

/** The hosted service's codes name the field: `bad.<field>`. */
export const FIELD_ERRORS: FieldErrors = {
  noObject: () => new AuthError(400, 'bad.request', 'The request body must be an object.'),
  missing: (name) => new AuthError(400, `bad.${name}`, `Missing required property: ${name}`),
  invalid: (name, value) => {
    const fault = typeof value === 'string' ? 'too long' : `invalid type: ${typeOf(value)} (expected string)`;
    return new AuthError(400, `bad.${name}`, `error in ${name} - ${fault}`);
  },
  longest: 2048,
};

/**
 * Reads a start request.
 * @throws AuthError 400 `bad.<field>` naming the field that is wrong.
 */
export function readStart(fields: Fields): StartRequest {
  const unknown = Object.keys(fields).filter((name) => !Object.hasOwn(startBody.shape, name));
  if (unknown.length > 0) {
    throw new AuthError(
      400,
      'bad.request',
      `the following properties are not allowed: ${unknown.slice(0, 10).join(', ').slice(0, 300)}`,
    );
  }
  return {
    connection: requiredField(fields, 'connection', FIELD_ERRORS),
    email: textField(fields, 'email', FIELD_ERRORS),
    phone_number: textField(fields, 'phone_number', FIELD_ERRORS),
    send: sendOf(textField(fields, 'send', FIELD_ERRORS)),
    authParams: readAuthParams(fields.authParams),
  };
}

/** null means link; so do the variants of old mobile SDKs. */
function sendOf(send: string | undefined): StartRequest['send'] {
  if (send === undefined || send === 'link' || send === 'link_ios' || send === 'link_android') return 'link';
  if (send === 'code') return 'code';
  throw new AuthError(400, 'bad.send', 'error in send - must be link or code');
}

function readAuthParams(value: unknown): LinkParameters {
  // A form has no objects: there it is JSON text.
  const given = typeof value === 'string' && value.startsWith('{') ? parseObject(value) : value;
  if (given === undefined) return {};
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new AuthError(
      400,
      'bad.authParams',
      `error in authParams - invalid type: ${typeOf(given)} (expected object)`,
    );
  }
  return linkParameters(given as Fields, 'bad.authParams');
}

function parseObject(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
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

function typeOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value;
}
