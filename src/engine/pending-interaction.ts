// What is known of an authorization request that waits for its user, and how it can go on: what flow/ and the pages work with.
// The engine's side of it is in interaction.ts.
import type { Context } from 'koa';
import type { FactorsAsked } from '../actions/factors-asked.ts';
import { AuthError } from '../http/errors.ts';
import type { Login } from '../users/login.ts';
import type { MissingConsent } from './missing-consent.ts';
import type { Return } from './waiting-actions.ts';

/** An authorization request that waits for its user. */
export interface PendingInteraction {
  uid: string;
  /** `login`, `consent`, `select_account`, `organization_name`, `organization`, `redirect` or `primary`. */
  prompt: string;
  clientId: string;
  /** The authorization request's parameters, as the engine has them. */
  params: Readonly<Record<string, string | undefined>>;
  /** Parameters to forward to an upstream provider. */
  upstream: Readonly<Record<string, string>>;
  /** The ticket of a login done before the request, as the application sent it. */
  loginTicket: string | undefined;
  /** The login of a session that was handed over to the browser with the request. */
  handed: Login | undefined;
  /** Who is logged in already. */
  userId: string | undefined;
  /** The connection that they came by, where it is known. */
  connection: string | undefined;
  /** What a third-party application asks the user to allow. */
  missing: MissingConsent;
  /** Who has given the first factor and still lacks the second: in this request, or in the session. */
  firstFactor: Login | undefined;
  /** The e-mail address that the request's invitation was sent to. */
  invitedEmail: string | undefined;
  /** The account that the user is offered to link theirs to, or proves for that. */
  link: PendingLink | undefined;
  /** What the user is offered, or has answered. */
  offer: PendingOffer | undefined;
  /** The second factors that actions ask for, where they name any. */
  factors: FactorsAsked | undefined;
  /** The login of the user whom an action has put in place of the one who logged in. */
  primary: Login | undefined;
  /** The address to which an action sends the user before the request goes on. */
  redirect: string | undefined;
  /** The data that {@link Interactions.remember} has kept. */
  remembered: Readonly<Record<string, unknown>>;
}

/** A login whose user is asked whether another account is theirs, too. */
export interface PendingLink {
  /** The login, by a new identity: complete, and not yet answered. */
  login: Login;
  /** The other account, the connection that it is proved by, and the address that both have. */
  userId: string;
  connection: string;
  email: string;
  /** Whether the user wants it: the request then waits for a login by that connection, whatever it names itself. */
  isAccepted: boolean;
  /** Whether the user has logged in to an account that is not the one. */
  isOther?: boolean;
}

/** A login whose user is offered something before it is answered. */
export interface PendingOffer {
  /** Complete, and not yet answered. */
  login: Login;
  isAnswered: boolean;
  /** Whether the offer is of a passkey for this device, to a user who has logged in with one of another device. */
  isLocal?: boolean;
}

/** What is known of a waiting request wherever its browser asks. */
export type WaitingRequest = Pick<
  PendingInteraction,
  'uid' | 'prompt' | 'clientId' | 'params' | 'link' | 'offer'
>;

/** How a waiting request goes on. */
export type Answer =
  | { login: Login }
  /** The user keeps the account that is logged in. */
  | 'account'
  /** The user allows what the application asks for. */
  | 'consent'
  /** Parameters that the request did not have: the organization by its id, and the address that led to it. */
  | { organization: string; login_hint?: string }
  /** The user is back from where an action sent them. */
  | { returned: Return }
  /** The request ends as an error at the application. */
  | { error: string; description: string };

/** The waiting requests in the engine. flow/ decides how they go on. */
export interface Interactions {
  /** @throws AuthError 400 when the request of this browser is over, expired or never was. */
  pending(ctx: Context): Promise<PendingInteraction>;
  /**
   * What a request is for, at an address that is not its own.
   * @throws AuthError 400 when no such request waits in this browser.
   */
  find(ctx: Context, uid: string): Promise<WaitingRequest>;
  /**
   * The request that has just begun to wait for a login, by where the engine sends its browser.
   * @returns undefined when it waits for something else, or has a login already that lacks the rest.
   */
  begun(ctx: Context, location: string): Promise<WaitingRequest | undefined>;
  /** Keeps the first factor beside the request, where only we write, until the second one is given. */
  keepFirstFactor(ctx: Context, login: Login): Promise<void>;
  /** Keeps a link that is offered or accepted in place of a first factor; undefined: there is none any more. */
  keepLink(ctx: Context, link: PendingLink | undefined): Promise<void>;
  /** Keeps an offer, or that it was answered, in place of a first factor. */
  keepOffer(ctx: Context, offer: PendingOffer): Promise<void>;
  /** Keeps JSON beside the request, until it ends; the browser does not see it. */
  remember(ctx: Context, data: Record<string, unknown>): Promise<void>;
  /** The request goes on, and the browser with it. */
  answer(ctx: Context, answer: Answer): Promise<void>;
}

/** Where the browser is sent for an interaction; the engine's cookie for it is limited to this path. */
export function interactionPath(uid: string): string {
  return `/u/${uid}`;
}

/** The error for a request that this browser has not got, or not any more. */
export function requestExpired(cause?: unknown): AuthError {
  return new AuthError(400, 'invalid_request', 'This login request has expired or was already used.', {
    extra: { reason: 'request_expired' },
    cause,
  });
}
