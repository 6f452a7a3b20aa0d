// Speeds up the resolution of imports between our own modules, and within some packages, which takes most of the
// time that Node.js needs for a module at a start.
import { registerHooks } from 'node:module';

/** The directory of all our code. */
const OURS = new URL('..', import.meta.url).href;

/** Packages of many files whose relative imports from ECMAScript modules are ECMAScript modules themselves. */
const ALIKE = /\/node_modules\/(?:oidc-provider|jose|zod)\//;

/**
 * Resolves relative imports of these modules without looking at the file system. Node.js would look for the file,
 * for links on the path and for the package at each of some thousand imports, which is a fifth of the processor
 * time of a start. Has to be called before modules that import others.
 */
export function resolveWithoutFileSystem() {
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL = '', conditions } = context;
      const isPath = /^\..*\.[jt]s$/.test(specifier);
      const isAlike = parentURL.startsWith(OURS) || (ALIKE.test(parentURL) && conditions.includes('import'));
      if (!isPath || !isAlike) return next(specifier, context);
      const format = specifier.endsWith('.ts') ? 'module-typescript' : 'module';
      return { url: new URL(specifier, parentURL).href, format, shortCircuit: true };
    },
  });
}
