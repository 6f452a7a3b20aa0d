// A change of the e-mail address: allowed by a link sent to the old address, if that is verified, and proved by a
// link sent to the new one. Nothing changes before both were used.
import type { Messages } from '../../delivery/messages.ts';
import { admissionOf, isCurrent } from '../../engine/admission.ts';
import type { Sessions } from '../../engine/sessions.ts';
import type { Languages } from '../../http/languages.ts';
import type { Challenges, VerifiedChallenge } from '../../protection/challenges.ts';
import { normalizeEmail } from '../../records/email.ts';
import { UniqueKeyError } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { ACCOUNT } from './callbacks.ts';
import { editableOf } from './editable.ts';

export interface EmailChangeDependencies {
  baseUrl: string;
  challenges: Challenges;
  config: Config;
  messages: Messages;
  sessions: Pick<Sessions, 'isOpen'>;
  users: Users;
}

/** Path that the links lead to. */
export const EMAIL_CHANGE = `${ACCOUNT}/email`;

const PURPOSE = 'account_email';
/** Lifetime of each link in seconds. */
const LINK_SECONDS = 3600;

/** What a link does: `allow` the change at the old address, or `prove` the new one. */
type Step = 'allow' | 'prove';

interface Kept {
  step: Step;
  /** The new address. */
  email: string;
  /** The address at the time of the request. The links end when it changes. */
  from?: string;
  /** Whether the old address has allowed the change. */
  isAllowed?: true;
  credentialVersion: number;
  /** The id of the session that began the change, which the links end with. Tickets of older releases have none. */
  session?: string;
}

/** A change whose link is valid. */
interface OpenChange extends Kept {
  user: User;
}

interface AskedBy {
  languages: Languages;
  ip: string;
}

/**
 * Begins a change, and mails its first link. Does not say whether another user has the new address: that is only
 * told to somebody who has proved to own it.
 * @returns which link was sent; undefined for an invalid address, or the one that the user has.
 */
export async function beginChange(
  deps: EmailChangeDependencies,
  user: User,
  typed: string,
  by: AskedBy & Pick<Required<Kept>, 'credentialVersion' | 'session'>,
): Promise<Step | undefined> {
  const email = normalizeEmail(typed);
  if (email === undefined || email === user.email) return undefined;
  const step = isOwned(user) ? 'allow' : 'prove';
  const { credentialVersion, session } = by;
  const kept = {
    step,
    email,
    credentialVersion,
    session,
    ...(user.email !== undefined && { from: user.email }),
  } as const;
  await mailLink(deps, user, kept, by);
  return step;
}

/** Returns whether the user's present address is verified, so that its owner has to allow the change. */
function isOwned({ email, email_verified }: User): boolean {
  return email !== undefined && email_verified;
}

async function mailLink(
  { baseUrl, challenges, messages, sessions }: EmailChangeDependencies,
  user: User,
  kept: Kept,
  { languages, ip }: AskedBy,
): Promise<void> {
  const isFirst = kept.step === 'allow';
  const { secret, ref, keep } = challenges.prepareTicket({
    purpose: PURPOSE,
    // One change at a time: a new one replaces the links of the last one.
    subject: user.id,
    userId: user.id,
    ...(kept.session !== undefined && { session: kept.session }),
    ttlSeconds: LINK_SECONDS,
    data: { ...kept },
  });
  const message = messages.prepare(
    isFirst ? 'email_change_allow' : 'email_change_prove',
    {
      to: isFirst && kept.from !== undefined ? kept.from : kept.email,
      address: kept.email,
      url: `${baseUrl}${EMAIL_CHANGE}?ticket=${secret}`,
      lifetimeInSeconds: LINK_SECONDS,
      languages,
      ip,
    },
    { ref, ttlSeconds: LINK_SECONDS },
  );
  await keep([message.write]);
  // A session that ended meanwhile could not revoke this ticket.
  if (kept.session !== undefined && !(await sessions.isOpen(kept.session)))
    return challenges.discard(PURPOSE, user.id);
  message.post();
}

/** Returns the change of a valid link, without using the link; undefined when the user has changed since. */
export async function openChange(
  deps: EmailChangeDependencies,
  ticket: string,
): Promise<OpenChange | undefined> {
  return validChange(deps, await deps.challenges.peekTicket<Kept>(PURPOSE, ticket));
}

async function validChange(
  deps: EmailChangeDependencies,
  verifiedChallenge: VerifiedChallenge<Kept> | undefined,
): Promise<OpenChange | undefined> {
  if (verifiedChallenge?.userId === undefined) return undefined;
  const kept = verifiedChallenge.data;
  const { credentialVersion, step, isAllowed } = kept;
  const { user, refusal } = await admissionOf(deps.users, {
    userId: verifiedChallenge.userId,
    credentialVersion,
  });
  if (user === undefined || refusal !== undefined || user.email !== kept.from) return undefined;
  // The address was verified after the request, and its owner has not allowed this change.
  if (step === 'prove' && isAllowed !== true && isOwned(user)) return undefined;
  const editable = await editableOf(deps, user.id);
  return editable?.editsEmail === true ? { ...kept, user } : undefined;
}

/** The result of a link that was used. */
type ChangeOutcome = 'expired' | 'asked' | 'taken' | { changed: User; email: string };

/** Uses a link. Of several concurrent calls one succeeds. */
export async function useChange(
  deps: EmailChangeDependencies,
  ticket: string,
  by: AskedBy,
): Promise<ChangeOutcome> {
  const open = await validChange(deps, await deps.challenges.spendTicket<Kept>(PURPOSE, ticket));
  if (open === undefined) return 'expired';
  const { user, step, ...kept } = open;
  if (step === 'allow') {
    await mailLink(deps, user, { ...kept, step: 'prove', isAllowed: true }, by);
    return 'asked';
  }
  // A password set from here on ends the change, because the account may have been recovered from an attacker.
  const { credentialVersion, from } = kept;
  if (!(await isCurrent(deps.users, { userId: user.id, credentialVersion }))) return 'expired';
  const isAsItWas = (current: User) =>
    current.email === from && current.last_password_reset === user.last_password_reset;
  const change = { email: kept.email, email_verified: true };
  try {
    const after = await deps.users.update(user.id, change, undefined, isAsItWas);
    return after === undefined ? 'expired' : { changed: user, email: kept.email };
  } catch (thrown) {
    if (thrown instanceof UniqueKeyError) return 'taken';
    throw thrown;
  }
}
