// Sessions that an application hands over to a browser, in the tenant file.
import { z } from 'zod';

const flag = z.boolean().nullish();

/** `session_transfer` of an application: whether it hands sessions over, and how it takes those that are handed to it. */
export const sessionTransferSchema = z.looseObject({
  /** Whether it is given session transfer tokens. */
  can_create_session_transfer_token: flag,
  /** Whether what was handed over ends with the refresh token that it was handed over for; the default. */
  enforce_cascade_revocation: flag,
  /** How its requests bring a session transfer token; in no way, where nothing is said. */
  allowed_authentication_methods: z.array(z.enum(['cookie', 'query'])).nullish(),
  /** Where the token has to come from: the address that it was given to, where nothing is said. */
  enforce_device_binding: z.enum(['none', 'ip', 'asn']).nullish(),
  /** Whether it is given refresh tokens in such a session. */
  allow_refresh_token: flag,
  /** Whether those end with the session; the default. */
  enforce_online_refresh_tokens: flag,
  /** Sessions in which somebody acts for the user. */
  delegation: z
    .looseObject({ allow_delegated_access: flag, enforce_device_binding: z.literal('ip').nullish() })
    .nullish(),
});

export type SessionTransfer = z.output<typeof sessionTransferSchema>;
