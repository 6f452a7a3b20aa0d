// The documents, at /docs: the static pages that `npm run site` has made. For this machine only, as the other pages for
// development.

import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import { httpLimits } from '../../http/limits.ts';
import type { RouteDeclarations } from '../../http/server/router.ts';

/** Where the documents begin. */
export const DOCUMENTS_PATH = '/docs';

/** The same place in the repository and in the package. */
const SITE = fileURLToPath(new URL('../../../dist/site', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
};

/** The pages have nothing inline, and load nothing from elsewhere. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const page = { limit: httpLimits.other, cors: 'none', errors: 'page' } as const;

export const documentRoutes: RouteDeclarations<unknown> = {
  [`GET|HEAD ${DOCUMENTS_PATH}` as const]: {
    ...page,
    handle: (_, ctx) => ctx.redirect(`${DOCUMENTS_PATH}/index.html`),
  },
  [`GET|HEAD ${DOCUMENTS_PATH}/:one` as const]: { ...page, handle: sendDocument },
  [`GET|HEAD ${DOCUMENTS_PATH}/:one/:two` as const]: { ...page, handle: sendDocument },
  [`GET|HEAD ${DOCUMENTS_PATH}/:one/:two/:three` as const]: { ...page, handle: sendDocument },
};

/** Sends a file of the site. The path is only compared with those of the files that are there, and never opened. */
async function sendDocument(_: unknown, ctx: Context): Promise<void> {
  const files = await filesOf(SITE);
  if (files.size === 0)
    throw new AuthError(404, 'not_found', 'The documents are not built: run "npm run site" in the checkout.');
  const file = files.get(ctx.path.slice(DOCUMENTS_PATH.length + 1));
  if (file === undefined) throw new AuthError(404, 'not_found', 'There is nothing here.');
  ctx.set('Content-Security-Policy', POLICY);
  ctx.set('Cache-Control', 'no-cache');
  ctx.type = TYPES[extname(file)] ?? 'application/octet-stream';
  ctx.body = await readFile(file);
}

/** Returns the files of a directory, by their paths in URLs. Read for each request: whoever writes documents sees them at once. */
async function filesOf(directory: string): Promise<Map<string, string>> {
  const all = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  return new Map(
    all
      .filter((one) => one.isFile() && TYPES[extname(one.name)] !== undefined)
      .map((one) => join(one.parentPath, one.name))
      .map((file) => [relative(directory, file).split(sep).join('/'), file]),
  );
}
