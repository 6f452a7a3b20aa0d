// The contract of a second factor. The policy, the MFA API, the MFA grants and the pages know a factor only by it.
// A factor is one folder and one line in the list (factors.ts).

import type { Context } from 'koa';
import type { z } from 'zod';
import type { Messages } from '../../capabilities/delivery/delivery-messages.ts';
import {
  declarePage,
  type LayoutModel,
  type Page,
  type PageWithModel,
  pageWith,
} from '../../capabilities/pages/views.ts';
import type { Attempts } from '../../capabilities/protection/attempts.ts';
import type { Challenges, Outcome } from '../../capabilities/protection/challenges.ts';
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import type { AuthError } from '../../http/errors.ts';
import type { Languages } from '../../http/languages.ts';
import type { Fields } from '../../http/server/body.ts';
import type { EventType } from '../../records/base/log-events.ts';
import type { SecondFactorNames } from '../../records/users/second-factors.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { HostedDependencies, PageModel } from '../flow/request-page.ts';
import type { Authenticator, Authenticators } from './authenticators.ts';
import type { KnownBrowsers } from './browsers.ts';
import type { Claimant, FactorRequest } from './claimant.ts';
import type { Elevation } from './elevation.ts';
import type { WebPush } from './push/web-push.ts';

/** What second factors depend on. */
export interface FactorDependencies {
  baseUrl: string;
  config: Config;
  users: Users;
  /** All factors, in the order in which they are listed to applications. */
  factors: readonly Factor[];
  authenticators: Authenticators;
  elevation: Elevation;
  browsers: KnownBrowsers;
  challenges: Challenges;
  attempts: Attempts;
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack'>;
  events: Events;
  messages: Messages;
  webPush: WebPush;
  /** The store's clock, which never goes back. */
  clock: Clock;
  /** The time of day, which the codes of authenticator apps depend on. */
  wallClock: Clock;
  random: Random;
  /** Counts a message to an address or number that may not be the user's. @throws AuthError 429 */
  limitDestination(destination: string): Promise<void>;
}

export interface FactorPagesDependencies extends HostedDependencies, FactorDependencies {}

export interface StartedEnrollment {
  authenticator: Authenticator;
  /** The secret of an authenticator app, shown once. */
  secret?: string;
  /** The URI of the QR code that an authenticator app or our own authenticator scans. */
  barcodeUri?: string;
  oobCode?: string;
  /** Whether a code has to be typed with `oobCode`. */
  prompt?: boolean;
  /** Made with the first authenticator, shown once. */
  recoveryCode?: string;
}

export interface Challenge {
  oobCode?: string;
  /** Whether a code has to be typed with `oobCode`. */
  prompt?: boolean;
  /** The number that the device and the login page show, to be compared. */
  number?: string;
}

/** The result of a verification. `recoveryCode`: a new one, to be shown once. */
export type Verification = { ok: true; recoveryCode?: string } | { ok: false; outcome: Outcome };

interface Enrollment {
  /** The values of `authenticator_types` that ask for it. */
  requestedAs: readonly string[];
  /** @throws AuthError 400 */
  addressOf?(fields: Fields, user: User): string;
  /** Begins the enrolment. @throws AuthError 400, 429 or 503 when it cannot begin. */
  start(deps: FactorDependencies, request: FactorRequest, address: string): Promise<StartedEnrollment>;
  /**
   * For WebAuthn: returns the options that an application passes to its browser to create the credential.
   * @param context the authenticator, the login that began it, and the custom origin of the request ({@link
   *   customOrigin}).
   */
  creationOptions?(
    deps: FactorDependencies,
    request: Claimant,
    context: { authenticatorId: string; login: string; at: string | undefined },
  ): Promise<{ oobCode: string; options: object }>;
}

/** The grant by which applications give a factor. Several factors may share one. */
export interface MfaGrant {
  /** The part of `grant_type` and `gty` after `mfa-`. */
  name: string;
  /** One line, for the API document. */
  summary: string;
  /** The parameters besides `mfa_token`. */
  parameters: z.ZodObject;
  events: { success: EventType; failure: EventType };
  /** @returns the success, or the error to answer with. @throws AuthError 400 for a missing parameter, 429 */
  verify(
    deps: FactorDependencies,
    claimant: Claimant,
    params: Readonly<Record<string, string | undefined>>,
  ): Promise<Extract<Verification, { ok: true }> | RefusedProof>;
}

/** A proof that is refused. `isGuess`: it may have been a guess, of which a login allows only some. */
export interface RefusedProof {
  ok: false;
  error: AuthError;
  isGuess: boolean;
}

/** The state of the pages, which the server keeps with the waiting request or ticket. */
export interface PageState {
  /** The type of the factor that is being enrolled or given. */
  factor?: string | undefined;
  authenticatorId?: string | undefined;
  oobCode?: string | undefined;
  number?: string | undefined;
  barcodeUri?: string | undefined;
  /** The factor was given, and only the recovery code remains to be shown. */
  passed?: boolean;
}

