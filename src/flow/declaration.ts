// What the browser login declares of itself, its requests apart.
import type { Declaration } from '../records/declaration.ts';
import type { Limits } from '../records/limits.ts';

const limits = {
  coAuthenticate: { capacity: 50, perMinute: 300, per: 'address', where: '`/co/authenticate`' },
  hosted: { capacity: 300, perMinute: 300, per: 'address', where: 'the hosted pages and their forms' },
} satisfies Limits;

const events = {
  scoa: 'Credentials were taken from a page of the application; it has a login ticket.',
  fcoa: 'Credentials from a page of the application were refused.',
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
  pages: ['login/account', 'login/consent'],
} as const satisfies Omit<Declaration, 'name'>;
