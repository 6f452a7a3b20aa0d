// Models of the password pages in views/pages/login.
import { type PageModel, pageModel, type RequestPage, stepPath } from '../../flow/request-page.ts';
import type { Connection } from '../../records/collections.ts';
import { strategyRecord } from '../../records/connections.ts';
import { changesPasswords, databaseOptions, takesSignUps } from '../../records/database-options.ts';
import { enabledConnectionsOf } from '../../records/organizations.ts';
import { judgeStrength, type RuleVerdict } from '../../users/password-policy.ts';
import { type SignUpRefusal, usernameLength } from '../../users/signup.ts';
import type { LoginChoice } from '../request.ts';

interface LoginPage extends PageModel {
  requiresUsername: boolean;
  values: { username: string };
  signupUrl?: string;
  forgotPasswordUrl?: string;
  /** Other connections to log in with. */
  connections: LoginChoice[];
}

interface SignUpPage extends PageModel {
  values: { email: string; username: string };
  username?: { min: number; max: number };
  rules: (Omit<RuleVerdict, 'verified'> & { verified?: boolean })[];
  /** Whether the address is the invited one, and no other. */
  isEmailFixed: boolean;
  /** Message keys by field. */
  faults: { email?: string; username?: string; password?: string };
  loginUrl: string;
}

/** The form of a password. @param shown what was typed before, and a message key. */
export function loginPage(
  page: RequestPage,
  connection: Connection,
  connections: LoginChoice[],
  shown: { username: string; alert?: string },
): LoginPage {
  const { requires_username } = databaseOptions(connection);
  const managesPasswords = strategyRecord(connection.strategy)?.isDatabase === true;
  const offersSignUp = isSignUpOpen(page, connection) && takesSignUps(connection);
  return {
    ...pageModel(page, 'login'),
    // A directory knows its people by account names.
    requiresUsername: requires_username || !managesPasswords,
    values: { username: shown.username },
    connections,
    ...(managesPasswords &&
      changesPasswords(connection) && { forgotPasswordUrl: stepPath(page.pending, 'forgot-password') }),
    ...(shown.alert === undefined ? {} : { alert: shown.alert }),
    ...(offersSignUp ? { signupUrl: stepPath(page.pending, 'signup') } : {}),
  };
}

/**
 * Whether a request leaves signing up open: where the connection keeps the passwords itself; for an organization, by its
 * invitation or where it lets everybody in.
 */
export function isSignUpOpen({ organization, pending }: RequestPage, connection: Connection): boolean {
  if (strategyRecord(connection.strategy)?.isDatabase !== true) return false;
  if (organization === undefined || pending.invitedEmail !== undefined) return true;
  const enabled = enabledConnectionsOf(organization).find((one) => one.connection_id === connection.id);
  return enabled?.is_signup_enabled === true;
}

/** The form to sign up. @param refusal why the last attempt failed, with the password it was made with. */
export function signUpPage(
  page: RequestPage,
  connection: Connection,
  values: { email: string; username: string },
  refusal?: { refusal: SignUpRefusal; password: string },
): SignUpPage {
  const options = databaseOptions(connection);
  const { rules } = judgeStrength(options, refusal?.password ?? '');
  return {
    ...pageModel(page, 'signup'),
    values: { ...values, email: page.pending.invitedEmail ?? values.email },
    isEmailFixed: page.pending.invitedEmail !== undefined,
    ...(options.requires_username ? { username: usernameLength(options) } : {}),
    // Before anything is typed no rule has failed.
    rules: refusal === undefined ? rules.map(({ verified: _verified, ...rule }) => rule) : rules,
    ...describeRefusal(refusal?.refusal),
    loginUrl: stepPath(page.pending, 'login'),
  };
}

function describeRefusal(refusal: SignUpRefusal | undefined): {
  alert?: string;
  faults: SignUpPage['faults'];
} {
  const marked = (faults: SignUpPage['faults']) => ({ alert: 'signup.failed', faults });
  switch (refusal?.reason) {
    case undefined:
      return { faults: {} };
    case 'signup-disabled':
      return { alert: 'signup.disabled', faults: {} };
    case 'invalid-email':
      return marked({ email: 'signup.email' });
    case 'invalid-username':
    case 'missing-username':
    case 'unexpected-username':
      return marked({ username: 'signup.username' });
    case 'weak-password':
      return marked({ password: 'signup.weak' });
    case 'common-password':
      return marked({ password: 'signup.common' });
    case 'personal-password':
      return marked({ password: 'signup.personal' });
    case 'taken':
      // The same text whatever is taken, so as not to reveal accounts.
      return { alert: 'signup.refused', faults: {} };
  }
}
