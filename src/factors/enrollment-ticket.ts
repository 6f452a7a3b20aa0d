// A link by which a user enrols a second factor, on an administrator's word: it is used once, and logs in to nothing.
import type { Context } from 'koa';
import { linkExpired } from '../http/errors.ts';
import { languagesOf } from '../http/languages.ts';
import type { User } from '../users/user.ts';
import type { Factor, FactorDependencies, FactorPage, FactorPagesDependencies, PageState } from './factor.ts';
import { activeAuthenticators, enrollable } from './policy.ts';

const PURPOSE = 'mfa_enrollment';

/** Where the pages are. */
export const ENROLLMENT = '/u/mfa-enrollment';

/** For how long a ticket is good, seconds: five days. */
const TICKET_SECONDS = 432_000;

/** What an administrator asks a user to enrol. */
interface NewEnrollment {
  user: User;
  /** The name of the only factor that is offered; all that are on without one. */
  factor?: string | undefined;
  /** Whether the user may add to what they have. */
  several: boolean;
  /** Where the link is mailed to; it is not without one. */
  mailTo?: string | undefined;
  /** The language of the mail. */
  locale?: string | undefined;
}

/** Why there is no ticket. */
type EnrollmentRefusal = 'no-factor' | 'enrolled';

/** Makes a ticket, and mails its link where that is wanted. @returns its link, or why there is none. */
export async function issueEnrollment(
  deps: FactorDependencies,
  { user, factor, several, mailTo, locale }: NewEnrollment,
): Promise<{ url: string } | { refusal: EnrollmentRefusal }> {
  const offered = enrollable(deps).filter(({ name }) => factor === undefined || name === factor);
  if (offered.length === 0) return { refusal: 'no-factor' };
  if (!several && (await activeAuthenticators(deps, user)).length > 0) return { refusal: 'enrolled' };
  const { secret, ref, keep } = deps.challenges.prepareTicket({
    purpose: PURPOSE,
    subject: user.id,
    // Those that were handed out before stay good.
    askers: [deps.random(16).toString('hex')],
    userId: user.id,
    ttlSeconds: TICKET_SECONDS,
    data: {
      several,
      credentialVersion: await deps.users.credentialVersion(user.id),
      ...(factor !== undefined && { factor }),
    },
  });
  const url = `${deps.baseUrl}${ENROLLMENT}?ticket=${secret}`;
  const languages = locale === undefined ? [] : [locale];
  const notice = { user, url, languages, lifetimeInSeconds: TICKET_SECONDS };
  const carried = { ref, ttlSeconds: TICKET_SECONDS };
  const letter = mailTo && deps.messages.letter('enrollment_email', { ...notice, to: mailTo }, carried);
  await keep(letter ? [letter.write] : []);
  if (letter) letter.post();
  return { url };
}

/** Opens a page for whoever has a good link. @throws AuthError 400 for one that is used, expired or none. */
export async function openEnrollmentPage(deps: FactorPagesDependencies, ctx: Context): Promise<FactorPage> {
  const ticket = typeof ctx.query.ticket === 'string' ? ctx.query.ticket : '';
  const met = await deps.challenges.peekTicket<TicketData>(PURPOSE, ticket);
  const user = met?.userId === undefined ? undefined : await deps.users.get(met.userId);
  if (met === undefined || user === undefined || user.blocked === true) throw linkExpired();
  const { several, factor, credentialVersion, pages } = met.data;
  // One that was being made while a new password was set.
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
      permit: { several, spend },
      languages: languagesOf(ctx),
    },
    state: pages ?? {},
    enrolls: ({ name }: Factor) => factor === undefined || name === factor,
    urlOf,
    model: (step) => ({ ...commonModel(deps, ctx), action: urlOf(step) }),
    remember: (state) => deps.challenges.keepWithTicket(PURPOSE, ticket, 'pages', { ...state }),
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

/** What is the same for every ticket. */
function enrollmentPages(deps: FactorPagesDependencies, ctx: Context) {
  return {
    languages: languagesOf(ctx),
    uiLocales: undefined,
    render: (template: string, model: object, status = 200) =>
      deps.views.page(ctx, template, model, { status }),
    finish: async () => showEnrolled(deps, ctx),
  };
}

/** Says that all is done: whoever comes here has nothing more to do. */
export function showEnrolled({ views }: Pick<FactorPagesDependencies, 'views'>, ctx: Context): Promise<void> {
  return views.page(ctx, 'account/done', { done: 'mfa.enrolled' }, {});
}
