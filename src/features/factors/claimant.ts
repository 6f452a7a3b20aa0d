// The user who is to give or enrol a second factor, and what entitles them to it.
import type { ApiToken } from '../../engine/token/api-tokens.ts';
import type { Languages } from '../../http/languages.ts';
import type { Presence } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Authenticator } from './authenticators.ts';

/**
 * A user who has proved a first factor, or holds a token or ticket, and is to give or enrol a second factor (NIST
 * SP 800-63 "claimant").
 */
export interface Claimant {
  user: User;
  clientId: string;
  ip: string;
  /** The version of the credential that the first factor was proved with. */
  credentialVersion: number;
  /** Whether the user was at the login, or opened the link of a ticket. */
  presence: Presence;
  /** The access token for the MFA API, if one was sent. It decides whether a factor may be added to existing ones. */
  token?: ApiToken | undefined;
  /** The administrator's ticket, if one was sent. It permits an enrolment and nothing else. */
  permit?: EnrollmentPermit;
  /**
   * Whether the user has just given a second factor and now enrols another, because an action of the login asks for
   * it.
   */
  hasSecondFactor?: boolean;
  /** The languages of the e-mail that tells the user of the change. */
  languages?: Languages | undefined;
}

export interface FactorRequest extends Claimant {
  languages: Languages;
}

/** The one enrolment that an administrator's ticket permits. */
interface EnrollmentPermit {
  /** Whether the user may add to existing factors without giving one of them. */
  allowsSeveral: boolean;
  /** The only authenticator that may be confirmed; undefined for any that was begun. */
  authenticatorId?: string;
  /** Uses the permission. @returns true for exactly one of several concurrent calls. */
  spend(): Promise<boolean>;
  /** Called after an authenticator was confirmed. */
  onConfirmed?(authenticator: Authenticator): Promise<void>;
}
