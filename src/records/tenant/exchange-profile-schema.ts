// The schema of custom token exchange profiles in the tenant file and the Management API.
import { z } from 'zod';

/** The value in `token_exchange.allow_any_profile_of_type` of an application that may use them. */
export const CUSTOM_AUTHENTICATION = 'custom_authentication';

/** The same, of the application of an API that may exchange tokens that the API has received for tokens of other APIs. */
export const ON_BEHALF_OF = 'on_behalf_of_token_exchange';

/** Types that the standards or the vendors have defined. */
const RESERVED = /^(https?:\/\/([^/?#]*[.@])?(auth0|okta)\.com(?![^/?#:])|urn:(ietf|auth0|okta)(:|$))/i;

const tokenType = z
  .string()
  .max(100)
  .regex(/^(https:\/\/|urn:)[\x21-\x7e]+$/, 'must be a URI that starts with https:// or urn:');

/** Whether a type is in a namespace of others, so that no profile has an effect for it. */
export const isReservedType = (type: unknown): boolean => typeof type === 'string' && RESERVED.test(type);

/** A subject token type that a profile may have. */
export const subjectTokenType = tokenType.refine(
  (type) => !isReservedType(type),
  'is in a namespace that is reserved',
);

/** A profile in the tenant file; it names its action by name or by id. One with a reserved type is only kept. */
export const exchangeProfileSchema = z.looseObject({
  id: z.string().min(1).max(64).optional(),
  name: z.string().min(1).max(255),
  subject_token_type: tokenType,
  type: z.enum([CUSTOM_AUTHENTICATION, ON_BEHALF_OF]).default(CUSTOM_AUTHENTICATION),
  action: z.string().min(1).max(255).optional(),
  action_id: z.string().min(1).max(64).optional(),
});
