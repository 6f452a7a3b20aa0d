// Database connections: login with a password, sign-up, password reset, verification of e-mail addresses.
import { feature } from '../../../engine/feature.ts';
import type { Limits } from '../../../records/limits.ts';
import { type AccountPagesDependencies, accountPages } from './account-pages.ts';
import { forgotPages } from './forgot-pages.ts';
import type { PasswordPagesDependencies } from './form-dependencies.ts';
import { type PasswordGrantDependencies, passwordGrants } from './grant.ts';
import { passwordPages } from './hosted.ts';
import { type DatabaseDependencies, databaseRoutes } from './routes.ts';
import { signUpCodePages } from './sign-up-codes.ts';
import { type UnblockDependencies, unblockRoutes } from './unblock.ts';
import { type UsernamePasswordDependencies, usernamePasswordRoutes } from './username-password.ts';
import { verificationPages } from './verification-pages.ts';

interface DatabaseFeatureDependencies
  extends DatabaseDependencies,
    AccountPagesDependencies,
    PasswordPagesDependencies,
    UsernamePasswordDependencies,
    UnblockDependencies {}

const limits = {
  login: { capacity: 20, perMinute: 10, per: 'user and address', where: 'every login with a password' },
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
} satisfies Limits;

const events = {
  fu: 'A password was tried for a user who does not exist.',
  sepft: 'Tokens were given for a password.',
  fepft: 'No tokens were given for a password.',
  limit_wc: 'An account was locked after too many failed logins.',
  scp: 'A new password was set.',
  fcp: 'A new password was refused, or the link to set it had expired.',
  sv: 'An address was verified.',
  fv: 'An address was not verified: the link had expired, was used, or was for another address.',
  sdu: 'An account was deleted by the owner of its address, who had not created it.',
};

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const database = feature<DatabaseFeatureDependencies, PasswordGrantDependencies>({
  name: 'database',
  limits,
  events,
  grants: passwordGrants,
  routes: {
    ...databaseRoutes,
    ...accountPages,
    ...forgotPages,
    ...verificationPages,
    ...passwordPages,
    ...signUpCodePages,
    ...usernamePasswordRoutes,
    ...unblockRoutes,
  },
  pages: [
    'account/done',
    'account/unblock',
    'login/login',
    'login/password',
    'login/signup',
    'account/forgot',
    'account/reset',
    'account/sent',
    'account/verify',
  ],
});
