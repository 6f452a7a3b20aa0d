// The limits and log events of logins in the browser.
import { limitsOf } from '../../http/limits.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';

export const flowLimits = limitsOf({
  coAuthenticate: { capacity: 50, perMinute: 300, per: 'address', where: '`/co/authenticate`' },
  passwordlessResend: {
    capacity: 1,
    perMinute: 2,
    per: 'destination, application and address',
    where: 'repeated codes on the hosted pages',
  },
});

export const flowEvents = eventTypesOf({
  scoa: 'Credentials from a page of the application were accepted; it got a login ticket.',
  fcoa: 'Credentials from a page of the application were refused.',
});
