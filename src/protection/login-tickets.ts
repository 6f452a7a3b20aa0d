// Login tickets: the user has proved who they are before the authorization request is made (cross-origin
// login, a link in a mail), and the request carries the ticket. It is good in the browser that got it alone:
// a ticket planted in somebody else's browser would log them in to the planter's account.
import type { Context } from 'koa';
import type { Random } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Login } from '../users/login.ts';
import type { Challenges } from './challenges.ts';

/** `None`: the cross-origin login of an application sets it from the application's own site. */
const COOKIE = '__Host-gatehouse_ticket';
const BROWSER = /^[\w-]{43}$/;
const PURPOSE = 'login_ticket';

/** From the ticket's making to the request that carries it; the browser is on its way already. */
const LIFETIME_SECONDS = 120;

export interface LoginTickets {
  /** Makes a ticket for a login, good in this browser and for this application. */
  issue(ctx: Context, login: Login, clientId: string): Promise<string>;
  /** Uses a ticket up. @returns the login; undefined when it is not this browser's and application's. */
  redeem(ctx: Context, ticket: string, clientId: string): Promise<Login | undefined>;
}

/** Login tickets over one-time challenges. */
export function createLoginTickets(challenges: Challenges, random: Random): LoginTickets {
  return {
    issue: async (ctx, login, clientId) => {
      const browser = random(32).toString('base64url');
      ctx.cookies.set(COOKIE, browser, {
        httpOnly: true,
        secure: true,
        sameSite: 'none',
        path: '/',
        maxAge: LIFETIME_SECONDS * 1000,
      });
      const { secret } = await challenges.issueTicket({
        purpose: PURPOSE,
        subject: browser,
        userId: login.userId,
        ttlSeconds: LIFETIME_SECONDS,
        data: { clientId, browser: sha256(browser), login },
      });
      return secret;
    },
    redeem: async (ctx, ticket, clientId) => {
      const browser = ctx.cookies.get(COOKIE);
      if (browser === undefined || !BROWSER.test(browser)) return undefined;
      const waiting = await challenges.peekTicket(PURPOSE, ticket);
      if (waiting?.data.clientId !== clientId || waiting.data.browser !== sha256(browser)) return undefined;
      ctx.cookies.set(COOKIE, null, { httpOnly: true, secure: true, sameSite: 'none', path: '/' });
      const met = await challenges.spendTicket(PURPOSE, ticket);
      return met?.data.login as Login | undefined;
    },
  };
}
