// Forms of an e-mail change: the request at the profile page, and the pages of the mailed links.

import type { Context } from 'koa';
import type { Messages } from '../../../capabilities/delivery/delivery-messages.ts';
import { DONE_PAGE, declarePage } from '../../../capabilities/pages/views.ts';
import type { Challenges, VerifiedChallenge } from '../../../capabilities/protection/challenges.ts';
import { admissionOf, isCredentialCurrent } from '../../../engine/admission/admission.ts';
import type { Sessions } from '../../../engine/session/sessions.ts';
import { AuthError, linkExpired } from '../../../http/errors.ts';
import { type Languages, languagesOf } from '../../../http/languages.ts';
import { formFields } from '../../../http/server/body.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import { normalizeEmail } from '../../../records/base/email.ts';
import { UniqueKeyError } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import { isStill } from '../../../users/still.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { accountEvents, accountLimits } from '../account-declaration.ts';
import { ACCOUNT } from './account-callbacks.ts';
import { back, formRoute, requirePage } from './account-page.ts';
import { type ProfileDependencies, showProfile } from './account-profile.ts';
import type { PageActor } from './account-session.ts';
import { editableOf } from './editable.ts';
import { notifyUser } from './notices.ts';

// A change of the e-mail address: allowed by a link sent to the old address, if that is verified, and proved by a
// link sent to the new one. Nothing changes before both were used.
// docs/understand/decisions/console-account.md#a-new-address-needs-a-link-sent-to-the-old-one-and-then-one-sent-to-the-new-one

interface EmailChangeDependencies {
  baseUrl: string;
  challenges: Challenges;
  config: Config;
  messages: Messages;
  sessions: Pick<Sessions, 'isOpen'>;
  users: Users;
}

/** Path that the links lead to. */
const EMAIL_CHANGE = `${ACCOUNT}/email`;

const PURPOSE = 'account_email';
/** Lifetime of each link in seconds. */
const LINK_SECONDS = 3600;

/** What a link does: `allow` the change at the old address, or `prove` the new one. */
type Step = 'allow' | 'prove';

interface EmailChange {
  step: Step;
  email: string;
  /** The address at the time of the request. The links end when it changes. */
  from?: string;
  /** Whether the old address has allowed the change. */
  isAllowed?: true;
  credentialVersion: number;
  // docs/understand/decisions/console-account.md#a-user-has-at-most-one-pending-change-of-address-whichever-session-requested-it
  /** The id of the session that began the change, which the links end with. */
  session: string;
}

interface OpenChange extends EmailChange {
  user: User;
}

interface RequestContext {
  languages: Languages;
  ip: string;
}

/**
 * Begins a change, and mails its first link. Does not say whether another user has the new address: that is only
 * told to somebody who has proved to own it.
 * @returns which link was sent; undefined for an invalid address, or the one that the user has.
 */
async function requestChange(
  deps: EmailChangeDependencies,
  user: User,
  typed: string,
  context: RequestContext & Pick<Required<EmailChange>, 'credentialVersion' | 'session'>,
): Promise<Step | undefined> {
  const email = normalizeEmail(typed);
  if (email === undefined || email === user.email) return undefined;
  const step = isOwned(user) ? 'allow' : 'prove';
  const { credentialVersion, session } = context;
  const change = {
    step,
    email,
    credentialVersion,
    session,
    ...(user.email !== undefined && { from: user.email }),
  } as const;
  await mailLink(deps, user, change, context);
  return step;
}

/** Returns whether the user's present address is verified, so that its owner has to allow the change. */
function isOwned({ email, email_verified }: User): boolean {
  return email !== undefined && email_verified;
}

async function mailLink(
  { baseUrl, challenges, messages, sessions }: EmailChangeDependencies,
  user: User,
  change: EmailChange,
  { languages, ip }: RequestContext,
): Promise<void> {
  const isFirst = change.step === 'allow';
  const { secret, ref, save } = challenges.prepareTicket({
    purpose: PURPOSE,
    // One change at a time: a new one replaces the links of the last one.
    subject: user.id,
    userId: user.id,
    session: change.session,
    ttlSeconds: LINK_SECONDS,
    data: { ...change },
  });
  const message = messages.prepare(
    isFirst ? 'email_change_allow' : 'email_change_prove',
    {
      to: isFirst && change.from !== undefined ? change.from : change.email,
      user,
      address: change.email,
      url: `${baseUrl}${EMAIL_CHANGE}?ticket=${secret}`,
      lifetimeInSeconds: LINK_SECONDS,
      languages,
      ip,
    },
    { ref, ttlSeconds: LINK_SECONDS },
  );
  await save([message.write]);
  // A session that ended meanwhile could not revoke this ticket.
  if (!(await sessions.isOpen(change.session))) return challenges.discard(PURPOSE, user.id);
  message.post();
}

/** Returns the change of a valid link, without using the link; undefined when the user has changed since. */
async function openChange(deps: EmailChangeDependencies, ticket: string): Promise<OpenChange | undefined> {
  return validChange(deps, await deps.challenges.peekTicket<EmailChange>(PURPOSE, ticket));
}

