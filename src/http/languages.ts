// In which languages somebody wants to be written to.
import type { Context } from 'koa';

/**
 * What an application's request says of its user's languages: SDKs have a header of their own for it, because
 * the browser's is not theirs to set. @returns them as `Accept-Language` has them (RFC 9110 §12.5.4).
 */
export function languagesOf(ctx: Context): string {
  return ctx.get('X-Request-Language') || ctx.get('Accept-Language');
}
