// Passwordless connections: a code or a link by e-mail, a code by SMS.
import { feature } from '../../../engine/feature.ts';
import type { Limits } from '../../../records/limits.ts';
import { type PasswordlessGrantDependencies, passwordlessGrant } from './grant.ts';
import { type PasswordlessPagesDependencies, passwordlessPages } from './hosted.ts';
import { type PasswordlessDependencies, passwordlessRoutes } from './routes.ts';

type PasswordlessFeatureDependencies = PasswordlessDependencies & PasswordlessPagesDependencies;

const limits = {
  passwordlessStart: {
    capacity: 50,
    perMinute: 50 / 60,
    per: 'address',
    where: '`/passwordless/start` and the hosted page',
  },
  passwordlessDestination: {
    capacity: 10,
    perMinute: 1 / 6,
    per: 'e-mail address or phone number: all unknown callers together, each caller',
    where:
      "the same, and codes of a second factor; beyond a caller's own limit the answer is 429, beyond the limit of unknown callers the answer is unchanged and nothing is sent",
  },
  passwordlessResend: {
    capacity: 1,
    perMinute: 2,
    per: 'destination, application and address',
    where: 'repeated codes on the hosted pages',
  },
  passwordlessVerify: {
    capacity: 50,
    perMinute: 50,
    per: 'address',
    where: '`/passwordless/verify` (both forms) and login links',
  },
} satisfies Limits;

const events = {
  fepotpft: 'No tokens were given for a passwordless code.',
};

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const passwordless = feature<PasswordlessFeatureDependencies, PasswordlessGrantDependencies>({
  name: 'passwordless',
  limits,
  events,
  grants: [passwordlessGrant],
  routes: { ...passwordlessRoutes, ...passwordlessPages },
  pages: ['passwordless/address', 'passwordless/code', 'passwordless/continue'],
});
