// The contract for waiting authorization requests, which flow/ and the pages work with. interaction.ts implements
// it in the engine.
import type { Context } from 'koa';
import type { RequiredFactors } from '../../capabilities/actions/factor-methods.ts';
import { AuthError } from '../../http/errors.ts';
import type { Login } from '../../users/login.ts';
import type { MissingConsent } from '../login/missing-consent.ts';
import type { ReturnRequest } from '../login/waiting-actions.ts';

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
  /** The login that a session transfer token of the request stands for. */
  transferredLogin: Login | undefined;
  /** The user who is logged in already. */
  userId: string | undefined;
  /** The connection that this user logged in with, where it is known. */
  connection: string | undefined;
  /** What a third-party application asks the user to allow. */
  missing: MissingConsent;
  /** The login that has its first factor and still lacks the second: of this request, or of the session. */
  firstFactor: Login | undefined;
  /** The e-mail address that the request's invitation was sent to. */
  invitedEmail: string | undefined;
  /** The account that the user is offered to link to theirs, or is logging in to for that. */
  link: PendingLink | undefined;
  /** The offer that the user sees before the login is answered, or has answered. */
  offer: PendingOffer | undefined;
  /** The second factors that actions ask for, where they name any. */
  factors: RequiredFactors | undefined;
  /** The login of the user whom an action has put in place of the one who logged in. */
  primary: Login | undefined;
  /** The address to which an action sends the user before the request goes on. */
  redirect: string | undefined;
  /** The data that {@link Interactions.remember} has kept. */
  remembered: Readonly<Record<string, unknown>>;
}

/** A login whose user is asked whether another account is theirs, too. */
export interface PendingLink {
  /** The login with the new identity: complete, but the request is not answered yet. */
  login: Login;
  /** The other account, the connection to log in to it with, and the e-mail address that both have. */
  userId: string;
  connection: string;
  email: string;
  /**
   * Whether the user has accepted. The request then waits for a login with that connection, whatever connection it
   * names itself.
   */
  isAccepted: boolean;
  /** Whether the user has logged in to a different account instead. */
  isOther?: boolean;
}

/** A login whose user is offered something before it is answered. */
export interface PendingOffer {
  /** Complete, but the request is not answered yet. */
  login: Login;
  isAnswered: boolean;
  /** Whether a passkey for this device is offered, to a user who has logged in with one of another device. */
  isLocal?: boolean;
}

/** The members of a waiting request that are known at every path. */
export type WaitingRequest = Pick<
  PendingInteraction,
  'uid' | 'prompt' | 'clientId' | 'params' | 'link' | 'offer'
>;

/** The answer with which a waiting request continues. */
export type Answer =
  | { login: Login }
  /** The user keeps the account that is logged in. */
  | 'account'
  /** The user allows what the application asks for. */
  | 'consent'
  /** Parameters that the user has added: the id of the organization, and the e-mail address that led to it. */
  | { organization: string; login_hint?: string }
  /** The user has returned from a redirect of an action. */
  | { returned: ReturnRequest }
  /** The application gets an error. */
  | { error: string; description: string };

/** The waiting requests in the engine. flow/ decides how they go on. */
export interface Interactions {
  /**
   * Returns the request of the path in this browser.
   * @throws AuthError 400 when it is answered, expired or does not exist.
   */
  pending(ctx: Context): Promise<PendingInteraction>;
  /**
   * Returns a request by its uid, for a path that is not its own.
   * @throws AuthError 400 when no such request waits in this browser.
   */
  find(ctx: Context, uid: string): Promise<WaitingRequest>;
  /**
   * Returns the request that has just begun to wait for a login.
   * @param location where the engine sends its browser.
   * @returns undefined when it waits for something else, or already has a login that lacks something.
   */
  findByLocation(ctx: Context, location: string): Promise<WaitingRequest | undefined>;
  /** Stores the first factor with the request until the second one is given. Only this server can write there. */
  storeFirstFactor(ctx: Context, login: Login): Promise<void>;
  /** Stores an offered or accepted link in place of a first factor; undefined removes it. */
  storeLink(ctx: Context, link: PendingLink | undefined): Promise<void>;
  /** Stores an offer, or that it was answered, in place of a first factor. */
  storeOffer(ctx: Context, offer: PendingOffer): Promise<void>;
  /** Stores JSON with the request until it ends. The browser does not see it. */
  remember(ctx: Context, data: Record<string, unknown>): Promise<void>;
  /** Stores the answer and sends the browser on. */
  answer(ctx: Context, answer: Answer): Promise<void>;
}

/** Returns the path of an interaction's pages. The engine's cookie for it is limited to this path. */
export function interactionPath(uid: string): string {
  return `/u/${uid}`;
}

/** Returns the error for a request that does not wait in this browser, or not any more. */
export function requestExpired(cause?: unknown): AuthError {
  return new AuthError(400, 'invalid_request', 'This login request has expired or was already used.', {
    extra: { reason: 'request_expired' },
    cause,
  });
}
