// Passkeys (WebAuthn) as the way in to database connections.
import { feature } from '../../engine/feature.ts';
import type { Limits } from '../../records/limits.ts';
import { type PasskeyGrantDependencies, passkeyGrant } from './grant.ts';
import { type PasskeyRoutesDependencies, passkeyRoutes } from './routes.ts';

const limits = {
  passkey: { capacity: 50, perMinute: 50, per: 'address', where: '`/passkey/`' },
} satisfies Limits;

const events = {
  fepk: 'No tokens were given for a passkey.',
};

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const passkeys = feature<PasskeyRoutesDependencies, PasskeyGrantDependencies>({
  name: 'passkeys',
  limits,
  events,
  grants: [passkeyGrant],
  routes: passkeyRoutes,
  collections: ['passkeys'],
});
