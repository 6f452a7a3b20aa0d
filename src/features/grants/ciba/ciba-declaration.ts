// The limits and log events of CIBA.
import { limitsOf } from '../../../http/limits.ts';
import { eventTypesOf } from '../../../records/base/log-events.ts';

export const cibaLimits = limitsOf({
  bcAuthorize: { capacity: 100, perMinute: 500, per: 'address', where: '`/bc-authorize`' },
  approvals: {
    capacity: 10,
    perMinute: 2,
    per: 'user',
    where: 'approvals that `/bc-authorize` requests from a user',
  },
});

export const cibaEvents = eventTypesOf({
  seciba: 'An application got tokens for a login that its user approved.',
  feciba: 'An application got no tokens for a login that its user had to approve (CIBA).',
});
