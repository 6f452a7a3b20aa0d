// The limits and log events of the bridges to the old tenant.
import { limitsOf } from '../../http/limits.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';

const UNKNOWN_TOKENS = '`/oauth/token` with a refresh token that the old tenant of a move does not accept';

const UNKNOWN_CODES =
  '`/move/callback` with a code, and `/authorize` with cookies of its custom domain, that begin no session of the old tenant of a move here';

export const moveLimits = limitsOf({
  oldPasswords: {
    capacity: 600,
    perMinute: 1800,
    per: 'tenant',
    where: 'passwords, addresses and usernames that the old tenant of a move is asked for',
  },
  oldSessionsOfAddress: { capacity: 60, perMinute: 30, per: 'address', where: UNKNOWN_CODES },
  oldSessions: { capacity: 600, perMinute: 600, per: 'tenant', where: UNKNOWN_CODES },
  oldTokensOfAddress: {
    capacity: 30,
    perMinute: 10,
    per: 'address',
    where: `${UNKNOWN_TOKENS}, of a public application`,
  },
  oldTokensOfClient: { capacity: 300, perMinute: 300, per: 'application', where: UNKNOWN_TOKENS },
  oldTokens: { capacity: 600, perMinute: 600, per: 'tenant', where: UNKNOWN_TOKENS },
});

export const moveEvents = eventTypesOf({
  moved_session: 'A browser that has a session at the old tenant was logged in.',
  old_session_failed: 'A session at the old tenant was not accepted.',
  moved_refresh_token: 'A refresh token of the old tenant was exchanged for one of ours.',
  old_refresh_token_failed: 'A refresh token of the old tenant was not exchanged, or not revoked there.',
  moved_password: 'The old tenant has verified the password of a user, which is stored here from now on.',
  old_password_failed:
    'The old tenant could not be asked for a user or a password, or its answer was not accepted.',
});
