// Hands the engine the parameters of a request that our endpoints have read: it would read a body anew, as a form.
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
  // As a parser of forms has them: an object without members that nobody has sent, and the engine's to change.
  (ctx as Given).state[given] = Object.assign(Object.create(null), fields);
  // Of a body without a type the engine reads nothing.
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
