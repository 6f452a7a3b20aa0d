// What the engine declares of itself; its requests are in routes.ts.
import type { Declaration } from '../records/declaration.ts';
import type { Limits } from '../records/limits.ts';

const limits = {
  authorize: { capacity: 600, perMinute: 600, per: 'address', where: '`/authorize`' },
  token: { capacity: 600, perMinute: 1800, per: 'address', where: '`/oauth/token`' },
  revoke: { capacity: 100, perMinute: 600, per: 'address', where: '`/oauth/revoke`' },
  // The specification's: minus one per request, plus one per minute.
  userinfo: { capacity: 10, perMinute: 1, per: 'user', where: '`/userinfo`' },
  discovery: { capacity: 200, perMinute: 1200, per: 'address', where: '`/.well-known/*`, `/client/*`' },
} satisfies Limits;

const events = {
  s: 'A login ended well.',
  f: 'A login was refused; the description says why.',
  mfar: 'A login needs a second factor.',
  feacft: 'An authorization code could not be exchanged for tokens.',
  fertft: 'A refresh token could not be exchanged for tokens.',
  ferrt: 'A refresh token was used that had been used before; its family is revoked.',
  feccft: "An application's own credentials could not be exchanged for tokens.",
};

declare module '../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}
declare module '../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const declaration = {
  limits,
  events,
  collections: ['signingKeys', 'artifacts', 'consents'],
} as const satisfies Omit<Declaration, 'name'>;
