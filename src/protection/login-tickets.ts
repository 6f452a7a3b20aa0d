// Login tickets: the user has proved who they are before the authorization request is made (cross-origin
// login, a link in a mail), and the request carries the ticket. It is good in the browser that got it alone:
// a ticket planted in somebody else's browser would log them in to the planter's account.
import type { Context } from 'koa';
import { browserCookie, newBrowserSecret } from '../http/browser-cookie.ts';
import type { Random } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Login } from '../users/login.ts';
import type { Challenges } from './challenges.ts';

const PURPOSE = 'login_ticket';

/** Seconds from the ticket's creation to the request that carries it. */
const LIFETIME_SECONDS = 120;

/** `None`: the cross-origin login of an application sets it from the application's own site. */
const BROWSER = browserCookie('__Host-gatehouse_ticket', {
  sameSite: 'none',
  ttlSeconds: LIFETIME_SECONDS,
});

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
      const secret = newBrowserSecret(random);
      BROWSER.give(ctx, secret);
      const browser = sha256(secret);
      const { secret: ticket } = await challenges.issueTicket({
        purpose: PURPOSE,
        subject: browser,
        userId: login.userId,
        ttlSeconds: LIFETIME_SECONDS,
        data: { clientId, browser, login },
      });
      return ticket;
    },
    redeem: async (ctx, ticket, clientId) => {
      if (BROWSER.secret(ctx) === undefined) return undefined;
      const waiting = await challenges.peekTicket(PURPOSE, ticket);
      if (waiting?.data.clientId !== clientId) return undefined;
      if (!BROWSER.bringsHashed(ctx, String(waiting.data.browser))) return undefined;
      BROWSER.forget(ctx);
      const met = await challenges.spendTicket(PURPOSE, ticket);
      return met?.data.login as Login | undefined;
    },
  };
}
