// Waiting authorization requests in the engine: finds that of a browser, stores data with it, and resumes it.
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors, type InteractionResults } from 'oidc-provider';
import { AuthError } from '../../http/errors.ts';
import type { Correlation } from '../../runtime/requester.ts';
import { hashSecret } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Login } from '../../users/login.ts';
import { isUnattended } from '../../users/user-acts.ts';
import type { Users } from '../../users/users.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import { readExtensions } from '../base/request-extensions.ts';
import { isOidcScope } from '../base/requested-audience.ts';
import { loginAnswer } from '../login/browser-login.ts';
import { firstFactorOf } from '../login/first-factor.ts';
import { missingConsent, resourceScopes } from '../login/missing-consent.ts';
import { LACKS_USER } from '../login/policy.ts';
import { waitingActionsOf } from '../login/waiting-actions.ts';
import { connectionOf, presenceOf } from '../session/user-session.ts';
import { OIDC_CONSENT_KEY, rememberConsent } from '../token/grants.ts';
import { browserSecretOf } from './interaction-browser.ts';
import {
  type Answer,
  type Interactions,
  type PendingInteraction,
  type PendingLink,
  type PendingOffer,
  requestExpired,
} from './pending-interaction.ts';

/** The path where the engine sends the browser of a waiting request. @see interactionPath */
const WAITING_PATH = /^\/u\/([\w-]+)$/;

type Interaction = InstanceType<Provider['Interaction']>;

/** The data stored with a waiting request: the answers so far, and our own. */
interface InteractionData extends InteractionResults {
  firstFactor?: Login;
  link?: PendingLink | undefined;
  offer?: PendingOffer;
  remembered?: Record<string, unknown>;
}

const isOfBrowser = (ctx: Context, interaction: Interaction) =>
  browserSecretOf(ctx, interaction) !== undefined;

/** Turns the engine's error for a missing request into ours. @throws AuthError 400 */
function rethrowNotFound(thrown: unknown): never {
  throw thrown instanceof errors.SessionNotFound ? requestExpired(thrown) : thrown;
}

interface InteractionsDependencies {
  store: Store;
  users: Users;
  secondFactor: Pick<SecondFactor, 'enrolledFactors'>;
  /**
   * Records which login a request belongs to, for the log: all interactions of one login share a `cid`, while each
   * has its own `uid`.
   */
  correlation: Pick<Correlation, 'setId'>;
}

/** Makes the interactions of one provider. */
export function interactions(provider: Provider, deps: InteractionsDependencies): Interactions {
  const load = async (ctx: Context): Promise<Interaction> => {
    const interaction = await provider.interactionDetails(ctx.req, ctx.res).catch(rethrowNotFound);
    // The engine relies on its cookie alone, which other hosts can set: our cookie and the path have to match, too.
    if (!isOfBrowser(ctx, interaction) || interaction.uid !== ctx.params.uid) throw requestExpired();
    deps.correlation.setId(interaction.cid);
    return interaction;
  };
  return {
    pending: async (ctx) => {
      const interaction = await load(ctx);
      return {
        ...describe(interaction),
        connection: await sessionConnection(provider, interaction),
        invitedEmail: await invitedEmail(deps.store, interaction),
        firstFactor: await firstFactorOf(provider, deps, interaction, ctx.ip),
      };
    },
    find: async (ctx, uid) => {
      const interaction = await provider.Interaction.find(uid);
      if (interaction === undefined || !isOfBrowser(ctx, interaction)) throw requestExpired();
      deps.correlation.setId(interaction.cid);
      return describe(interaction);
    },
    findByLocation: async (ctx, location) => {
      const uid = WAITING_PATH.exec(location)?.[1];
      const interaction = uid === undefined ? undefined : await provider.Interaction.find(uid);
      if (interaction === undefined) return undefined;
      const described = describe(interaction);
      if (described.prompt !== 'login' || described.loginTicket !== undefined) return undefined;
      if (described.transferredLogin !== undefined) return undefined;
      if ((await firstFactorOf(provider, deps, interaction, ctx.ip)) !== undefined) return undefined;
      return described;
    },
    storeFirstFactor: async (ctx, firstFactor) => {
      const interaction = await load(ctx);
      await storeData(interaction, { firstFactor, link: dataOf(interaction).link });
    },
    storeLink: async (ctx, link) => {
      const interaction = await load(ctx);
      await storeData(interaction, { ...earlierAnswers(interaction), link });
    },
    storeOffer: async (ctx, offer) => {
      const interaction = await load(ctx);
      await storeData(interaction, { ...earlierAnswers(interaction), offer });
    },
    remember: async (ctx, remembered) => {
      const interaction = await load(ctx);
      await storeData(interaction, { ...(interaction.lastSubmission as object | undefined), remembered });
    },
    answer: async (ctx, answer) => {
      const interaction = await load(ctx);
      if (answer === 'consent') await storeConsent(provider, deps.store, interaction);
      const before = earlierAnswers(interaction);
      if (typeof answer === 'object' && 'organization' in answer) Object.assign(interaction.params, answer);
      const result = resultOf(answer);
      const continued = { ...before, ...actionsOf(interaction, answer), ...result };
      Object.assign(interaction, { result: 'error' in result ? result : continued });
      await interaction.persist();
      ctx.redirect(interaction.returnTo);
    },
  };
}

