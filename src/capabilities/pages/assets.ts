// Serves the styles, scripts and images of the pages under names with a content hash, so that browsers can cache them
// for good.
import { readdirSync, readFileSync } from 'node:fs';
import { join, parse, relative } from 'node:path';
import type { Route } from '../../http/server/router.ts';
import { sha256 } from '../../runtime/secrets.ts';

export interface Assets {
  /**
   * Returns the path under which an asset is served.
   * @param name the path of its file, relative to the directory.
   * @throws Error when there is no such file.
   */
  path(name: string): string;
  names(ending: string): string[];
  /** Returns an asset's content, to serve it under a fixed name. @throws Error when there is no such file. */
  content(name: string): Buffer;
  routes: Route[];
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * Reads the assets of a directory and those below it into memory; they are few and small.
 * @throws Error for a file of a type that is not served.
 */
export function readAssets(directory: string): Assets {
  const paths = new Map<string, string>();
  const served = new Map<string, { body: Buffer; type: string }>();
  const all = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  for (const one of all) {
    const file = join(relative(directory, one.parentPath), one.name);
    const { dir, name, ext } = parse(file);
    const type = TYPES[ext];
    if (type === undefined) throw new Error(`${join(directory, file)}: no such asset type is served`);
    const body = readFileSync(join(directory, file));
    const hash = sha256(body).slice(0, 12);
    const path = `/assets/${join(dir, `${name}.${hash}${ext}`)}`;
    paths.set(file, path);
    served.set(path, { body, type });
  }
  const path = (name: string): string => {
    const found = paths.get(name);
    if (found === undefined) throw new Error(`there is no asset ${name}`);
    return found;
  };
  return {
    path,
    names: (ending) => [...paths.keys()].filter((name) => name.endsWith(ending)),
    content: (name) => served.get(path(name))?.body ?? Buffer.alloc(0),
    routes: [...served].map(([at, { body, type }]) => ({
      methods: ['GET', 'HEAD'],
      path: at,
      limit: 'unlimited',
      cors: 'none',
      errors: 'page',
      handle: (ctx) => {
        ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
        ctx.set('Content-Type', type);
        ctx.body = body;
      },
    })),
  };
}
