// What a second factor is: a value. The policy, the MFA API, the MFA grants and the pages know no more of it than this;
// a factor is one folder and one line in the list (factors.ts).
import type { Context } from 'koa';
import type { z } from 'zod';
import type { Messages } from '../delivery/messages.ts';
import type { HostedDependencies, PageModel } from '../flow/request-page.ts';
import type { Fields } from '../http/body-fields.ts';
import type { AuthError } from '../http/errors.ts';
import type { Languages } from '../http/languages.ts';
import type { Attempts } from '../protection/attempts.ts';
import type { Outcome } from '../protection/challenge-records.ts';
import type { Challenges } from '../protection/challenges.ts';
import type { RateLimits } from '../protection/rate-limit.ts';
import type { EventType } from '../records/log-events.ts';
import type { SecondFactorNames } from '../records/second-factors.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Config } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';
import type { Authenticator, Authenticators } from './authenticators.ts';
import type { KnownBrowsers } from './browsers.ts';
import type { Claimant, FactorRequest } from './claimant.ts';
import type { Elevation } from './elevation.ts';
import type { WebPush } from './push/web-push.ts';

/** What second factors are built on. */
export interface FactorDependencies {
  baseUrl: string;
  config: Config;
  users: Users;
  /** All factors that there are, in the order in which they are told. */
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
  /** The store's, which never goes back. */
  clock: Clock;
  /** The time of day, which authenticator apps go by. */
  wallClock: Clock;
  random: Random;
  /** Counts a message to an address or number that may be anybody's. @throws AuthError 429 */
  limitDestination(destination: string): Promise<void>;
}

export interface FactorPagesDependencies extends HostedDependencies, FactorDependencies {}

/** An authenticator just begun. */
export interface Enrolled {
  authenticator: Authenticator;
  /** Of an app: shown this once. */
  secret?: string;
  /** What an app or our own authenticator scans. */
  barcodeUri?: string;
  oobCode?: string;
  /** Whether a code has to be typed beside `oobCode`. */
  prompt?: boolean;
  /** With the first authenticator: shown this once. */
  recoveryCode?: string;
}

/** A challenge just made. */
export interface Challenge {
  oobCode?: string;
  /** Whether a code has to be typed beside `oobCode`. */
  prompt?: boolean;
  /** What a device shows, to be compared. */
  number?: string;
}

/** What came of a proof. `recoveryCode`: a new one, to be shown. */
export type Verification = { ok: true; recoveryCode?: string } | { ok: false; outcome: Outcome };

/** How an authenticator of a factor is enrolled. */
interface Enrollment {
  /** The `authenticator_types` by which applications ask for it. */
  requestedAs: readonly string[];
  /** Where it leads, of a factor that is reached by an address. @throws AuthError 400 */
  addressOf?(fields: Fields, user: User): string;
  /** @throws AuthError 400, 429 or 503 when it cannot be begun. */
  begin(deps: FactorDependencies, request: FactorRequest, address: string): Promise<Enrolled>;
  /**
   * What an application hands to its browser, for a factor that is made there.
   * @param asked the authenticator that was begun, the login that began it, and {@link customOrigin} of where.
   */
  creation?(
    deps: FactorDependencies,
    request: Claimant,
    asked: { authenticatorId: string; login: string; at: string | undefined },
  ): Promise<{ oobCode: string; options: object }>;
}

/** The grant by which applications give a factor: one may be that of several. */
export interface MfaGrant {
  /** The end of its `grant_type` and `gty`, after `mfa-`. */
  name: string;
  /** One line, for the document of the API. */
  summary: string;
  /** Parameters that it reads beside `mfa_token`. */
  parameters: z.ZodObject;
  events: { success: EventType; failure: EventType };
  /** @returns what was verified, or the refusal. @throws AuthError 400 for a missing parameter, 429. */
  verify(
    deps: FactorDependencies,
    claimant: Claimant,
    params: Readonly<Record<string, string | undefined>>,
  ): Promise<Extract<Verification, { ok: true }> | AuthError>;
}

