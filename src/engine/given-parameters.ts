// Hands the engine the parameters that our endpoints have read from a request's body. The engine would read the
// body again, as a form only.
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context } from 'koa';

/** The engine's class of requests, as far as it is adapted here. */
export interface BodyOwner {
  prototype: object;
}

const given = Symbol('given parameters');
const body = Symbol('body');

interface Given {
  state: { [given]?: ParsedUrlQuery };
}

/**
 * Gives the engine these parameters for those of the body.
 * @param fields as a form has them: nothing but texts, and lists of several.
 */
export function giveParameters(ctx: Context, fields: ParsedUrlQuery): void {
  // Made as a form parser does: without a prototype, and a copy that the engine may change.
  (ctx as Given).state[given] = Object.assign(Object.create(null), fields);
  // Without a content type the engine does not try to read the body.
  ctx.req.headers['content-type'] = '';
}

/** Has the engine take what it was given. @param model its class of requests. */
export function takeGivenParameters({ prototype }: BodyOwner): void {
  Object.defineProperty(prototype, 'body', {
    get(this: { [body]?: unknown }) {
      return this[body];
    },
    set(this: { ctx: Given; [body]?: unknown }, read: unknown) {
      this[body] = this.ctx.state[given] ?? read;
    },
  });
}
