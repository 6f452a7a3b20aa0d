// The same browser again: a random name that it keeps in a cookie of ours. The cookie proves nothing by itself;
// whoever files something under the name decides what it is worth.
import type { Context } from 'koa';
import type { Random } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';
import { browserCookie } from './browser-cookie.ts';

/** `None`: applications call and frame us from their own sites. 90 days from its last use. */
const NAME = browserCookie('__Host-gatehouse_browser', { sameSite: 'none', ttlSeconds: 90 * 86_400 });

/**
 * The browser that sent a request, as SHA-256 of its name.
 * @returns undefined when it has no name yet.
 */
export function browserOf(ctx: Context): string | undefined {
  const name = NAME.secret(ctx);
  return name === undefined ? undefined : sha256(name);
}

/** A browser that has a name, or gets one with the answer. */
export interface NamedBrowser {
  /** SHA-256 of its name. */
  browser: string;
  /** Whether it gets its name with this very answer: it may not keep it. */
  isNewBrowser: boolean;
}

/**
 * Names the browser that sent a request. To be called only where a page of ours, or of the application, made the
 * request: any page can make the browser send one.
 */
export function markBrowser(ctx: Context, random: Random): NamedBrowser {
  const name = NAME.keep(ctx, random);
  return { browser: sha256(name), isNewBrowser: !NAME.brings(ctx, name) };
}
