// Style, script and pictures of the pages, under names that carry their content's hash.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Middleware } from 'koa';

export interface Assets {
  /** The path of an asset. @throws Error when there is none of that name. */
  path(name: string): string;
  serve: Middleware;
}

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Reads all files of a directory; they are few and small. */
export function readAssets(directory: string): Assets {
  const paths = new Map<string, string>();
  const contents = new Map<string, { body: Buffer; type: string }>();
  for (const name of readdirSync(directory)) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const body = readFileSync(join(directory, name));
    const hash = createHash('sha256').update(body).digest('hex').slice(0, 12);
    const path = `/assets/${name.replace(/(\.\w+)$/, `.${hash}$1`)}`;
    paths.set(name, path);
    contents.set(path, { body, type });
  }
  return {
    path: (name) => {
      const path = paths.get(name);
      if (path === undefined) throw new Error(`there is no asset ${name}`);
      return path;
    },
    serve: async (ctx, next) => {
      const found = contents.get(ctx.path);
      if (found === undefined || (ctx.method !== 'GET' && ctx.method !== 'HEAD')) return next();
      ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
      ctx.set('Content-Type', found.type);
      ctx.body = found.body;
    },
  };
}
