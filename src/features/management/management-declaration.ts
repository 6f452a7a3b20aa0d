// The limits and log events of the Management API.
import { limitsOf } from '../../http/limits.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';

export const managementLimits = limitsOf({
  management: { capacity: 300, perMinute: 1800, per: 'address', where: '`/api/v2/*`' },
});

export const managementEvents = eventTypesOf({
  // docs/understand/decisions/management-api.md#log-events-of-successful-changes-are-not-rate-limited
  sapi: {
    meaning:
      'A call of the Management API made a change; the details are who made it, what it was, and the values before and after.',
    bounds: 'unbounded',
  },
  fapi: 'A call of the Management API that would have made a change was refused.',
});
