// Browsers that a user has logged in with: known ones, for the policy that asks strangers alone, and ones that
// the user wants remembered, which are not asked for thirty days.
import { createHash } from 'node:crypto';
import type { Context } from 'koa';
import { type Clock, epochSeconds, type Random } from '../http/runtime.ts';
import type { Store } from '../store/contract.ts';

/** `None`, as the session: an application's silent login frames /authorize from its own site. */
const COOKIE = '__Host-gatehouse_browser';
const TOKEN = /^[\w-]{43}$/;
const REMEMBERED_SECONDS = 30 * 86_400;
const KNOWN_SECONDS = 90 * 86_400;

export interface KnownBrowsers {
  /** Whether the user has asked that this browser be not asked for a second factor. */
  isRemembered(ctx: Context, userId: string): Promise<boolean>;
  /** Whether the user has logged in with this browser, and last from this address. */
  isKnown(ctx: Context, userId: string): Promise<boolean>;
  /** Whether the user has given a second factor from this address, by an application's own login. */
  isKnownAddress(ip: string, userId: string): Promise<boolean>;
  /** Notes that the user has logged in here with a second factor. */
  note(ctx: Context, userId: string, options: { remember: boolean }): Promise<void>;
  /** Notes that the user has given a second factor from this address. */
  noteAddress(ip: string, userId: string): Promise<void>;
  /** Forgets all browsers and addresses of a user. */
  forgetAllOf(userId: string): Promise<void>;
}

/** The browsers in a store; a cookie alone is nothing without its record, so each can be revoked. */
export function createKnownBrowsers({
  store,
  clock,
  random,
}: {
  store: Store;
  clock: Clock;
  random: Random;
}): KnownBrowsers {
  const browsers = store.collection('browsers');
  const idOf = (token: string, userId: string) =>
    createHash('sha256').update(`${token}\n${userId}`).digest('base64url');
  // No cookie can pass for an address: one has 43 characters and no colon.
  const addressId = (ip: string, userId: string) => idOf(`address:${ip}`, userId);
  const find = async (ctx: Context, userId: string) => {
    const token = ctx.cookies.get(COOKIE);
    return token !== undefined && TOKEN.test(token) ? browsers.get(idOf(token, userId)) : undefined;
  };
  return {
    isRemembered: async (ctx, userId) => {
      const known = await find(ctx, userId);
      return known?.rememberedUntil !== undefined && known.rememberedUntil > epochSeconds(clock);
    },
    isKnown: async (ctx, userId) => (await find(ctx, userId))?.ip === ctx.ip,
    isKnownAddress: async (ip, userId) => (await browsers.get(addressId(ip, userId))) !== undefined,
    note: async (ctx, userId, { remember }) => {
      const kept = ctx.cookies.get(COOKIE);
      const token = kept !== undefined && TOKEN.test(kept) ? kept : random(32).toString('base64url');
      ctx.cookies.set(COOKIE, token, {
        httpOnly: true,
        secure: true,
        sameSite: 'none',
        path: '/',
        maxAge: KNOWN_SECONDS * 1000,
      });
      const before = await find(ctx, userId);
      const now = epochSeconds(clock);
      const rememberedUntil = remember ? now + REMEMBERED_SECONDS : before?.rememberedUntil;
      await browsers.put({
        id: idOf(token, userId),
        user_id: userId,
        ip: ctx.ip,
        ...(rememberedUntil === undefined ? {} : { rememberedUntil }),
        expiresAt: now + KNOWN_SECONDS,
      });
    },
    noteAddress: (ip, userId) =>
      browsers.put({
        id: addressId(ip, userId),
        user_id: userId,
        ip,
        expiresAt: epochSeconds(clock) + KNOWN_SECONDS,
      }),
    forgetAllOf: async (userId) => {
      await browsers.deleteBy('user', userId);
    },
  };
}