async function validChange(
  deps: EmailChangeDependencies,
  verifiedChallenge: VerifiedChallenge<EmailChange> | undefined,
): Promise<OpenChange | undefined> {
  if (verifiedChallenge?.userId === undefined) return undefined;
  const change = verifiedChallenge.data;
  const { credentialVersion, step, isAllowed } = change;
  const { user, refusal } = await admissionOf(deps.users, {
    userId: verifiedChallenge.userId,
    credentialVersion,
  });
  if (user === undefined || refusal !== undefined || user.email !== change.from) return undefined;
  // The address was verified after the request, and its owner has not allowed this change.
  if (step === 'prove' && isAllowed !== true && isOwned(user)) return undefined;
  const editable = await editableOf(deps, user.id);
  return editable?.editsEmail === true ? { ...change, user } : undefined;
}

type ChangeOutcome = 'expired' | 'asked' | 'taken' | { changed: User; email: string };

/** Uses a link. Of several concurrent calls one succeeds. */
async function useChange(
  deps: EmailChangeDependencies,
  ticket: string,
  context: RequestContext,
): Promise<ChangeOutcome> {
  const open = await validChange(deps, await deps.challenges.spendTicket<EmailChange>(PURPOSE, ticket));
  if (open === undefined) return 'expired';
  const { user, step, ...stored } = open;
  if (step === 'allow') {
    await mailLink(deps, user, { ...stored, step: 'prove', isAllowed: true }, context);
    return 'asked';
  }
  // A password set from here on ends the change, because the account may have been recovered from an attacker.
  const { credentialVersion, from } = stored;
  if (!(await isCredentialCurrent(deps.users, { userId: user.id, credentialVersion }))) return 'expired';
  const isUnchanged = (current: User) => current.email === from && isStill(user)(current);
  const change = { email: stored.email, email_verified: true };
  try {
    const after = await deps.users.update(user.id, change, undefined, isUnchanged);
    return after === undefined ? 'expired' : { changed: user, email: stored.email };
  } catch (thrown) {
    if (thrown instanceof UniqueKeyError) return 'taken';
    throw thrown;
  }
}

export interface EmailPageDependencies extends ProfileDependencies, EmailChangeDependencies {
  sessions: ProfileDependencies['sessions'];
}

/** The routes of an e-mail change. GET and HEAD change nothing, because mail scanners fetch links. */
export const emailRoutes: RouteDeclarations<EmailPageDependencies> = {
  [`POST ${ACCOUNT}/profile/email`]: formRoute('', { act: 'email' }, requestEmailChange),
  [`GET|HEAD ${EMAIL_CHANGE}` as const]: { ...PAGE, handle: showLink },
  [`POST ${EMAIL_CHANGE}`]: { ...PAGE, handle: useLink },
};

async function requestEmailChange(
  deps: EmailPageDependencies,
  ctx: Context,
  actor: PageActor,
): Promise<void> {
  const { user, login } = actor;
  if ((await editableOf(deps, user.id))?.editsEmail !== true) return back(ctx, '');
  const { email } = formFields(ctx, 'email');
  if (!(await deps.rateLimits.spend(accountLimits.accountMail, user.id)))
    throw new AuthError(429, 'too_many_requests', 'Too many messages for this user. Try again later.');
  const { credentialVersion, id: session } = login;
  const by = { languages: languagesOf(ctx), ip: ctx.ip, credentialVersion, session };
  const step = await requestChange(deps, user, email, by);
  if (step === undefined) {
    const faults = { email: 'signup.email' };
    return showProfile(deps, ctx, actor, { values: { email }, faults, alert: 'own.profile.failed' });
  }
  back(ctx, '', step === 'allow' ? 'emailSent' : 'emailNext');
}

interface OwnEmailModel {
  action: string;
  csrf: string;
  ticket: string;
  step: Step;
  /** The new address. */
  email: string;
  /** The address before. */
  from: string | undefined;
}

export const OWN_EMAIL_PAGE = declarePage<OwnEmailModel>('own/email');

async function showLink(deps: EmailPageDependencies, ctx: Context): Promise<void> {
  requirePage(deps);
  const ticket = typeof ctx.query.ticket === 'string' ? ctx.query.ticket : '';
  const open = await openChange(deps, ticket);
  if (open === undefined) throw linkExpired();
  const { step, email, from } = open;
  await deps.views.page(ctx, OWN_EMAIL_PAGE, {
    action: EMAIL_CHANGE,
    csrf: deps.csrf.token(ctx),
    ticket,
    step,
    email,
    from,
  });
}

async function useLink(deps: EmailPageDependencies, ctx: Context): Promise<void> {
  requirePage(deps);
  deps.csrf.verify(ctx);
  const { ticket } = formFields(ctx, 'ticket');
  const outcome = await useChange(deps, ticket, { languages: languagesOf(ctx), ip: ctx.ip });
  if (outcome === 'expired') throw linkExpired();
  if (outcome === 'asked') return deps.views.page(ctx, DONE_PAGE, { done: 'own.email.asked' });
  if (outcome === 'taken')
    throw new AuthError(409, 'invalid_request', 'Another account has this e-mail address.');
  const { changed: user, email } = outcome;
  deps.events.record({ type: accountEvents.sce, user_id: user.id, user_name: email, ip: ctx.ip });
  await notifyUser(deps, ctx, user, 'email');
  await deps.views.page(ctx, DONE_PAGE, { done: 'own.email.changed' });
}