/** An open page of the second factor: of a login, of an enrolment by a ticket, or of a challenge of an action. */
export interface FactorPage {
  claimant: Claimant;
  state: PageState;
  languages: Languages;
  uiLocales: string | undefined;
  /** Which factors may be enrolled; undefined to offer enrolment only to a user without factors. */
  mayEnroll?: (factor: Factor) => boolean;
  /** The types of the factors that may be given; undefined for all. */
  accepts?: readonly string[];
  /** Whether the user chooses a factor first when there are several. */
  offersChoice?: boolean;
  /** Returns the URL of a step, or of the first page without one. */
  urlOf(step?: string): string;
  model(step?: string): PageModel;
  render<M extends LayoutModel>(page: Page<M>, model: NoInfer<M>, status?: number): Promise<void>;
  saveState(state: PageState): Promise<void>;
  /** Whether the page is part of a login. If so, the browser becomes known, and the user may have it remembered. */
  isOfLogin?: true;
  /** Ends the pages, after the factor was given and any new recovery code was shown. */
  finish(factor: Pick<Factor, 'amr' | 'type'>): Promise<void>;
}

/** How the hosted pages show a factor. */
export interface FactorPages {
  /** Whether the user types a code or the browser answers, rather than another device. */
  typesCode: boolean;
  /** The alerts for a missing and a wrong answer, when the answer is not a typed code. */
  alerts?: { missing: string; wrong: string };
  /** For a factor whose address is typed at enrolment: returns the address of the form's fields. */
  addressOf?(address: string, country: string): string;
  /** The page that sets it up; its model is also made of the address as typed, to be shown again. */
  enrollment?: FactorView<FactorModel, string | undefined>;
  /** The page on which it is given; its model is also made of the authenticator that was challenged, if any. */
  challenge: FactorView<ChallengeModel, Authenticator | undefined>;
}

/** What all pages of factors read. */
export interface FactorModel extends PageModel {
  /** Where another factor can be chosen. */
  othersUrl?: string;
}

/** What the pages read on which a factor is given. */
export interface ChallengeModel extends FactorModel {
  /** Whether the browser can be remembered. */
  remember: boolean;
  /** The name of the authenticator; empty for none. */
  address: string;
  /** Where the challenge is sent again. */
  resendUrl?: string;
  resendSeconds?: number;
}

/** Makes the members of a page's model that differ between factors. */
export type OwnModel<About, Own> = (
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
  about: About,
) => Promise<Own> | Own;

/** Puts a page of a factor and its model together, of the members that all have and its own. */
type FactorView<Common, About> = (
  common: Common,
  ...args: Parameters<OwnModel<About, unknown>>
) => Promise<PageWithModel>;

/** Declares the page that sets up a factor. */
export const enrollmentView =
  <Own extends object>(
    page: Page<FactorModel & Own>,
    own: OwnModel<string | undefined, Own>,
  ): FactorView<FactorModel, string | undefined> =>
  async (common, ...args) =>
    pageWith(page, { ...common, ...(await own(...args)) });

/** Declares the page on which a factor is given. */
export const challengeView =
  <Own extends object>(
    page: Page<ChallengeModel & Own>,
    own: OwnModel<Authenticator | undefined, Own>,
  ): FactorView<ChallengeModel, Authenticator | undefined> =>
  async (common, ...args) =>
    pageWith(page, { ...common, ...(await own(...args)) });

/** The page on which the code of a message or an app is typed. */
export const MFA_CODE_PAGE = declarePage<ChallengeModel & { channel: string }>('mfa/code');

/** A second factor: its names, and how it is enrolled, asked for and verified. */
export interface Factor extends SecondFactorNames {
  /** Its `authenticator_type`, and its `challenge_type` if it has challenges. */
  authenticatorType: string;
  /** For an out-of-band factor: returns its `oob_channel`. @param vendorChannel the tenant's `vendor_channel`. */
  channel?(vendorChannel: string): string;
  /** Whether its codes are sent by the tenant's providers and actions. */
  isMessage?: true;
  /** How hard it is to phish or intercept. The user's factor with the highest number is asked for first. */
  strength: number;
  /** Returns the authenticator that follows from the user's profile and is not stored. */
  ofProfile?(
    deps: { users: Pick<Users, 'identitiesOf'>; config: Pick<Config, 'connection'> },
    user: User,
  ): Promise<Authenticator | undefined>;
  /** Returns a name that its owner recognizes, with addresses and numbers masked. */
  nameOf?(authenticator: Authenticator): string | undefined;
  enroll?: Enrollment;
  /**
   * Starts a challenge with one of the user's authenticators. Absent when nothing is sent.
   * @throws AuthError 429, 503
   */
  challenge?(
    deps: FactorDependencies,
    request: FactorRequest,
    authenticator: Authenticator,
  ): Promise<Challenge>;
  /** Verifies a code as it was typed at the pages, or the answer of another device. @throws AuthError 429 */
  verify(
    deps: FactorDependencies,
    claimant: Claimant,
    proof: { code: string; oobCode: string },
  ): Promise<Verification>;
  /** The grant for applications; absent for a factor that is only given at the hosted pages. */
  grant?: MfaGrant;
  pages: FactorPages;
}
