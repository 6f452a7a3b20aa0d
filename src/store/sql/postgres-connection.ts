// What a connection to PostgreSQL is made with: TLS, time-outs, how its statements are planned.
import type pg from 'pg';

/** For a connection, or a place in the queue for one. */
const acquireMilliseconds = 5000;
const statementMilliseconds = 10_000;
/** What a statement, a lock and a transaction that asks nothing may take, unless the address says otherwise. */
const LIMITS = {
  statement_timeout: statementMilliseconds,
  lock_timeout: 5000,
  idle_in_transaction_session_timeout: statementMilliseconds,
};
/** For writes and searches, unless the address says otherwise. */
const defaultConnections = 10;
/** Beyond what a statement may take: where the way to the database is cut, nobody says so. */
const answerMilliseconds = 5000;

/**
 * Fails by a standby (25006), and changes nothing. Where an address leads to one that has not taken over, or to a primary that was
 * made one, what it reads may be old, and it has none of the unlogged tables.
 */
const NO_STANDBY = 'SELECT txid_current()';

/**
 * What each connection says first. Statements look few rows up by an index; a plan for the tables as they were, small or
 * empty, must not read them through when they have grown.
 */
export function greeting({ searchParams }: URL): string {
  const given = Object.entries(LIMITS).map(([name, value]) => [name, numberIn(searchParams, name, value)]);
  const planning = [
    ['enable_hashjoin', 'off'],
    ['enable_mergejoin', 'off'],
    ['random_page_cost', 1.1],
  ];
  return [...given, ...planning]
    .map(([name, value]) => `SET ${name} = ${value}`)
    .concat(NO_STANDBY)
    .join('; ');
}

/** What lets a transaction, or a session, take the time that it needs, whatever its role is given. */
export const unlimited = (scope: 'LOCAL' | 'SESSION'): string =>
  Object.keys(LIMITS)
    .map((name) => `SET ${scope} ${name} = 0`)
    .join('; ');

/** A number of the address, which was checked with the settings. */
const numberIn = (parameters: URLSearchParams, name: string, otherwise: number) =>
  Number(parameters.get(name) ?? otherwise);

/** How many connections for writes and searches an address asks for: `?connections=`. */
export const connectionCount = ({ searchParams }: URL): number =>
  numberIn(searchParams, 'connections', defaultConnections);

/** The settings of a connection. @throws Error when a file that the address names cannot be read. */
export function connectionSettings(url: string): pg.ClientConfig {
  const address = new URL(url);
  // Whoever asks for TLS gets a server that proves its name.
  if (['require', 'verify-ca'].includes(address.searchParams.get('sslmode') ?? '')) {
    address.searchParams.set('sslmode', 'verify-full');
  }
  return {
    connectionString: withoutOurs(address).href,
    application_name: 'gatehouse',
    connectionTimeoutMillis: acquireMilliseconds,
    query_timeout:
      numberIn(address.searchParams, 'statement_timeout', statementMilliseconds) + answerMilliseconds,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // All values come as texts: JSON is parsed once, by the record's own reader.
    types: { getTypeParser: () => (value: unknown) => value } as pg.CustomTypesConfig,
  };
}

/** Time-outs are said once connected (see {@link greeting}): poolers refuse them before. The rest is for us alone. */
function withoutOurs(address: URL): URL {
  for (const name of [...Object.keys(LIMITS), 'connections']) address.searchParams.delete(name);
  return address;
}
