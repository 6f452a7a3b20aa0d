// `session_transfer`: sessions that a client transfers to a browser.
import { z } from 'zod';

const flag = z.boolean().nullish();

export const sessionTransferSchema = z.looseObject({
  can_create_session_transfer_token: flag,
  /** Whether a transferred session ends with the refresh token that it was created from. Default: true. */
  enforce_cascade_revocation: flag,
  /** How the client's requests may carry a session transfer token. Default: not at all. */
  allowed_authentication_methods: z.array(z.enum(['cookie', 'query'])).nullish(),
  // docs/understand/decisions/sessions-logout.md#a-transferred-session-is-bound-to-the-ip-address-by-default
  /** What must match when the token is used. Default: the address that it was issued to. */
  enforce_device_binding: z.enum(['none', 'ip', 'asn']).nullish(),
  /** Whether the client gets refresh tokens in such a session. */
  allow_refresh_token: flag,
  /** Whether these end with the session. Default: true. */
  enforce_online_refresh_tokens: flag,
  /** Sessions in which somebody acts for the user. */
  delegation: z
    .looseObject({ allow_delegated_access: flag, enforce_device_binding: z.enum(['ip', 'asn']).nullish() })
    .nullish(),
});

export type SessionTransfer = z.output<typeof sessionTransferSchema>;
