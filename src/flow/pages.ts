// What the login pages show: models for views/pages/login, made of a waiting request.

import type { Connection } from '../records/collections.ts';
import { databaseOptions } from '../records/database-options.ts';
import type { Config } from '../tenant/config.ts';
import { judgeStrength, type RuleVerdict } from '../users/password-policy.ts';
import { nameOf } from '../users/profile.ts';
import { type SignUpRefusal, usernameLength } from '../users/signup.ts';
import type { User } from '../users/user.ts';
import { type LoginChoice, type PageModel, pageModel, stepPath, type Visit } from './request-page.ts';

export interface LoginPage extends PageModel {
  requiresUsername: boolean;
  values: { username: string };
  signupUrl?: string;
  forgotPasswordUrl: string;
  /** Other ways in. */
  connections: LoginChoice[];
}

export interface SignUpPage extends PageModel {
  values: { email: string; username: string };
  username?: { min: number; max: number };
  rules: (Omit<RuleVerdict, 'verified'> & { verified?: boolean })[];
  /** Message keys by field. */
  faults: { email?: string; username?: string; password?: string };
  loginUrl: string;
}

export interface ConsentPage extends PageModel {
  scopes: { key?: string; text?: string; api?: string }[];
  user: string;
}

export interface AccountPage extends PageModel {
  user: string;
  loginUrl: string;
}

export function loginPage(
  visit: Visit,
  connection: Connection,
  connections: LoginChoice[],
  shown: { username: string; alert?: string },
): LoginPage {
  const { requires_username, disable_signup } = databaseOptions(connection);
  return {
    ...pageModel(visit, 'login'),
    requiresUsername: requires_username,
    values: { username: shown.username },
    connections,
    forgotPasswordUrl: stepPath(visit.pending, 'forgot-password'),
    ...(shown.alert === undefined ? {} : { alert: shown.alert }),
    ...(disable_signup ? {} : { signupUrl: stepPath(visit.pending, 'signup') }),
  };
}

/** @param refusal why the last attempt failed, with the password it was made with. */
export function signUpPage(
  visit: Visit,
  connection: Connection,
  values: { email: string; username: string },
  refusal?: { refusal: SignUpRefusal; password: string },
): SignUpPage {
  const options = databaseOptions(connection);
  const { rules } = judgeStrength(options, refusal?.password ?? '');
  return {
    ...pageModel(visit, 'signup'),
    values,
    ...(options.requires_username ? { username: usernameLength(options) } : {}),
    // Nothing was typed yet: no rule is called missed.
    rules: refusal === undefined ? rules.map(({ verified: _verified, ...rule }) => rule) : rules,
    ...describeRefusal(refusal?.refusal),
    loginUrl: stepPath(visit.pending, 'login'),
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
      // The same words whatever is taken: who has an account here is nobody else's business.
      return { alert: 'signup.refused', faults: {} };
  }
}

export async function consentPage(
  visit: Visit,
  config: Config,
  user: User | undefined,
): Promise<ConsentPage> {
  const { oidcScopes, apis } = visit.pending.missing;
  const apiScopes = await Promise.all(
    Object.entries(apis).map(async ([audience, scopes]) => {
      const api = await config.resourceServer(audience);
      return scopes.map((scope) => ({
        text: api?.scopes.find(({ value }) => value === scope)?.description ?? scope,
        api: api?.name ?? audience,
      }));
    }),
  );
  return {
    ...pageModel(visit, 'consent'),
    scopes: [...oidcScopes.map((scope) => ({ key: `scope.${scope}` })), ...apiScopes.flat()],
    user: nameOf(user),
  };
}

export function accountPage(visit: Visit, user: User | undefined): AccountPage {
  return { ...pageModel(visit, 'account'), user: nameOf(user), loginUrl: stepPath(visit.pending, 'login') };
}
