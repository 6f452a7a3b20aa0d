// The strategy `email`: a code or a link by e-mail.
import { AuthError } from '../../../http/errors.ts';
import { normalizeEmail } from '../../../records/base/email.ts';
import { passwordlessStrategy } from './passwordless-strategy.ts';

export const email = passwordlessStrategy({
  name: 'email',
  kind: 'email',
  amr: ['otp'],
  text: 'login.emailCode',
  icon: 'email',
  message: 'passwordless_email',
  sendsLinks: true,
  normalize: normalizeEmail,
  invalid: (text) =>
    new AuthError(400, 'bad.email', `error in email - email format validation failed: ${text.slice(0, 100)}`),
  startResponse: (address) => ({ email: address, email_verified: false }),
  wrong: 'Wrong email or verification code.',
});
