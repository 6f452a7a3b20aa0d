// The browsers and addresses that users have logged in with: known ones, which the risk policy asks for, and those
// that skip the second factor for thirty days because the user asked for it.
import type { Context } from 'koa';
import { browserOf, nameBrowser } from '../../http/server/browser-cookie.ts';
import type { BrowserRecord } from '../../records/users/authenticators.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Login } from '../../users/login.ts';

const REMEMBERED_SECONDS = 30 * 86_400;
const KNOWN_SECONDS = 90 * 86_400;
/** How many browsers and addresses of a user are kept. Those that were seen last stay. */
const MAX_BROWSERS = 50;

/** A user and the version of their credential: a new password makes all their browsers unknown. */
type KnownUser = Pick<Login, 'userId' | 'credentialVersion'>;

export interface KnownBrowsers {
  // docs/understand/decisions/second-factors.md#a-browser-is-remembered-for-thirty-days-for-one-user
  /** Whether the user asked to skip the second factor in this browser, at most thirty days ago. */
  isRemembered(ctx: Context, user: KnownUser): Promise<boolean>;
  /** Whether the user has logged in with this browser, the last time from the address of this request. */
  isKnown(ctx: Context, user: KnownUser): Promise<boolean>;
  /** Whether the user has given a second factor from this address at the token endpoint. */
  isKnownAddress(ip: string, user: KnownUser): Promise<boolean>;
  /** Records that the user has logged in with this browser and a second factor. */
  recordBrowser(ctx: Context, user: KnownUser, options: { remember: boolean }): Promise<void>;
  /** Records that the user has given a second factor from this address. */
  recordAddress(ip: string, user: KnownUser): Promise<void>;
  forgetAllOf(userId: string): Promise<void>;
}

/** The cookie is worthless without its record, so each browser can be revoked. */
export function createKnownBrowsers(deps: { store: Store; clock: Clock; random: Random }): KnownBrowsers {
  const { store, clock, random } = deps;
  const browsers = store.collection('browsers');
  const get = async (id: string, { credentialVersion }: KnownUser) => {
    const found = await browsers.get(id);
    return found?.credential_version === credentialVersion ? found : undefined;
  };
  const find = async (ctx: Context, user: KnownUser) => {
    const browser = browserOf(ctx);
    return browser === undefined ? undefined : get(idOf(browser, user.userId), user);
  };
  const put = async (id: string, user: KnownUser, members: Pick<BrowserRecord, 'ip' | 'rememberedUntil'>) => {
    await browsers.put({
      id,
      user_id: user.userId,
      credential_version: user.credentialVersion,
      ...members,
      expiresAt: epochSeconds(clock) + KNOWN_SECONDS,
    });
    const all = await browsers.findBy('user', user.userId);
    const oldest = [...all].sort((a, b) => (b.expiresAt ?? 0) - (a.expiresAt ?? 0)).slice(MAX_BROWSERS);
    await Promise.all(oldest.map((one) => browsers.delete(one.id)));
  };
  return {
    isRemembered: async (ctx, user) => ((await find(ctx, user))?.rememberedUntil ?? 0) > epochSeconds(clock),
    isKnown: async (ctx, user) => (await find(ctx, user))?.ip === ctx.ip,
    isKnownAddress: async (ip, user) => (await get(addressId(ip, user.userId), user)) !== undefined,
    recordBrowser: async (ctx, user, { remember }) => {
      const { browser } = nameBrowser(ctx, random);
      const before = await find(ctx, user);
      const rememberedUntil = remember ? epochSeconds(clock) + REMEMBERED_SECONDS : before?.rememberedUntil;
      await put(idOf(browser, user.userId), user, {
        ip: ctx.ip,
        ...(rememberedUntil === undefined ? {} : { rememberedUntil }),
      });
    },
    recordAddress: (ip, user) => put(addressId(ip, user.userId), user, { ip }),
    forgetAllOf: async (userId) => {
      await browsers.deleteBy('user', userId);
    },
  };
}

function idOf(browser: string, userId: string): string {
  return sha256(`${browser}\n${userId}`);
}

/**
 * Returns the id of the record of an address. It cannot equal that of a browser, whose cookie value contains no
 * colon.
 */
function addressId(ip: string, userId: string): string {
  return idOf(`address:${ip}`, userId);
}
