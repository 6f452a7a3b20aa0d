// Models of the password pages in views/pages/login.

import { declarePage } from '../../../../capabilities/pages/views.ts';
import type { Connection } from '../../../../records/collections.ts';
import { strategyRecord } from '../../../../records/connections/connections.ts';
import { attributesOf, usernameLength } from '../../../../records/connections/database-attributes.ts';
import type { AddressKind } from '../../../../records/connections/identities.ts';
import {
  codeKinds,
  databaseOptions,
  offersReset,
  passwordUse,
  takesSignUps,
} from '../../../../records/database-options.ts';
import { enabledConnectionsOf, opensSignUp } from '../../../../records/users/organizations.ts';
import { checkStrength, type RuleVerdict } from '../../../../users/password-policy.ts';
import type { SignUpRefusal } from '../../../../users/signup.ts';
import { type PageModel, pageModel, type RequestPage, stepPath } from '../../../flow/request-page.ts';
import { type NameField, nameField, namesOf } from '../../name-field.ts';
import type { PasskeyOffer } from '../../passkeys/enrollment.ts';
import type { LoginChoice } from '../../resolve.ts';

/** What the login forms read. */
interface LoginModel extends PageModel, Partial<PasskeyOffer> {
  names: NameField;
  values: { username: string };
  signupUrl?: string;
  forgotPasswordUrl?: string;
  /** Other connections to log in with. */
  connections: LoginChoice[];
}

/** The addresses typed into the sign-up form. */
export interface SignUpValues {
  email: string;
  phone: string;
  username: string;
}

/** A rule of passwords, and whether the password that was typed meets it. */
export type ShownRule = Omit<RuleVerdict, 'verified'> & { verified?: boolean };

interface AddressField {
  isOptional: boolean;
}

export interface SignUpModel extends PageModel {
  values: SignUpValues;
  /** The addresses that the form asks for, and whether each may be left out. */
  email?: AddressField;
  phone?: AddressField;
  username?: AddressField & { min: number; max: number };
  /** Whether users sign up without a password. */
  hasNoPassword: boolean;
  rules: ShownRule[];
  /** Whether the e-mail address is that of an invitation and cannot be changed. */
  isEmailFixed: boolean;
  /** Message keys by field. */
  faults: { email?: string; phone?: string; username?: string; password?: string };
  loginUrl: string;
}

export const LOGIN_PAGE = declarePage<LoginModel>('login/login');

interface LoginPasswordModel extends LoginModel {
  /** Where the user types another address. */
  identifierUrl: string;
}

export const LOGIN_PASSWORD_PAGE = declarePage<LoginPasswordModel>('login/password');
export const LOGIN_SIGNUP_PAGE = declarePage<SignUpModel>('login/signup');

/** Returns the model of the login form. @param input the name that was typed, and the message key of an error. */
export function loginPage(
  page: RequestPage,
  connection: Connection,
  connections: LoginChoice[],
  input: { username: string; alert?: string },
): Omit<LoginModel, keyof PasskeyOffer> {
  const managesPasswords = strategyRecord(connection.strategy)?.isDatabase === true;
  const offersSignUp = isSignUpOpen(page, connection) && takesSignUps(connection);
  return {
    ...pageModel(page, 'login'),
    names: nameField(namesOf(connection)),
    values: { username: input.username },
    connections,
    ...(managesPasswords &&
      offersReset(connection) && { forgotPasswordUrl: stepPath(page.waiting, 'forgot-password') }),
    ...(input.alert === undefined ? {} : { alert: input.alert }),
    ...(offersSignUp ? { signupUrl: stepPath(page.waiting, 'signup') } : {}),
  };
}

/**
 * Returns whether users can sign up at a request: the connection must be a database whose users sign up with a password or a
 * code; at an organization there must also be an invitation, or the organization must allow sign-ups.
 */
export function isSignUpOpen({ organization, waiting }: RequestPage, connection: Connection): boolean {
  if (strategyRecord(connection.strategy)?.isDatabase !== true) return false;
  if (!passwordUse(connection).signsUp && codeKinds(connection).length === 0) return false;
  if (organization === undefined || waiting.invitedEmail !== undefined) return true;
  const enabled = enabledConnectionsOf(organization).find((one) => one.connection_id === connection.id);
  return opensSignUp(enabled);
}

/** Returns the model of the sign-up form. @param refusal why the last attempt failed, and its password. */
export function signUpPage(
  page: RequestPage,
  connection: Connection,
  values: SignUpValues,
  refusal?: { refusal: SignUpRefusal; password: string },
): SignUpModel {
  const options = databaseOptions(connection);
  const { rules } = checkStrength(options, refusal?.password ?? '');
  const attributes = attributesOf(options);
  const field = (kind: AddressKind): AddressField | undefined => {
    const { signUp, isRequired } = attributes[kind];
    return signUp === 'inactive' ? undefined : { isOptional: signUp === 'optional' && !isRequired };
  };
  const [email, phone, username] = [field('email'), field('phone_number'), field('username')];
  return {
    ...pageModel(page, 'signup'),
    values: { ...values, email: page.waiting.invitedEmail ?? values.email },
    isEmailFixed: page.waiting.invitedEmail !== undefined,
    ...(email && { email }),
    ...(phone && { phone }),
    ...(username && { username: { ...username, ...usernameLength(options) } }),
    hasNoPassword: !passwordUse(connection).signsUp,
    // The rules are marked as met or failed only after a password was typed.
    rules: refusal === undefined ? rules.map(({ verified: _verified, ...rule }) => rule) : rules,
    ...describeRefusal(refusal?.refusal),
    loginUrl: stepPath(page.waiting, 'login'),
  };
}

const ADDRESS_FAULTS: Record<AddressKind, SignUpModel['faults']> = {
  email: { email: 'signup.email' },
  phone_number: { phone: 'passwordless.sms.invalid' },
  username: { username: 'signup.username' },
};

function describeRefusal(refusal: SignUpRefusal | undefined): {
  alert?: string;
  faults: SignUpModel['faults'];
} {
  const withFaults = (faults: SignUpModel['faults']) => ({ alert: 'signup.failed', faults });
  switch (refusal?.reason) {
    case undefined:
      return { faults: {} };
    case 'signup-disabled':
      return { alert: 'signup.disabled', faults: {} };
    case 'invalid-email':
      return withFaults({ email: 'signup.email' });
    case 'invalid-phone':
      return withFaults({ phone: 'passwordless.sms.invalid' });
    case 'invalid-username':
      return withFaults({ username: 'signup.username' });
    case 'missing-password':
      return withFaults({ password: 'signup.weak' });
    case 'missing-address':
    case 'unexpected-address':
      return withFaults(ADDRESS_FAULTS[refusal.kind]);
    case 'weak-password':
      return withFaults({ password: 'signup.weak' });
    case 'common-password':
      return withFaults({ password: 'signup.common' });
    case 'personal-password':
      return withFaults({ password: 'signup.personal' });
    case 'taken':
      // The text does not say that the account exists.
      return { alert: 'signup.refused', faults: {} };
  }
}