/** The state of the pages, kept by the server with the waiting request. */
export interface PageState {
  /** The type of the factor that is being enrolled or given. */
  factor?: string | undefined;
  authenticatorId?: string | undefined;
  oobCode?: string | undefined;
  number?: string | undefined;
  barcodeUri?: string | undefined;
  /** The factor was given; what is left is to see the recovery code. */
  passed?: boolean;
}

/**
 * An open page of the second factor: of a login, of an enrolment by a ticket, or of a challenge that an action asks
 * for.
 */
export interface FactorPage {
  claimant: Claimant;
  state: PageState;
  languages: Languages;
  uiLocales: string | undefined;
  /** Which factors may be enrolled, where the page is not part of a login. */
  enrolls?: (factor: Factor) => boolean;
  /** The types that may be given, where not all may. */
  asks?: readonly string[];
  /** Whether the user chooses first, where there is more than one. */
  isChosen?: boolean;
  /** The address of a step; that of the first without one. */
  urlOf(step?: string): string;
  /** What a page shows whose form leads to a step. */
  model(step?: string): PageModel;
  render(template: string, model: object, status?: number): Promise<void>;
  /** Keeps what the pages know, by the server. */
  remember(state: PageState): Promise<void>;
  /** Whether the page is part of a login: the browser is known afterwards, and the user may have it remembered. */
  isOfLogin?: true;
  /** Ends the pages: the factor was given, and a new recovery code was shown. */
  finish(given: Pick<Factor, 'amr' | 'type'>): Promise<void>;
}

/** A factor at the hosted pages. */
export interface FactorPages {
  /** Whether something is typed, or given by the browser, rather than answered on another device. */
  typesCode: boolean;
  /** The alerts for a missing and a wrong answer, where the answer is no typed code. */
  alerts?: { missing: string; wrong: string };
  /** Where an address is typed before it is enrolled: what the form says. */
  addressOf?(address: string, country: string): string;
  /** Where it is set up, and what is shown there beside what all pages show. */
  enrollment?: {
    template: string;
    /** @param address what was typed, to be shown again. */
    model(
      deps: FactorPagesDependencies,
      ctx: Context,
      page: FactorPage,
      address: string | undefined,
    ): Promise<object> | object;
  };
  /** Where it is given. */
  challenge: {
    template: string;
    /** @param authenticator the one that was asked, where one was. */
    model?(
      deps: FactorPagesDependencies,
      ctx: Context,
      page: FactorPage,
      authenticator: Authenticator | undefined,
    ): Promise<object> | object;
  };
}

/** A second factor: its names, and how it is enrolled, asked for and verified. */
export interface Factor extends SecondFactorNames {
  /** As `authenticator_type`, and as `challenge_type` where there is a challenge. */
  authenticatorType: string;
  /** As `oob_channel`, where it is answered out of band. @param vendorChannel the tenant's `vendor_channel`. */
  channel?(vendorChannel: string): string;
  /**
   * How hard it is to phish or intercept: of a user's factors the one with the highest number is asked for first.
   */
  strength: number;
  /** The authenticator that a user has by their profile, in no store. */
  ofProfile?(
    deps: { users: Pick<Users, 'identitiesOf'>; config: Pick<Config, 'connection'> },
    user: User,
  ): Promise<Authenticator | undefined>;
  /** An authenticator's name, as its owner is shown it: enough to know it by, not enough to learn it. */
  nameOf?(authenticator: Authenticator): string | undefined;
  enroll?: Enrollment;
  /** Asks for it with one of the user's authenticators; none where there is nothing to start. @throws AuthError 429, 503 */
  challenge?(
    deps: FactorDependencies,
    request: FactorRequest,
    authenticator: Authenticator,
  ): Promise<Challenge>;
  /** Judges what was typed at the pages (as it was), or answered elsewhere. @throws AuthError 429 */
  verify(
    deps: FactorDependencies,
    claimant: Claimant,
    proof: { code: string; oobCode: string },
  ): Promise<Verification>;
  /** None where it is given at the pages alone. */
  grant?: MfaGrant;
  pages: FactorPages;
}
