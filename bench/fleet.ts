// What a fleet needs, by what one of each journey takes and how often each is made.

/** What one of a journey takes: microseconds of processors, transactions, rows written, bytes of the write-ahead log. */
export interface Taken {
  server: number;
  database: number;
  /** One for each statement outside of a transaction, those that read included. */
  commits: number;
  writes: number;
  wal: number;
}

interface Measured {
  taken: Record<string, Taken>;
  /** Bytes on disk that one leaves until it expires, by journey and table. */
  grown: Record<string, ReadonlyMap<string, number>>;
  /** Bytes of a user, by table. */
  perUser: ReadonlyMap<string, number>;
}

const number = (name: string, otherwise: number) => Number(process.env[name] ?? otherwise);
const USERS = number('USERS', 1e8);
const LOGINS = number('LOGINS', 1e4);
/** How busy processors may be at the peak. */
const BUSY = 0.6;
/** Of the peak, the mean of a day. */
const MEAN = number('MEAN', 0.3);
/** Days that a session with its refresh token, and an event of the log, are kept. */
const SESSION_DAYS = number('SESSION_DAYS', 30);
const LOG_DAYS = number('LOG_DAYS', 30);

/** A second, at the peak. */
const RATES: Record<string, number> = {
  'login with a refresh token': LOGINS,
  refresh: number('REFRESHES', LOGINS * 3),
  client_credentials: number('TOKENS', LOGINS / 5),
  userinfo: number('PROFILES', LOGINS),
};

/** What one large database gives: to be set to what yours does. */
const DATABASE = {
  processors: number('DATABASE_PROCESSORS', 64),
  'transactions a second, most of one statement that reads': number('DATABASE_TRANSACTIONS', 300_000),
  'rows written a second, as fast as autovacuum can follow': number('DATABASE_ROWS', 200_000),
  'MB a second of write-ahead log': number('DATABASE_WAL', 300),
  'TB on disk': number('DATABASE_DISK', 8),
};

const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, one) => total + one, 0);
const rounded = (value: number) => Number(value.toPrecision(3));

/** Prints what was measured, and what of it comes. */
export function fleet({ taken, grown, perUser }: Measured): void {
  console.table(
    Object.entries(taken).map(([name, one]) => ({
      name,
      'server µs': Math.round(one.server),
      'a core and second': Math.round(1e6 / one.server),
      'database µs': Math.round(one.database),
      transactions: rounded(one.commits),
      'rows written': rounded(one.writes),
      'WAL bytes': Math.round(one.wal),
      'bytes left': Math.round(sum((grown[name] ?? new Map()).values())),
    })),
  );
  for (const [name, tables] of Object.entries(grown)) {
    const some = [...tables].filter(([, bytes]) => bytes >= 20);
    if (some.length > 0) console.log(`${name} leaves, by table:`, Object.fromEntries(some.map(rounding)));
  }
  console.log(
    'a user, by table:',
    Object.fromEntries([...perUser].map(rounding)),
    Math.round(sum(perUser.values())),
  );
  const total = (what: keyof Taken) =>
    sum(Object.entries(RATES).map(([name, rate]) => rate * (taken[name]?.[what] ?? 0)));
  const left = grown['login with a refresh token'] ?? new Map<string, number>();
  const ofLog = left.get('logs') ?? 0;
  const perDay = LOGINS * MEAN * 86_400;
  const users = USERS * sum(perUser.values());
  const sessions = perDay * SESSION_DAYS * (sum(left.values()) - ofLog);
  const log = perDay * LOG_DAYS * ofLog;
  const needs: Record<keyof typeof DATABASE, number> = {
    processors: total('database') / 1e6 / BUSY,
    'transactions a second, most of one statement that reads': total('commits'),
    'rows written a second, as fast as autovacuum can follow': total('writes'),
    'MB a second of write-ahead log': total('wal') / 1e6,
    'TB on disk': (users + sessions + log) / 1e12,
  };
  console.log(`\n${USERS} users, a second at the peak:`, RATES);
  console.log(`processors for Gatehouse: ${Math.ceil(total('server') / 1e6 / BUSY)}, ${BUSY * 100} % busy`);
  console.log(
    `on disk: users ${rounded(users / 1e12)} TB, sessions and refresh tokens ${rounded(sessions / 1e12)} TB, log ${rounded(log / 1e12)} TB`,
  );
  const rows = (Object.keys(needs) as (keyof typeof DATABASE)[])
    .map((what) => ({
      what,
      needed: rounded(needs[what]),
      'one database': DATABASE[what],
      databases: rounded(needs[what] / DATABASE[what]),
    }))
    .sort((a, b) => b.databases - a.databases);
  console.table(rows);
  console.log(
    `breaks first: ${rows[0]?.what}; ${Math.ceil(rows[0]?.databases ?? 1)} databases, or shards of one`,
  );
}

const rounding = ([name, value]: [string, number]): [string, number] => [name, Math.round(value)];
