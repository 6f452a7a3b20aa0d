// Gives the engine the parameters that our endpoints have read from a request's body. The engine would read the
// body again, and as a form only.
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context } from 'koa';

/** The engine's request class. */
export interface RequestClass {
  prototype: object;
}

const parsedBody = Symbol('given parameters');
const body = Symbol('body');

interface ParsedBodyContext {
  state: { [parsedBody]?: ParsedUrlQuery };
}

/**
 * Gives the engine these parameters in place of those of the body.
 * @param fields in the form of a parsed form: strings, and lists of strings.
 */
export function setParsedBody(ctx: Context, fields: ParsedUrlQuery): void {
  // Like the result of a form parser: without a prototype, and a copy that the engine may change.
  (ctx as ParsedBodyContext).state[parsedBody] = Object.assign(Object.create(null), fields);
  // Without a content type the engine does not try to read the body.
  ctx.req.headers['content-type'] = '';
}

/** Makes the engine read the parameters that it was given. @param model its request class. */
export function useParsedBody({ prototype }: RequestClass): void {
  Object.defineProperty(prototype, 'body', {
    get(this: { [body]?: unknown }) {
      return this[body];
    },
    set(this: { ctx: ParsedBodyContext; [body]?: unknown }, read: unknown) {
      this[body] = this.ctx.state[parsedBody] ?? read;
    },
  });
}
