// Login tickets: the user authenticates before the authorization request (cross-origin login, a link in a mail),
// which then carries the ticket. A ticket is bound to the browser that got it. Otherwise an attacker could send a
// victim a ticket, and the victim would be logged in to the attacker's account.
import type { Context } from 'koa';
import { browserCookie, newBrowserSecret } from '../../http/server/browser-cookie.ts';
import type { Random } from '../../runtime/secrets.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Login } from '../../users/login.ts';
import type { Challenges } from './challenges.ts';

const PURPOSE = 'login_ticket';

/** Seconds from the ticket to the authorization request. */
const LIFETIME_SECONDS = 120;

/** `None`, because a cross-origin login sets the cookie from the application's site. */
const BROWSER_COOKIE = browserCookie('__Host-gatehouse_ticket', {
  sameSite: 'none',
  ttlSeconds: LIFETIME_SECONDS,
});

export interface LoginTickets {
  issue(ctx: Context, login: Login, clientId: string): Promise<string>;
  /** @returns the login; undefined when the ticket is not bound to this browser and application. */
  redeem(ctx: Context, ticket: string, clientId: string): Promise<Login | undefined>;
}

export function createLoginTickets(challenges: Challenges, random: Random): LoginTickets {
  return {
    issue: async (ctx, login, clientId) => {
      const secret = newBrowserSecret(random);
      BROWSER_COOKIE.set(ctx, secret);
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
      if (BROWSER_COOKIE.secret(ctx) === undefined) return undefined;
      const found = await challenges.peekTicket(PURPOSE, ticket);
      if (found?.data.clientId !== clientId) return undefined;
      if (!BROWSER_COOKIE.matchesHash(ctx, String(found.data.browser))) return undefined;
      BROWSER_COOKIE.clear(ctx);
      const verifiedChallenge = await challenges.spendTicket(PURPOSE, ticket);
      return verifiedChallenge?.data.login as Login | undefined;
    },
  };
}
