// The authorization requests that wait for their user: which one a browser has, what is kept of it, and how it goes on.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors, type InteractionResults } from 'oidc-provider';
import type { FactorsAsked } from '../actions/factors-asked.ts';
import { AuthError } from '../http/errors.ts';
import { hashSecret } from '../runtime/secrets.ts';
import type { Trail } from '../runtime/trail.ts';
import type { Store } from '../store/contract.ts';
import type { Login } from '../users/login.ts';
import type { Users } from '../users/users.ts';
import { connectionOf, loginAnswer } from './browser-login.ts';
import { firstFactorOf } from './first-factor.ts';
import { OIDC, rememberConsent } from './grants.ts';
import { browserSecretOf } from './interaction-browser.ts';
import { isOidc, type MissingConsent, missingConsent, resourceScopes } from './missing-consent.ts';
import { readExtensions } from './request-extensions.ts';
import { type Return, waitingActionsOf } from './waiting-actions.ts';

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
  /** The login that goes on in place of the one that was, by an action. */
  primary: Login | undefined;
  /** Where an action sends the user, before the request goes on. */
  redirect: string | undefined;
  /** What {@link Interactions.remember} kept. */
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
  /** Of a passkey: whether it is one for this device, to who has come by one of another. */
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

/** The requests that wait, as the engine has them. What becomes of them is decided in flow/. */
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

/** @see interactionPath */
const WAITING_PATH = /^\/u\/([\w-]+)$/;

/** There is no such request of this browser, or no more. */
export function requestExpired(cause?: unknown): AuthError {
  return new AuthError(400, 'invalid_request', 'This login request has expired or was already used.', {
    extra: { reason: 'request_expired' },
    cause,
  });
}

type Interaction = InstanceType<Provider['Interaction']>;

/** What is beside a request: what the engine was answered before, and what we keep. */
interface Kept extends InteractionResults {
  firstFactor?: Login;
  link?: PendingLink | undefined;
  offer?: PendingOffer;
  remembered?: Record<string, unknown>;
}

const isOfBrowser = (ctx: Context, interaction: Interaction) =>
  browserSecretOf(ctx, interaction) !== undefined;

/** @throws AuthError 400 where the engine has found no request. */
function noneFound(thrown: unknown): never {
  throw thrown instanceof errors.SessionNotFound ? requestExpired(thrown) : thrown;
}

interface InteractionsDependencies {
  store: Store;
  users: Users;
  /** Told of the login that waits: each of its requests has another `uid`, and the same `cid`. */
  trail: Pick<Trail, 'follow'>;
}

/** The interactions of one provider. */
export function interactions(provider: Provider, deps: InteractionsDependencies): Interactions {
  const load = async (ctx: Context): Promise<Interaction> => {
    const interaction = await provider.interactionDetails(ctx.req, ctx.res).catch(noneFound);
    // The engine goes by a cookie that others could have set, whatever the path says.
    if (!isOfBrowser(ctx, interaction) || interaction.uid !== ctx.params.uid) throw requestExpired();
    deps.trail.follow(interaction.cid);
    return interaction;
  };
  return {
    pending: async (ctx) => {
      const interaction = await load(ctx);
      return {
        ...describe(interaction),
        connection: await sessionConnection(provider, interaction),
        invitedEmail: await invitedEmail(deps.store, interaction),
        firstFactor: await firstFactorOf(provider, deps.users, interaction, ctx.ip),
      };
    },
    find: async (ctx, uid) => {
      const interaction = await provider.Interaction.find(uid);
      if (interaction === undefined || !isOfBrowser(ctx, interaction)) throw requestExpired();
      deps.trail.follow(interaction.cid);
      return describe(interaction);
    },
    begun: async (ctx, location) => {
      const uid = WAITING_PATH.exec(location)?.[1];
      const interaction = uid === undefined ? undefined : await provider.Interaction.find(uid);
      if (interaction === undefined) return undefined;
      const described = describe(interaction);
      if (described.prompt !== 'login' || described.loginTicket !== undefined) return undefined;
      if ((await firstFactorOf(provider, deps.users, interaction, ctx.ip)) !== undefined) return undefined;
      return described;
    },
    keepFirstFactor: async (ctx, firstFactor) => {
      const interaction = await load(ctx);
      await keep(interaction, { firstFactor, link: keptOf(interaction).link });
    },
    keepLink: async (ctx, link) => {
      const interaction = await load(ctx);
      await keep(interaction, { ...answeredBefore(interaction), link });
    },
    keepOffer: async (ctx, offer) => {
      const interaction = await load(ctx);
      await keep(interaction, { ...answeredBefore(interaction), offer });
    },
    remember: async (ctx, remembered) => {
      const interaction = await load(ctx);
      await keep(interaction, { ...(interaction.lastSubmission as object | undefined), remembered });
    },
    answer: async (ctx, answer) => {
      const interaction = await load(ctx);
      if (answer === 'consent') await allow(deps.store, interaction);
      const before = answeredBefore(interaction);
      if (typeof answer === 'object' && 'organization' in answer) Object.assign(interaction.params, answer);
      const result = resultOf(answer);
      const goesOn = { ...before, ...actionsOf(interaction, answer), ...result };
      Object.assign(interaction, { result: 'error' in result ? result : goesOn });
      await interaction.persist();
      ctx.redirect(interaction.returnTo);
    },
  };
}

