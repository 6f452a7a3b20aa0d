// The bodies of the passwordless endpoints, with the hosted service's error codes
// (docs/reference/wire/passwordless.md).
import { z } from 'zod';
import { AuthError } from '../../../http/errors.ts';
import { CLIENT_FIELDS, optional, required, unchecked } from '../../../http/parameter-schemas.ts';
import { type FieldErrors, type Fields, requiredField, textField } from '../../../http/server/body.ts';
import { type LinkParameters, linkParameters, typeOf } from './link-request.ts';

/** The body of POST /passwordless/start. `auth0Client`, which SDKs add to every body, is ignored. */
export const startBody = z.strictObject({
  ...CLIENT_FIELDS,
  connection: required('The name of a passwordless connection.'),
  email: optional('The address that the code or link is sent to, for an e-mail connection.'),
  phone_number: optional('The number that the code is sent to, in E.164, for an SMS connection.'),
  send: optional('`link` (the default) or `code`; only for e-mail.'),
  authParams: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'Parameters of the authorization request that the link leads to: an object, or JSON text in a form.',
    ),
  auth0Client: unchecked('The name and version of the SDK.'),
});

export const startAnswer = z.object({
  _id: z.string().describe('Stands for the address, whether or not it has a user.'),
  email: z.string().optional(),
  email_verified: z.boolean().optional(),
  phone_number: z.string().optional(),
  phone_verified: z.boolean().optional(),
  request_language: z.string().nullable().optional(),
});

/** The body of POST /passwordless/verify: a login as the contract has it, or the browser SDK's check of a code. */
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
    email: optional('The e-mail address, for an e-mail connection.'),
    phone_number: optional('The phone number, for an SMS connection.'),
    verification_code: required('The code.'),
  }),
]);

export interface StartRequest {
  connection: string;
  email: string | undefined;
  phone_number: string | undefined;
  send: 'link' | 'code';
  authParams: LinkParameters;
}

/** Errors whose codes name the field, `bad.<field>`, as the hosted service's do. */
export const FIELD_ERRORS: FieldErrors = {
  notObject: () => new AuthError(400, 'bad.request', 'The request body must be an object.'),
  missing: (name) => new AuthError(400, `bad.${name}`, `Missing required property: ${name}`),
  invalid: (name, value) => {
    const fault = typeof value === 'string' ? 'too long' : `invalid type: ${typeOf(value)} (expected string)`;
    return new AuthError(400, `bad.${name}`, `error in ${name} - ${fault}`);
  },
  maxLength: 2048,
};

/** @throws AuthError 400 `bad.<field>` for an invalid field; `bad.request` for unknown ones. */
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

/** Returns how to send. A missing value means a link, and so do the variants that old mobile SDKs send. */
function sendOf(send: string | undefined): StartRequest['send'] {
  if (send === undefined || send === 'link' || send === 'link_ios' || send === 'link_android') return 'link';
  if (send === 'code') return 'code';
  throw new AuthError(400, 'bad.send', 'error in send - must be link or code');
}

function readAuthParams(value: unknown): LinkParameters {
  // A form cannot contain objects; there the value is JSON text.
  const parsed = typeof value === 'string' && value.startsWith('{') ? parseObject(value) : value;
  if (parsed === undefined) return {};
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new AuthError(
      400,
      'bad.authParams',
      `error in authParams - invalid type: ${typeOf(parsed)} (expected object)`,
    );
  }
  return linkParameters(parsed as Fields, 'bad.authParams');
}

function parseObject(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
