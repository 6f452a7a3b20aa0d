// Computes what a fleet needs, from the cost of one journey of each kind and how often each is made.

/** The cost of one journey: processor time in microseconds, transactions, rows written, bytes of write-ahead log. */
export interface Taken {
  server: number;
  database: number;
  /** Every statement outside of a transaction counts as one, also if it only reads. */
  commits: number;
  writes: number;
  wal: number;
}

interface Measured {
  taken: Record<string, Taken>;
  /** Bytes on disk that one journey leaves until they expire, by journey and table. */
  grown: Record<string, ReadonlyMap<string, number>>;
  /** Bytes of a user, by table. */
  perUser: ReadonlyMap<string, number>;
}

const number = (name: string, otherwise: number) => Number(process.env[name] ?? otherwise);
const USERS = number('USERS', 1e8);
const LOGINS = number('LOGINS', 1e4);
/** The utilization of processors at the peak. */
const BUSY = 0.6;
/** The mean of a day as a share of the peak. */
const MEAN = number('MEAN', 0.3);
/** For how many days a session with its refresh token, and a log event, are kept. */
const SESSION_DAYS = number('SESSION_DAYS', 30);
const LOG_DAYS = number('LOG_DAYS', 30);

/** Journeys per second at the peak. */
const RATES: Record<string, number> = {
  'login with a refresh token': LOGINS,
  refresh: number('REFRESHES', LOGINS * 3),
  client_credentials: number('TOKENS', LOGINS / 5),
  userinfo: number('PROFILES', LOGINS),
};

/** The capacity of one large database; set it to that of yours. */
const DATABASE = {
  processors: number('DATABASE_PROCESSORS', 64),
  'transactions a second, most of one statement that reads': number('DATABASE_TRANSACTIONS', 300_000),
  'rows written a second, as fast as autovacuum can follow': number('DATABASE_ROWS', 200_000),
  'MB a second of write-ahead log': number('DATABASE_WAL', 300),
  'TB on disk': number('DATABASE_DISK', 8),
};

const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, one) => total + one, 0);
const rounded = (value: number) => Number(value.toPrecision(3));

/** Prints the measurements and the needs computed from them. */
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
