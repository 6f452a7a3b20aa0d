// Creates the Koa application. Koa checks every object body with `instanceof Response`; the first such check makes
// Node.js load its fetch client, which takes 8 MB and 60 ms. JSON bodies are therefore kept away from that check.
import Koa, { type Context } from 'koa';
import type { Logger } from 'pino';

/** The Content-Type that Koa sets for JSON. */
const JSON_TYPE = 'application/json; charset=utf-8';

/** Creates a Koa application whose JSON bodies look as Koa sends them but do not load the fetch client. */
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
      // Set first: otherwise Koa would look up the content type of a text, and then that of JSON.
      if (!/\bjson\b/i.test(this.type)) this.set('Content-Type', JSON_TYPE);
      // An empty text makes Koa set the status and dispose of a stream set before. The length is only known at the
      // end.
      set.call(this, '');
      this.remove('Content-Length');
      this._body = body;
    },
  });
  // The outermost middleware, so that the others may still change the body.
  app.use(async (ctx, next) => {
    await next();
    if (isData(ctx.body)) ctx.body = JSON.stringify(ctx.body);
  });
  return app;
}

/** Reports whether a body is an array or a plain object. */
function isData(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  if (Array.isArray(body)) return true;
  const prototype = Object.getPrototypeOf(body) as unknown;
  return prototype === Object.prototype || prototype === null;
}
