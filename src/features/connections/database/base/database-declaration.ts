// The limits and log events of password connections.
import { limitsOf } from '../../../../http/limits.ts';
import { eventTypesOf } from '../../../../records/base/log-events.ts';

export const databaseLimits = limitsOf({
  customDatabase: {
    capacity: 30,
    perMinute: 3,
    per: 'user',
    where: 'logins for which the script of a custom database failed',
  },
  lockNotice: {
    capacity: 1,
    perMinute: 1 / 60,
    per: 'account and address',
    where: 'e-mails about a locked account, to its user',
  },
  lockNoticeAccount: {
    capacity: 5,
    perMinute: 1 / 12,
    per: 'account',
    where: 'the same, over all attacking addresses',
  },
  lockNoticeEverywhere: {
    capacity: 1,
    perMinute: 1 / 720,
    per: 'account',
    where: 'mails about an account that is locked for all unknown callers',
  },
  signup: {
    capacity: 50,
    perMinute: 50,
    per: 'address',
    where:
      '`/dbconnections/signup` and the hosted page; also `suspiciousIpThrottling`, stage `pre-user-registration`; a network 400 at once and 20 a minute, everybody 10,000 at once and 200 a minute',
    // Users stay, so a network and all together may not make as many for long as at once.
    // docs/understand/decisions/passwords-protection.md#users-have-no-bound-in-total
    network: { capacity: 8, perMinute: 0.4 },
    everybody: { capacity: 200, perMinute: 4 },
    stage: 'pre-user-registration',
  },
  changePassword: {
    capacity: 10,
    perMinute: 1,
    per: 'e-mail address and address',
    where: '`/dbconnections/change_password` and the hosted page',
  },
  changePasswordDestination: {
    capacity: 10,
    perMinute: 1 / 6,
    per: 'user: all unknown callers together, each known caller',
    where: 'mails with a reset link; beyond the limit the answer is the same and no mail is sent',
  },
});

export const databaseEvents = eventTypesOf({
  fu: 'A password was tried for a user who does not exist.',
  sepft: 'Tokens were given for a password.',
  fepft: 'No tokens were given for a password.',
  limit_wc: 'An account was locked after too many failed logins.',
  scp: 'A new password was set.',
  fcp: 'A new password was refused, or the link to set it had expired.',
  sv: 'An address was verified.',
  fv: 'An address was not verified: the link had expired, was used, or was for another address.',
  sdu: 'An account was deleted by the owner of its address, who had not created it.',
});
