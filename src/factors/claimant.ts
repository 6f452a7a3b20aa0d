// Who is to give or enrol a second factor, and on whose word.
import type { ApiToken } from '../engine/api-tokens.ts';
import type { Languages } from '../http/languages.ts';
import type { User } from '../users/user.ts';
import type { Authenticator } from './authenticators.ts';

/** Who claims to be a user (NIST SP 800-63 "claimant"), and on whose word. */
export interface Claimant {
  user: User;
  clientId: string;
  ip: string;
  /** The version of the credential that the first factor was proved by. */
  credentialVersion: number;
  /** By an access token for the MFA API: it says what else may be confirmed than the user's first. */
  token?: ApiToken | undefined;
  /** By a ticket that an administrator gave them: nothing but an enrolment. */
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

/** What an enrolment on an administrator's word may add, and how often: once. */
interface EnrollmentPermit {
  /** Whether also to what the user has already, on the permit's word alone. */
  several: boolean;
  /** The only authenticator that it is for; any that was begun without one. */
  authenticatorId?: string;
  /** Uses it up. @returns false for all but one of any number of racers. */
  spend(): Promise<boolean>;
  /** Told of what was confirmed on it. */
  confirmed?(authenticator: Authenticator): Promise<void>;
}
