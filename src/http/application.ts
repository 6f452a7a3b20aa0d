// The Koa application. Of every body that is an object Koa asks whether it is a `Response` of fetch: at the first one
// Node.js loads its HTTP client for that, which takes 8 MB and 60 ms.
import Koa, { type Context } from 'koa';
import type { Logger } from 'pino';

/** As Koa has it. */
const JSON_TYPE = 'application/json; charset=utf-8';

/** An application that answers with data as Koa does, and does not ask that. */
export function createApplication(log: Pick<Logger, 'warn'>): Koa {
  const app = new Koa();
  app.on('error', (error) => log.warn({ err: error }, 'a response could not be sent'));
  const koa = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(app.response), 'body');
  if (koa?.set === undefined) throw new Error('Koa sets bodies in another way');
  const { set } = koa;
  Object.defineProperty(app.response, 'body', {
    ...koa,
    set(this: Context['response'] & { _body: unknown }, body: unknown) {
      if (!isData(body)) return set.call(this, body);
      // First: Koa would look up the type of a text, and then that of JSON.
      if (!/\bjson\b/i.test(this.type)) this.set('Content-Type', JSON_TYPE);
      // As of any text: the status, and the stream that was the body before. The length is known at the end.
      set.call(this, '');
      this.remove('Content-Length');
      this._body = body;
    },
  });
  // Around everything that may change it.
  app.use(async (ctx, next) => {
    await next();
    if (isData(ctx.body)) ctx.body = JSON.stringify(ctx.body);
  });
  return app;
}

/** Whether a body is an object or an array, and of no class. */
function isData(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  if (Array.isArray(body)) return true;
  const prototype = Object.getPrototypeOf(body) as unknown;
  return prototype === Object.prototype || prototype === null;
}
