// A profile of custom token exchange as it is written, by the tenant file and the Management API.
import { z } from 'zod';

/** What an application's `token_exchange.allow_any_profile_of_type` has where it may use them. */
export const CUSTOM_AUTHENTICATION = 'custom_authentication';

/** Types of the standards and of the vendors mean something else. */
const RESERVED = /^(https?:\/\/([^/?#]*[.@])?(auth0|okta)\.com(?![^/?#:])|urn:(ietf|auth0|okta)(:|$))/i;

/** A type that a profile may be for. */
export const subjectTokenType = z
  .string()
  .max(100)
  .regex(/^(https:\/\/|urn:)[\x21-\x7e]+$/, 'must be a URI that starts with https:// or urn:')
  .refine((type) => !RESERVED.test(type), 'is in a namespace that is reserved');

/** A profile of the tenant file: its action by name, or by id. */
export const exchangeProfileSchema = z.looseObject({
  id: z.string().min(1).max(64).optional(),
  name: z.string().min(1).max(255),
  subject_token_type: subjectTokenType,
  type: z.enum([CUSTOM_AUTHENTICATION, 'on_behalf_of_token_exchange']).default(CUSTOM_AUTHENTICATION),
  action: z.string().min(1).max(255).optional(),
  action_id: z.string().min(1).max(64).optional(),
});
