// The strategy `sms`: a code by SMS.
import { AuthError } from '../../../http/errors.ts';
import { normalizePhone } from '../../../records/base/email.ts';
import { passwordlessStrategy } from './passwordless-strategy.ts';

export const sms = passwordlessStrategy({
  name: 'sms',
  kind: 'phone_number',
  // `sms`: the code proves the phone number (RFC 8176 §2).
  amr: ['otp', 'sms'],
  text: 'login.smsCode',
  icon: 'phone',
  message: 'passwordless_sms',
  sendsLinks: false,
  normalize: normalizePhone,
  invalid: () => new AuthError(400, 'bad.phone_number', 'String does not match pattern: ^\\+[0-9]{1,15}$'),
  startResponse: (address, language) => ({
    phone_number: address,
    phone_verified: false,
    request_language: language ?? null,
  }),
  wrong: 'Wrong phone number or verification code.',
});
