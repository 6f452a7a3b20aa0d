// Passkeys (WebAuthn): login and sign-up at database connections.
import { feature } from '../../../engine/feature.ts';
import type { Limits } from '../../../records/limits.ts';
import { passkeyEnrollmentPages } from './enrollment-page.ts';
import { type PasskeyGrantDependencies, passkeyGrant } from './grant.ts';
import { type PasskeyPagesDependencies, passkeyPages } from './hosted.ts';
import { type PasskeyRoutesDependencies, passkeyRoutes } from './routes.ts';

const limits = {
  passkey: { capacity: 50, perMinute: 50, per: 'address', where: '`/passkey/`' },
} satisfies Limits;

const events = {
  fepk: 'No tokens were given for a passkey.',
  passkey_enrolled: 'A user created a passkey on the login page.',
};

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const passkeys = feature<
  PasskeyRoutesDependencies & PasskeyPagesDependencies,
  PasskeyGrantDependencies
>({
  name: 'passkeys',
  limits,
  events,
  grants: [passkeyGrant],
  routes: { ...passkeyRoutes, ...passkeyPages, ...passkeyEnrollmentPages },
  pages: ['login/passkey'],
  collections: ['passkeys'],
});
