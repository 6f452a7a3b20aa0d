// The strategy `sms`: a code by SMS.
import { createRequire } from 'node:module';
import { AuthError } from '../../http/errors.ts';
import { passwordlessStrategy } from './strategy.ts';

/** The numbering plans of all countries: read with the first number, not at each start. */
const plans = () => createRequire(import.meta.url)('libphonenumber-js') as typeof import('libphonenumber-js');

/** As the hosted service says it of a number that is none. */
const PHONE = /^\+[0-9]{1,15}$/;

/** In E.164; undefined for what is no number. */
function normalizePhone(text: string): string | undefined {
  const number = text.replace(/[\s().-]/g, '');
  if (!PHONE.test(number)) return undefined;
  const parsed = plans().parsePhoneNumberFromString(number);
  return parsed?.isPossible() === true ? parsed.number : undefined;
}

export const sms = passwordlessStrategy({
  name: 'sms',
  kind: 'phone_number',
  // A number is proved by what came by SMS (RFC 8176 §2).
  amr: ['otp', 'sms'],
  text: 'login.smsCode',
  icon: 'phone',
  message: 'passwordless_sms',
  sendsLinks: false,
  normalize: normalizePhone,
  invalid: () => new AuthError(400, 'bad.phone_number', 'String does not match pattern: ^\\+[0-9]{1,15}$'),
  sent: (address, language) => ({
    phone_number: address,
    phone_verified: false,
    request_language: language ?? null,
  }),
  wrong: 'Wrong phone number or verification code.',
});
