// What delivery declares of itself.
import type { Declaration } from '../records/declaration.ts';

const events = {
  cls: 'A login link or code was sent by e-mail.',
  cs: 'A login code was sent by SMS.',
  fn: 'A message could not be sent.',
  scpr: 'A link to set a new password was sent.',
  fcpr: 'A new password was asked for, and no link was sent.',
  svr: 'A link to verify an address was sent.',
  fvr: 'A link to verify an address could not be sent.',
  gd_send_email: 'A code of a second factor was sent by e-mail.',
  gd_send_sms: 'A code of a second factor was sent by SMS.',
};

declare module '../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const delivery: Declaration = { name: 'delivery', events, collections: ['deliveries', 'leases'] };
