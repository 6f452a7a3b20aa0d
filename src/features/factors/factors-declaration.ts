// The limits and log events of second factors.
import { limitsOf } from '../../http/limits.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';

export const factorLimits = limitsOf({
  mfaChallenge: { capacity: 50, perMinute: 50, per: 'address', where: '`/mfa/challenge`' },
  mfaAssociate: { capacity: 50, perMinute: 50, per: 'address', where: '`/mfa/associate`' },
  mfaVerify: { capacity: 100, perMinute: 100, per: 'address', where: 'the rest of `/mfa/`' },
  mfaCode: {
    capacity: 10,
    perMinute: 1 / 6,
    per: 'user',
    where: 'codes of a second factor, over all tokens and addresses; correct codes do not count',
  },
  mfaMessage: {
    capacity: 10,
    perMinute: 1 / 60,
    per: 'user',
    where: 'codes of a second factor that are sent, to any destination; used codes do not count',
  },
  mfaPush: {
    capacity: 10,
    perMinute: 1 / 6,
    per: 'user',
    where: "requests to a user's devices to approve a login; approved requests do not count",
  },
});

export const factorEvents = eventTypesOf({
  seotpft: 'Tokens were given for the code of an authenticator app.',
  seoobft: 'Tokens were given for a code that was sent, or a login that a device approved.',
  sercft: 'Tokens were given for a recovery code.',
  feotpft: 'No tokens were given for the code of an authenticator app.',
  feoobft: 'No tokens were given for a code that was sent, or for a login that no device approved.',
  fercft: 'No tokens were given for a recovery code.',
  gd_start_enroll: 'The enrolment of an authenticator began.',
  gd_enrollment_complete: 'An authenticator was enrolled.',
  gd_start_auth: 'A second factor was requested.',
  gd_auth_succeed: 'A second factor was right.',
  gd_auth_failed: 'A second factor was wrong.',
  gd_otp_rate_limit_exceed: 'Too many codes of a second factor were tried.',
  gd_recovery_succeed: 'A recovery code was right.',
  gd_recovery_failed: 'A recovery code was wrong.',
  gd_unenroll: 'An authenticator was removed.',
});
