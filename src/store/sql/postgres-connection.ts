// What a connection to PostgreSQL is made with: TLS, time-outs, how its statements are planned.
import type pg from 'pg';

/** For a connection, or a place in the queue for one. */
const acquireMilliseconds = 5000;
const statementMilliseconds = 10_000;
const lockMilliseconds = 5000;
/** Where the way to the database is cut, nobody says so. */
const answerMilliseconds = statementMilliseconds + 5000;

/**
 * What each connection says first. Statements look few rows up by an index; a plan for the tables as they were, small or
 * empty, must not read them through when they have grown.
 */
export function greeting({ searchParams }: URL): string {
  const limits = {
    statement_timeout: statementMilliseconds,
    lock_timeout: lockMilliseconds,
    idle_in_transaction_session_timeout: statementMilliseconds,
  };
  const given = Object.entries(limits).map(([name, value]) => [
    name,
    /^\d+$/.test(searchParams.get(name) ?? '') ? searchParams.get(name) : value,
  ]);
  const planning = [
    ['enable_hashjoin', 'off'],
    ['enable_mergejoin', 'off'],
    ['random_page_cost', 1.1],
  ];
  return [...given, ...planning].map(([name, value]) => `SET ${name} = ${value}`).join('; ');
}

/** The settings of a connection. @throws Error when a file that the address names cannot be read. */
export function connectionSettings(url: string): pg.ClientConfig {
  const address = new URL(url);
  // Whoever asks for TLS gets a server that proves its name.
  if (['require', 'verify-ca'].includes(address.searchParams.get('sslmode') ?? '')) {
    address.searchParams.set('sslmode', 'verify-full');
  }
  return {
    connectionString: withoutLimits(address).href,
    application_name: 'gatehouse',
    connectionTimeoutMillis: acquireMilliseconds,
    query_timeout: answerMilliseconds,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // All values come as texts: JSON is parsed once, by the record's own reader.
    types: { getTypeParser: () => (value: unknown) => value } as pg.CustomTypesConfig,
  };
}

/** They are said once connected (see {@link greeting}): poolers refuse them before. */
function withoutLimits(address: URL): URL {
  for (const name of ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']) {
    address.searchParams.delete(name);
  }
  return address;
}
