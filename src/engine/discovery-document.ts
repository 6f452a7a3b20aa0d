// The discovery document (OpenID Connect Discovery 1.0 §4, RFC 8414 §3), made once for each revision of the configuration.
import type { Context } from 'koa';
import type { Config } from '../tenant/config.ts';

/** Answers with the document. @param make makes it and sets `ctx.body`. */
export type SendDocument = (ctx: Context, make: () => Promise<void>) => Promise<void>;

/** Makes a {@link SendDocument} that answers with the same bytes until the configuration changes. */
export function cachedDocument(config: Pick<Config, 'revision'>): SendDocument {
  let cached: { revision: number; document: Buffer } | undefined;
  return async (ctx, make) => {
    // Read before the document is made, so that one made while the configuration changes is made again at the next
    // request.
    const revision = config.revision();
    if (cached?.revision !== revision) {
      await make();
      if (ctx.status !== 200) return;
      cached = { revision, document: Buffer.from(JSON.stringify(ctx.body)) };
    }
    ctx.type = 'json';
    ctx.body = cached.document;
  };
}
