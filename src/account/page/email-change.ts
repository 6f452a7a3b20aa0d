// A new e-mail address for an account: allowed by a link at the old one, where that was proved, and proved by a link at the
// new one. Nothing changes before both.
import type { Messages } from '../../delivery/messages.ts';
import { admissionOf, isCurrent } from '../../engine/admission.ts';
import type { Sessions } from '../../engine/sessions.ts';
import type { Languages } from '../../http/languages.ts';
import type { Challenges, Met } from '../../protection/challenges.ts';
import { normalizeEmail } from '../../records/email.ts';
import { UniqueKeyError } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { ACCOUNT } from './callbacks.ts';
import { homeOf } from './home.ts';

export interface EmailChangeDependencies {
  baseUrl: string;
  challenges: Challenges;
  config: Config;
  messages: Messages;
  sessions: Pick<Sessions, 'isOpen'>;
  users: Users;
}

/** Where the links lead. */
export const EMAIL_CHANGE = `${ACCOUNT}/email`;

const PURPOSE = 'account_email';
/** How long each link is good, seconds. */
const LINK_SECONDS = 3600;

/** What a link does: let the old address go, or prove the new one. */
type Step = 'allow' | 'prove';

interface Kept {
  step: Step;
  /** The new address. */
  email: string;
  /** The one that the user had when the change was asked for; a change of it ends the links. */
  from?: string;
  /** Whether the old address has allowed it. */
  isAllowed?: true;
  credentialVersion: number;
  /** The id of the session in which it was asked for, with which it ends; none of a change that an older release began. */
  session?: string;
}

/** A change that a link stands for. */
interface OpenChange extends Kept {
  user: User;
}

interface AskedBy {
  languages: Languages;
  ip: string;
}

/**
 * Begins a change, and mails its first link. Whether the new address is somebody's already is not said: that is for who
 * has proved it to be theirs.
 * @returns where the link went; undefined for what is no address, or the one that the user has.
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

/** Whether there is somebody at a user's address who has to allow that it goes. */
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
    // One change at a time: the next one ends the links of the one before.
    subject: user.id,
    userId: user.id,
    ...(kept.session !== undefined && { session: kept.session }),
    ttlSeconds: LINK_SECONDS,
    data: { ...kept },
  });
  const letter = messages.letter(
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
  await keep([letter.write]);
  // A session that ended meanwhile did not find it.
  if (kept.session !== undefined && !(await sessions.isOpen(kept.session)))
    return challenges.discard(PURPOSE, user.id);
  letter.post();
}

/** The change of a link that is good: its user is as they were when they asked. */
export async function openChange(
  deps: EmailChangeDependencies,
  ticket: string,
): Promise<OpenChange | undefined> {
  return heldBy(deps, await deps.challenges.peekTicket<Kept>(PURPOSE, ticket));
}

async function heldBy(
  deps: EmailChangeDependencies,
  met: Met<Kept> | undefined,
): Promise<OpenChange | undefined> {
  if (met?.userId === undefined) return undefined;
  const kept = met.data;
  const { credentialVersion, step, isAllowed } = kept;
  const { user, refusal } = await admissionOf(deps.users, { userId: met.userId, credentialVersion });
  if (user === undefined || refusal !== undefined || user.email !== kept.from) return undefined;
  // The owner of the address may have proved it since: they have not allowed this.
  if (step === 'prove' && isAllowed !== true && isOwned(user)) return undefined;
  const home = await homeOf(deps, user.id);
  return home?.editsEmail === true ? { ...kept, user } : undefined;
}

/** What a link has done. */
type ChangeOutcome = 'expired' | 'asked' | 'taken' | { changed: User; email: string };

/** Uses a link up: of any number of racers one goes on. */
export async function useChange(
  deps: EmailChangeDependencies,
  ticket: string,
  by: AskedBy,
): Promise<ChangeOutcome> {
  const open = await heldBy(deps, await deps.challenges.spendTicket<Kept>(PURPOSE, ticket));
  if (open === undefined) return 'expired';
  const { user, step, ...kept } = open;
  if (step === 'allow') {
    await mailLink(deps, user, { ...kept, step: 'prove', isAllowed: true }, by);
    return 'asked';
  }
  // A new password that is set from here on ends the change, too: the account may be somebody else's by then.
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
