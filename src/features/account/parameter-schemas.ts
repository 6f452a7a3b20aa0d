// Schemas of bodies and answers of the My Account API, for validation and for the API document.
import { z } from 'zod';
import { METHOD_TYPES } from '../../records/second-factors.ts';
import { methodAnswer } from './views.ts';

export const listAnswer = z.object({ authentication_methods: z.array(methodAnswer) });
export const factorsAnswer = z.object({
  factors: z.array(
    z.object({ type: z.enum(METHOD_TYPES), usage: z.array(z.enum(['primary', 'secondary'])) }),
  ),
});

export const createBody = z.object({
  type: z.enum(METHOD_TYPES),
  connection: z.string().max(255).optional().describe('For a passkey or a password: its connection.'),
  identity_user_id: z
    .string()
    .max(255)
    .optional()
    .describe('For a passkey or a password: the identity that it belongs to.'),
  identity: z
    .string()
    .max(255)
    .optional()
    .describe('The same as `identity_user_id`, under the name that one SDK sends.'),
  phone_number: z.string().max(40).optional().describe('For `phone`: the phone number, in E.164.'),
  preferred_authentication_method: z.enum(['sms']).optional().describe('For `phone`.'),
  email: z.string().max(320).optional().describe('For `email`: the e-mail address.'),
});
export const begunAnswer = z.looseObject({
  auth_session: z.string().describe('For `/verify`, within ten minutes, with a token of the same login.'),
  id: z.string().optional(),
  authn_params_public_key: z
    .looseObject({})
    .optional()
    .describe('For a passkey and `webauthn-…`: the options for `navigator.credentials.create`.'),
  barcode_uri: z.string().optional().describe('For `totp` and `push-notification`.'),
  manual_input_code: z.string().optional().describe('For `totp`.'),
  recovery_code: z.string().optional(),
  policy: z.looseObject({}).optional().describe('For a password: the password policy.'),
});
export const verifyBody = z.object({
  auth_session: z.string().max(100),
  otp_code: z.string().max(20).optional().describe('For `totp`, `phone` and `email`.'),
  new_password: z.string().max(1024).optional().describe('For a password.'),
  authn_response: z
    .looseObject({})
    .optional()
    .describe('For a passkey and `webauthn-…`: the credential, as its `toJSON` returns it.'),
});
export const patchBody = z.object({
  name: z.string().trim().min(1).max(100).optional(),
  preferred_authentication_method: z.enum(['sms']).optional(),
});
