// Kinds of connections: a tenant file may declare any, and some of them are built.

const BUILT: ReadonlySet<string> = new Set(['auth0', 'email', 'sms']);

/**
 * Whether users can log in here with connections of a strategy. A tenant file that was exported elsewhere may
 * declare others: they are kept, named in a warning, and an error where they are asked for.
 */
export function isBuilt(strategy: string): boolean {
  return BUILT.has(strategy);
}
