// The user who is to give or enrol a second factor, and what entitles them to it.
import type { ApiToken } from '../engine/api-tokens.ts';
import type { Languages } from '../http/languages.ts';
import type { User } from '../users/user.ts';
import type { Authenticator } from './authenticators.ts';

/**
 * Somebody who has proved a first factor, or holds a token or ticket, and is to give or enrol a second (NIST SP
 * 800-63 "claimant").
 */
export interface Claimant {
  user: User;
  clientId: string;
  ip: string;
  /** The version of the credential that the first factor was proved by. */
  credentialVersion: number;
  /**
   * The access token for the MFA API, where that was brought: it decides whether further factors may be confirmed
   * beside a first one.
   */
  token?: ApiToken | undefined;
  /** The administrator's ticket, where that was brought: it permits an enrolment and nothing else. */
  permit?: EnrollmentPermit;
  /** Whether they have just given a second factor, and enrol another that an action of the login asks for. */
  hasProved?: boolean;
  /** For what they are told by mail. */
  languages?: Languages | undefined;
}

/** A claimant who asks for an authenticator or a challenge. */
export interface FactorRequest extends Claimant {
  languages: Languages;
}

/** What the ticket of an administrator permits: one enrolment. */
interface EnrollmentPermit {
  /** Whether the user may add to factors that they have already, without giving one of them. */
  several: boolean;
  /** The only authenticator that it is for; any that was begun without one. */
  authenticatorId?: string;
  /** Uses it up. @returns false for all but one of any number of racers. */
  spend(): Promise<boolean>;
  /** Told of what was confirmed on it. */
  confirmed?(authenticator: Authenticator): Promise<void>;
}
