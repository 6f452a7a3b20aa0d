// The limit of SAML messages, both from applications and from the providers of connections.
import { limitsOf } from '../../http/limits.ts';
import type { Declaration } from '../../records/declaration.ts';

export const samlLimits = limitsOf({
  samlp: { capacity: 200, perMinute: 300, per: 'address', where: '`/samlp/*`' },
});

export const samlMessages: Declaration = { name: 'saml-messages', limits: samlLimits };