/** How far the actions of a request have come, for those that go on. */
function actionsOf({ prompt }: Interaction, answer: Answer): InteractionResults {
  const actions = waitingActionsOf(prompt);
  if (actions === undefined) return {};
  const returned = typeof answer === 'object' && 'returned' in answer ? answer.returned : undefined;
  // A login that counts for two factors by itself (a passkey) is none of those that were named, and states no context.
  const login = typeof answer === 'object' && 'login' in answer ? answer.login : undefined;
  const isGiven = login?.acr !== undefined && login.amr.includes('mfa');
  return { actions: { ...actions, returned, isGiven } };
}

/** An answer in the engine's words. */
function resultOf(answer: Answer): InteractionResults {
  if (answer === 'account') return { select_account: {} };
  if (answer === 'consent') return { consent: {} };
  if ('organization' in answer || 'returned' in answer) return {};
  if ('login' in answer) return loginAnswer(answer.login);
  return { error: answer.error, error_description: answer.description };
}

/** Remembers what the user allows the application. @throws AuthError 400 when nobody is logged in. */
async function allow(store: Store, interaction: Interaction): Promise<void> {
  const { userId, clientId, missing, params } = describe(interaction);
  if (userId === undefined) throw new AuthError(400, 'invalid_request', 'Nobody is logged in.');
  const asked = (params.scope ?? '').split(' ').filter(isOidc);
  await rememberConsent(store, userId, clientId, {
    [OIDC]: [...missing.oidcScopes, ...asked],
    ...resourceScopes(interaction),
  });
}

/** The connection of the session that a request waits in. */
async function sessionConnection(provider: Provider, { session }: Interaction): Promise<string | undefined> {
  if (session?.uid === undefined) return undefined;
  const open = await provider.Session.findByUid(session.uid);
  return open?.accountId === session.accountId ? connectionOf(open ?? {}) : undefined;
}

async function invitedEmail(store: Store, { params }: Interaction): Promise<string | undefined> {
  const { invitation } = params as { invitation?: string };
  if (invitation === undefined) return undefined;
  const [found] = await store.collection('invitations').findBy('ticket', hashSecret(invitation));
  return found?.invitee.email;
}

function describe(
  interaction: Interaction,
): Omit<PendingInteraction, 'firstFactor' | 'invitedEmail' | 'connection'> {
  const params = interaction.params as Record<string, string | undefined>;
  const { link, offer, remembered = {} } = keptOf(interaction);
  return {
    uid: interaction.uid,
    prompt: interaction.prompt.name,
    clientId: String(params.client_id),
    params: link?.isAccepted === true ? { ...params, ...paramsOf(link) } : params,
    link,
    offer,
    upstream: readExtensions(params).upstream,
    loginTicket: readExtensions(params).loginTicket,
    userId: interaction.session?.accountId,
    missing: missingConsent(interaction),
    factors: waitingActionsOf(interaction.prompt)?.factors,
    primary: waitingActionsOf(interaction.prompt)?.primary?.login,
    redirect: waitingActionsOf(interaction.prompt)?.redirect,
    remembered,
  };
}

/** What a request asks for while the account is proved that another is to be linked to. */
function paramsOf({ connection, email }: PendingLink): PendingInteraction['params'] {
  return { connection, login_hint: email, screen_hint: undefined };
}

/** What goes along with an answer; what we kept beside it does not, or the next step would find it. */
function answeredBefore(interaction: Interaction): InteractionResults {
  const kept = keptOf(interaction);
  const { firstFactor: _factor, remembered: _remembered, link: _link, offer: _offer, ...before } = kept;
  return before;
}

function keptOf({ lastSubmission }: Interaction): Kept {
  return (lastSubmission ?? {}) as Kept;
}

/** Keeps our own data in the interaction, where the engine has room for the last submission. */
async function keep(interaction: Interaction, data: object): Promise<void> {
  Object.assign(interaction, { lastSubmission: data });
  await interaction.persist();
}
