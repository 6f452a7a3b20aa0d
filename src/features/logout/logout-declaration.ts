// The limits and log events of logout.
import { limitsOf } from '../../http/limits.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';

export const logoutLimits = limitsOf({
  logout: { capacity: 200, perMinute: 300, per: 'address', where: '`/v2/logout`, `/oidc/logout`' },
});

export const logoutEvents = eventTypesOf({
  oidc_backchannel_logout_succeeded: 'An application accepted the logout token of a session that ended.',
  oidc_backchannel_logout_failed: 'An application did not accept the logout token of a session that ended.',
});
