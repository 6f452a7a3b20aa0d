// Schemas of the answers of the MFA API, for the API document.
import { z } from 'zod';
import { optional, required } from '../../http/parameter-schemas.ts';
import { FACTORS } from './factors.ts';

/** Returns an enum of the values without duplicates, which `z.enum` needs. */
const oneOf = (values: readonly string[]) => z.enum([...new Set(values)]);
const authenticatorTypes = (factors: typeof FACTORS) =>
  oneOf(factors.map(({ authenticatorType }) => authenticatorType));

/** The answer of POST /mfa/challenge. */
export const challengeAnswer = z.object({
  challenge_type: authenticatorTypes(FACTORS.filter(({ grant }) => grant !== undefined)),
  oob_code: optional('With `oob`: for the token endpoint.'),
  binding_method: z.literal('prompt').optional().describe('The user types a code that was sent.'),
});

/** The answer of POST /mfa/associate. */
export const association = z.object({
  authenticator_type: authenticatorTypes(FACTORS.filter((factor) => factor.enroll !== undefined)),
  id: required('The id of the authenticator.'),
  secret: optional('With `otp`: base32, for the authenticator app.'),
  barcode_uri: optional('The URI for a QR code: the secret, or the enrolment of a device.'),
  oob_channels: optional('`sms`, `email` or `auth0`.'),
  oob_channel: optional('The same, under the name that SDKs read.'),
  oob_code: optional('With `oob`: for the token endpoint.'),
  binding_method: z.literal('prompt').optional().describe('The user types a code that was sent.'),
  recovery_codes: z.array(z.string()).optional().describe('With the first authenticator.'),
});

/** One authenticator in the answer of GET /mfa/authenticators. */
export const authenticatorAnswer = z.object({
  id: z.string(),
  authenticator_type: authenticatorTypes(FACTORS),
  type: oneOf(FACTORS.map(({ type }) => type)),
  active: z.boolean().describe('Whether it was confirmed.'),
  oob_channel: z.string().optional(),
  name: optional('Part of the phone number or address, so that the user recognizes it.'),
});
