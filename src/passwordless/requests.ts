// What the passwordless endpoints take (spec "Passwordless"), field by field, with the hosted service's codes.
import type { Context } from 'koa';
import { AuthError } from '../http/errors.ts';
import type { Client } from '../tenant/directory.ts';

type Fields = Readonly<Record<string, unknown>>;

/** What POST /passwordless/start may carry; what SDKs add to every body is let through. */
const START_FIELDS = new Set([
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'connection',
  'email',
  'phone_number',
  'send',
  'authParams',
  'auth0Client',
]);

/** Parameters of the authorization request that a link leads to; others in `authParams` are not its business. */
const LINK_PARAMETERS = [
  'scope',
  'redirect_uri',
  'response_type',
  'response_mode',
  'state',
  'nonce',
  'audience',
  'organization',
  'code_challenge',
  'code_challenge_method',
  'acr_values',
  'ui_locales',
] as const;

export type LinkParameters = Partial<Record<(typeof LINK_PARAMETERS)[number], string>>;

export interface StartRequest {
  connection: string;
  email: string | undefined;
  phoneNumber: string | undefined;
  send: 'link' | 'code';
  authParams: LinkParameters;
}

/** The body of a request, JSON or form, without what is null: SDKs send null for what was left out. */
export function bodyOf(ctx: Context): Fields {
  const { body } = ctx.request as { body?: unknown };
  if (body === undefined || body === null) return {};
  if (typeof body !== 'object' || Array.isArray(body)) {
    throw new AuthError(400, 'bad.request', 'The request body must be an object.');
  }
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/**
 * Reads a start request.
 * @throws AuthError 400 `bad.<field>` naming the field that is wrong.
 */
export function readStart(fields: Fields): StartRequest {
  const unknown = Object.keys(fields).filter((name) => !START_FIELDS.has(name));
  if (unknown.length > 0) {
    throw new AuthError(
      400,
      'bad.request',
      `the following properties are not allowed: ${unknown.slice(0, 10).join(', ').slice(0, 300)}`,
    );
  }
  return {
    connection: textOf(fields, 'connection') ?? missing('connection'),
    email: textOf(fields, 'email'),
    phoneNumber: textOf(fields, 'phone_number'),
    send: sendOf(textOf(fields, 'send')),
    authParams: readAuthParams(fields.authParams),
  };
}

/** A text field. @throws AuthError 400 `bad.<field>` when it is something else, or longer than any such field is. */
export function textOf(fields: Fields, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') {
    throw new AuthError(
      400,
      `bad.${name}`,
      `error in ${name} - invalid type: ${typeOf(value)} (expected string)`,
    );
  }
  if (value.length > 2048) throw new AuthError(400, `bad.${name}`, `error in ${name} - too long`);
  return value;
}

/** @throws AuthError 400 `bad.<field>` */
export function missing(name: string): never {
  throw new AuthError(400, `bad.${name}`, `Missing required property: ${name}`);
}

/** null means link (spec); the variants of old mobile SDKs are links too. */
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

/** The parameters for the authorization request, out of others. @throws AuthError 400 when one is no text. */
export function linkParameters(fields: Fields, error: string): LinkParameters {
  const params: LinkParameters = {};
  for (const name of LINK_PARAMETERS) {
    const value = fields[name];
    if (value === undefined || value === null || value === '') continue;
    if (typeof value !== 'string' || value.length > 2048) {
      throw new AuthError(400, error, `error in ${name} - must be a string of at most 2048 characters`);
    }
    params[name] = value;
  }
  return params;
}

/**
 * Where a link ends, checked before anything is sent.
 * @throws AuthError 400 when the application has no such callback.
 */
export function checkRedirectUri(client: Client, { redirect_uri: redirectUri }: LinkParameters): void {
  if (redirectUri === undefined ? client.callbacks.length > 0 : client.callbacks.includes(redirectUri))
    return;
  throw new AuthError(
    400,
    'bad.authParams',
    redirectUri === undefined
      ? 'error in authParams - the application has no callback that a link could lead to'
      : 'error in authParams - redirect_uri is not registered for this application',
  );
}

function typeOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value;
}
