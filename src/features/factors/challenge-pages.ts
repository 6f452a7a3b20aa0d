// Pages on which a user gives a second factor outside of a login, because an action asks for one, for example
// before a password change. They open only in the browser whose cookie holds the secret of the ticket.
import type { Context } from 'koa';
import type { FactorChallenge } from '../../engine/admission/second-factor.ts';
import { requestExpired } from '../../engine/authorize/waiting-requests.ts';
import { languagesOf } from '../../http/languages.ts';
import { browserCookie } from '../../http/server/browser-cookie.ts';
import type { ActionRedirects } from '../flow/action-redirects.ts';
import type { FactorDependencies, FactorPage, FactorPagesDependencies, PageState } from './factor.ts';

export interface ChallengePagesDependencies extends FactorPagesDependencies {
  actionRedirects: Pick<ActionRedirects, 'finishWithFactor'>;
}

export const CHALLENGE = '/u/mfa-challenge';

const PURPOSE = 'mfa_challenge';
/** Lifetime of a challenge in seconds, the same as that of a waiting authorization request. */
const TTL = 3600;

const TICKET_COOKIE = browserCookie('__Host-gatehouse_mfa', { sameSite: 'lax', ttlSeconds: TTL });

interface ChallengeTicketData extends Pick<FactorChallenge, 'factors' | 'back'> {
  clientId: string;
  credentialVersion: number;
  pages?: PageState;
}

/** Stores a challenge and sets its cookie (see {@link SecondFactor.challenge}). @returns the path of its page. */
export async function issueChallenge(
  { challenges, users }: FactorDependencies,
  ctx: Context,
  { user, clientId = '', factors, back }: FactorChallenge,
): Promise<string> {
  const credentialVersion = await users.credentialVersion(user.id);
  const data: ChallengeTicketData = { factors, back, clientId, credentialVersion };
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    subject: back.uid,
    userId: user.id,
    ttlSeconds: TTL,
    data: { ...data },
  });
  TICKET_COOKIE.set(ctx, secret);
  return CHALLENGE;
}

/** Opens the page of a challenge that {@link issueChallenge} stored. @throws AuthError 400 in any other browser. */
export async function openChallengePage(deps: ChallengePagesDependencies, ctx: Context): Promise<FactorPage> {
  const { challenges, users, views, csrf, config } = deps;
  const ticket = TICKET_COOKIE.secret(ctx);
  const verifiedChallenge =
    ticket === undefined ? undefined : await challenges.peekTicket<ChallengeTicketData>(PURPOSE, ticket);
  const user =
    verifiedChallenge?.userId === undefined ? undefined : await users.get(verifiedChallenge.userId);
  if (ticket === undefined || verifiedChallenge === undefined || user === undefined) throw requestExpired();
  const { factors, back, clientId, credentialVersion, pages } = verifiedChallenge.data;
  if ((await users.credentialVersion(user.id)) !== credentialVersion) throw requestExpired();
  const urlOf = (step?: string) => (step === undefined ? CHALLENGE : `${CHALLENGE}/${step}`);
  const client = { name: config.settings().tenant.friendly_name };
  return {
    claimant: { user, clientId, ip: ctx.ip, credentialVersion, presence: 'absent' },
    state: pages ?? {},
    // These pages enrol nothing: a factor enrolled now proves nothing about the user.
    accepts: factors.types,
    offersChoice: factors.isChosen === true,
    languages: languagesOf(ctx),
    uiLocales: undefined,
    urlOf,
    model: (step) => ({ action: urlOf(step), csrf: csrf.token(ctx), client }),
    render: (template, model, status = 200) => views.page(ctx, template, model, { status }),
    saveState: (state) => challenges.storeWithTicket(PURPOSE, ticket, 'pages', { ...state }),
    finish: async ({ type }) => {
      if ((await challenges.spendTicket(PURPOSE, ticket)) === undefined) throw requestExpired();
      TICKET_COOKIE.clear(ctx);
      ctx.redirect(
        await deps.actionRedirects.finishWithFactor(ctx, { ...back, userId: user.id }, { factor: type }),
      );
    },
  };
}
