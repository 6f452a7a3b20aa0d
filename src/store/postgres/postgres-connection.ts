// The settings of a connection to PostgreSQL: TLS, timeouts, query planning.
import type pg from 'pg';

/** The time limit for getting a connection, including the wait in the queue. */
const acquireMilliseconds = 5000;
const statementMilliseconds = 10_000;
/**
 * Limits for a statement, for waiting for a lock, and for an idle transaction, unless the URL sets others;
 * milliseconds.
 */
const LIMITS = {
  statement_timeout: statementMilliseconds,
  lock_timeout: 5000,
  idle_in_transaction_session_timeout: statementMilliseconds,
};
/** Connections for writes and searches, unless the URL sets another number. */
const defaultConnections = 10;
/**
 * The time beyond the statement's limit after which the connection counts as broken: a cut connection reports nothing.
 */
const answerMilliseconds = 5000;

/**
 * Fails on a standby (SQLSTATE 25006) and changes nothing. On a standby, or on a former primary turned into one, reads
 * may be stale, and the unlogged tables are missing.
 */
const NO_STANDBY = 'SELECT txid_current()';

// docs/understand/decisions/store.md#postgresqls-planner-is-told-that-every-statement-looks-up-few-rows
/**
 * Returns the statements that each connection runs first. Statements look up few rows by an index; a plan made while
 * the tables were small must not scan them after they have grown.
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

/** Returns the statements that lift all time limits of a transaction or session, including those set for its role. */
export const unlimited = (scope: 'LOCAL' | 'SESSION'): string =>
  Object.keys(LIMITS)
    .map((name) => `SET ${scope} ${name} = 0`)
    .join('; ');

/** Returns a number in the URL; the settings check has validated it. */
const numberIn = (parameters: URLSearchParams, name: string, otherwise: number) =>
  Number(parameters.get(name) ?? otherwise);

/** Returns how many connections for writes and searches the URL asks for (`?connections=`). */
export const connectionCount = ({ searchParams }: URL): number =>
  numberIn(searchParams, 'connections', defaultConnections);

/** @throws Error when a file that the URL names cannot be read. */
export function connectionSettings(url: string): pg.ClientConfig {
  const address = new URL(url);
  // With TLS required, the server's certificate and name are always verified.
  if (['require', 'verify-ca'].includes(address.searchParams.get('sslmode') ?? '')) {
    address.searchParams.set('sslmode', 'verify-full');
  }
  // The driver would take PGHOST, which may be elsewhere: the settings have let this address pass without TLS.
  const { host: named } = Object.fromEntries(address.searchParams);
  if (!named && address.hostname === '') address.searchParams.set('host', 'localhost');
  return {
    connectionString: withoutOurs(address).href,
    application_name: 'gatehouse',
    connectionTimeoutMillis: acquireMilliseconds,
    query_timeout:
      numberIn(address.searchParams, 'statement_timeout', statementMilliseconds) + answerMilliseconds,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // All values are returned as text: JSON is parsed once, by the reader of records.
    types: { getTypeParser: () => (value: unknown) => value } as pg.CustomTypesConfig,
  };
}

/**
 * Removes our own parameters. Timeouts are set after connecting (see {@link greeting}) because poolers refuse them as
 * start-up parameters.
 */
function withoutOurs(address: URL): URL {
  for (const name of [...Object.keys(LIMITS), 'connections']) address.searchParams.delete(name);
  return address;
}