/** Returns the state of the actions of a request, for the actions that continue. */
function actionsOf({ prompt }: Interaction, answer: Answer): InteractionResults {
  const actions = waitingActionsOf(prompt);
  if (actions === undefined) return {};
  const returned = typeof answer === 'object' && 'returned' in answer ? answer.returned : undefined;
  // A passkey counts as two factors, but is none of the second factors that an action names, and its login has no
  // `acr`.
  const login = typeof answer === 'object' && 'login' in answer ? answer.login : undefined;
  const isGiven = login?.acr !== undefined && login.amr.includes('mfa');
  return { actions: { ...actions, returned, isGiven } };
}

/** Returns an answer as the engine expects it. */
function resultOf(answer: Answer): InteractionResults {
  if (answer === 'account') return { select_account: {} };
  if (answer === 'consent') return { consent: {} };
  if ('organization' in answer || 'returned' in answer) return {};
  if ('login' in answer) return loginAnswer(answer.login);
  return { error: answer.error, error_description: answer.description };
}

/** Stores the user's consent. @throws AuthError 400 when nobody is logged in, or nobody was at the login. */
async function storeConsent(provider: Provider, store: Store, interaction: Interaction): Promise<void> {
  const { userId, clientId, missing, params } = describe(interaction);
  const session = await openSession(provider, interaction);
  if (userId === undefined || session === undefined || isUnattended({ presence: presenceOf(session) }))
    throw new AuthError(400, 'invalid_request', 'Nobody is logged in.');
  const requestedScopes = (params.scope ?? '').split(' ').filter(isOidcScope);
  await rememberConsent(store, userId, clientId, {
    [OIDC_CONSENT_KEY]: [...missing.oidcScopes, ...requestedScopes],
    ...resourceScopes(interaction),
  });
}

/** Returns the connection of the session that a request waits in. */
async function sessionConnection(provider: Provider, interaction: Interaction): Promise<string | undefined> {
  return connectionOf((await openSession(provider, interaction)) ?? {});
}

/** Returns the session that a request waits in; undefined when it has ended, or is another user's by now. */
async function openSession(provider: Provider, { session }: Interaction): Promise<object | undefined> {
  if (session?.uid === undefined) return undefined;
  const open = await provider.Session.findByUid(session.uid);
  return open?.accountId === session.accountId ? open : undefined;
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
  const { link, offer, remembered = {} } = dataOf(interaction);
  return {
    uid: interaction.uid,
    prompt: interaction.prompt.name,
    clientId: String(params.client_id),
    params: link?.isAccepted === true ? { ...params, ...linkParameters(link) } : params,
    link,
    offer,
    upstream: readExtensions(params).upstream,
    loginTicket: readExtensions(params).loginTicket,
    // Not again where it was not enough.
    transferredLogin: interaction.prompt.reasons.includes(LACKS_USER)
      ? undefined
      : readExtensions(params).handed,
    userId: interaction.session?.accountId,
    missing: missingConsent(interaction),
    factors: waitingActionsOf(interaction.prompt)?.factors,
    primary: waitingActionsOf(interaction.prompt)?.primary?.login,
    redirect: waitingActionsOf(interaction.prompt)?.redirect,
    remembered,
  };
}

/** Returns the parameters that change while the user logs in to the other account of a link. */
function linkParameters({ connection, email }: PendingLink): PendingInteraction['params'] {
  return { connection, login_hint: email, screen_hint: undefined };
}

/**
 * Returns the earlier answers, which are submitted along with the next one, without our own data, which must not
 * reach the next step.
 */
function earlierAnswers(interaction: Interaction): InteractionResults {
  const data = dataOf(interaction);
  const { firstFactor: _factor, remembered: _remembered, link: _link, offer: _offer, ...before } = data;
  return before;
}

function dataOf({ lastSubmission }: Interaction): InteractionData {
  return (lastSubmission ?? {}) as InteractionData;
}

/** Stores our own data in the interaction's `lastSubmission`, which the engine stores and does not read. */
async function storeData(interaction: Interaction, data: object): Promise<void> {
  Object.assign(interaction, { lastSubmission: data });
  await interaction.persist();
}
