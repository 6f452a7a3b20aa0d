// Enrolment by a link that an administrator sends. The link is used once, and does not log in.

import type { Context } from 'koa';
import { DONE_PAGE } from '../../capabilities/pages/views.ts';
import { linkExpired } from '../../http/errors.ts';
import { languagesOf } from '../../http/languages.ts';
import type { User } from '../../users/user.ts';
import type { Factor, FactorDependencies, FactorPage, FactorPagesDependencies, PageState } from './factor.ts';
import { activeAuthenticators, enrollable } from './policy.ts';

const PURPOSE = 'mfa_enrollment';

export const ENROLLMENT = '/u/mfa-enrollment';

// docs/understand/decisions/second-factors.md#an-enrolment-ticket-is-valid-for-five-days-and-for-one-enrolment
/** Lifetime of a ticket in seconds: five days. */
const TICKET_SECONDS = 432_000;

/** What an administrator asks a user to enrol. */
interface EnrollmentTicketRequest {
  user: User;
  /** The name of the only factor that is offered; undefined for all that are on. */
  factor?: string | undefined;
  /** Whether the user may add to existing factors. */
  allowsSeveral: boolean;
  /** The address that the link is mailed to; undefined to send no mail. */
  mailTo?: string | undefined;
  /** The language of the mail. */
  locale?: string | undefined;
}

type EnrollmentRefusal = 'no-factor' | 'enrolled';

/** Issues a ticket, and mails its link if `mailTo` is set. @returns its link, or why there is none. */
export async function issueEnrollment(
  deps: FactorDependencies,
  { user, factor, allowsSeveral, mailTo, locale }: EnrollmentTicketRequest,
): Promise<{ url: string } | { refusal: EnrollmentRefusal }> {
  const offered = enrollable(deps, user).filter(({ name }) => factor === undefined || name === factor);
  if (offered.length === 0) return { refusal: 'no-factor' };
  if (!allowsSeveral && (await activeAuthenticators(deps, user)).length > 0) return { refusal: 'enrolled' };
  const { secret, ref, save } = deps.challenges.prepareTicket({
    purpose: PURPOSE,
    subject: user.id,
    // A random asker: earlier tickets of the user stay valid.
    askers: [deps.random(16).toString('hex')],
    userId: user.id,
    ttlSeconds: TICKET_SECONDS,
    data: {
      several: allowsSeveral,
      credentialVersion: await deps.users.credentialVersion(user.id),
      ...(factor !== undefined && { factor }),
    },
  });
  const url = `${deps.baseUrl}${ENROLLMENT}?ticket=${secret}`;
  const notice = { user, url, locale, lifetimeInSeconds: TICKET_SECONDS };
  const expiry = { ref, ttlSeconds: TICKET_SECONDS };
  const message = mailTo && deps.messages.prepare('enrollment_email', { ...notice, to: mailTo }, expiry);
  await save(message ? [message.write] : []);
  if (message) message.post();
  return { url };
}

/** @throws AuthError 400 when the link is used, expired or unknown. */
export async function openEnrollmentPage(deps: FactorPagesDependencies, ctx: Context): Promise<FactorPage> {
  const ticket = typeof ctx.query.ticket === 'string' ? ctx.query.ticket : '';
  const verifiedChallenge = await deps.challenges.peekTicket<TicketData>(PURPOSE, ticket);
  const user =
    verifiedChallenge?.userId === undefined ? undefined : await deps.users.get(verifiedChallenge.userId);
  if (verifiedChallenge === undefined || user === undefined || user.blocked === true) throw linkExpired();
  const { several: allowsSeveral, factor, credentialVersion, pages } = verifiedChallenge.data;
  // The ticket may have been issued while a new password was being set.
  if ((await deps.users.credentialVersion(user.id)) !== credentialVersion) throw linkExpired();
  const spend = async () => (await deps.challenges.spendTicket(PURPOSE, ticket)) !== undefined;
  const urlOf = (step?: string) => `${ENROLLMENT}${step === undefined ? '' : `/${step}`}?ticket=${ticket}`;
  return {
    ...enrollmentPages(deps, ctx),
    claimant: {
      user,
      clientId: '',
      ip: ctx.ip,
      credentialVersion,
      presence: 'present',
      permit: { allowsSeveral, spend },
      languages: languagesOf(ctx),
    },
    state: pages ?? {},
    mayEnroll: ({ name }: Factor) => factor === undefined || name === factor,
    urlOf,
    model: (step) => ({ ...commonModel(deps, ctx), action: urlOf(step) }),
    saveState: (state) => deps.challenges.storeWithTicket(PURPOSE, ticket, 'pages', { ...state }),
  };
}

interface TicketData {
  several: boolean;
  factor?: string;
  credentialVersion: number;
  pages?: PageState;
}

function commonModel({ csrf, config }: FactorPagesDependencies, ctx: Context) {
  return { csrf: csrf.token(ctx), client: { name: config.settings().tenant.friendly_name } };
}

function enrollmentPages(
  deps: FactorPagesDependencies,
  ctx: Context,
): Pick<FactorPage, 'languages' | 'uiLocales' | 'render' | 'finish'> {
  return {
    languages: languagesOf(ctx),
    uiLocales: undefined,
    render: (page, model, status = 200) => deps.views.page(ctx, page, model, { status }),
    finish: async () => showEnrolled(deps, ctx),
  };
}

export function showEnrolled({ views }: Pick<FactorPagesDependencies, 'views'>, ctx: Context): Promise<void> {
  return views.page(ctx, DONE_PAGE, { done: 'mfa.enrolled' });
}
