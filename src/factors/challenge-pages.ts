// The pages on which a user gives a second factor outside of a login, because an action asks for one, as before a
// new password. They open only in the browser that was sent there, which has the secret in a cookie.
import type { Context } from 'koa';
import { requestExpired } from '../engine/pending-interaction.ts';
import type { FactorChallenge } from '../engine/second-factor.ts';
import type { AwayUsers } from '../flow/away.ts';
import { browserCookie } from '../http/browser-cookie.ts';
import { languagesOf } from '../http/languages.ts';
import type { FactorDependencies, FactorPage, FactorPagesDependencies, PageState } from './factor.ts';

export interface ChallengePagesDependencies extends FactorPagesDependencies {
  away: Pick<AwayUsers, 'bring'>;
}

/** Where the pages are. */
export const CHALLENGE = '/u/mfa-challenge';

const PURPOSE = 'mfa_challenge';
/** As long as a request waits, seconds. */
const TTL = 3600;

/** The ticket that the pages are opened with. */
const TICKET = browserCookie('__Host-gatehouse_mfa', { sameSite: 'lax', ttlSeconds: TTL });

/** What is kept with it. */
interface Kept extends Pick<FactorChallenge, 'factors' | 'back'> {
  clientId: string;
  credentialVersion: number;
  pages?: PageState;
}

/** @see SecondFactor.challenge */
export async function beginChallenge(
  { challenges, users }: FactorDependencies,
  ctx: Context,
  { user, clientId = '', factors, back }: FactorChallenge,
): Promise<string> {
  const credentialVersion = await users.credentialVersion(user.id);
  const kept: Kept = { factors, back, clientId, credentialVersion };
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    subject: back.uid,
    userId: user.id,
    ttlSeconds: TTL,
    data: { ...kept },
  });
  TICKET.give(ctx, secret);
  return CHALLENGE;
}

/** Opens a page for whom {@link beginChallenge} has sent here. @throws AuthError 400 for anybody else. */
export async function openChallengePage(deps: ChallengePagesDependencies, ctx: Context): Promise<FactorPage> {
  const { challenges, users, views, csrf, config } = deps;
  const ticket = TICKET.secret(ctx);
  const met = ticket === undefined ? undefined : await challenges.peekTicket<Kept>(PURPOSE, ticket);
  const user = met?.userId === undefined ? undefined : await users.get(met.userId);
  if (ticket === undefined || met === undefined || user === undefined) throw requestExpired();
  const { factors, back, clientId, credentialVersion, pages } = met.data;
  if ((await users.credentialVersion(user.id)) !== credentialVersion) throw requestExpired();
  const urlOf = (step?: string) => (step === undefined ? CHALLENGE : `${CHALLENGE}/${step}`);
  const client = { name: config.settings().tenant.friendly_name };
  return {
    claimant: { user, clientId, ip: ctx.ip, credentialVersion },
    state: pages ?? {},
    // Nothing can be enrolled here: a factor that is enrolled just now proves nothing about the user.
    asks: factors.types,
    isChosen: factors.isChosen === true,
    languages: languagesOf(ctx),
    uiLocales: undefined,
    urlOf,
    model: (step) => ({ action: urlOf(step), csrf: csrf.token(ctx), client }),
    render: (template, model, status = 200) => views.page(ctx, template, model, { status }),
    remember: (state) => challenges.keepWithTicket(PURPOSE, ticket, 'pages', { ...state }),
    finish: async ({ type }) => {
      if ((await challenges.spendTicket(PURPOSE, ticket)) === undefined) throw requestExpired();
      TICKET.forget(ctx);
      ctx.redirect(await deps.away.bring(ctx, { ...back, userId: user.id }, { factor: type }));
    },
  };
}
