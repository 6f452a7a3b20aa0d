// Where the store is, and what its secrets are sealed with.
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import { isLoopback } from '../http/loopback.ts';
import { settingsGroup } from '../runtime/settings-group.ts';
import { isGuessable, parseKey } from './sealing/key.ts';

/** A key of 32 bytes. Its fault does not quote the value. */
const secretsKey = z.string().transform((text, context) => {
  const key = parseKey(text);
  if (key !== undefined) return key;
  context.addIssue({
    code: 'custom',
    message: 'must be 32 random bytes, in base64 or in hexadecimal digits',
  });
  return z.NEVER;
});

export interface StoreSettings {
  dataDir: string;
  /** The key that seals the secrets in the store; undefined for the key file in the data directory. */
  secretsKey?: KeyObject | undefined;
  /** The key that sealed them before: for `gatehouse keys reseal`. */
  secretsKeyBefore?: KeyObject | undefined;
  /** Address of the PostgreSQL database that holds the store; undefined for the embedded store. */
  databaseUrl?: string | undefined;
}

export const storeSettings = settingsGroup({
  variables: {
    DATA_DIR: z
      .string()
      .min(1)
      .default('./data')
      .meta({ description: 'directory of the embedded store, the keys and the local TLS files' }),
    SECRETS_KEY: secretsKey.optional().meta({
      isSecret: true,
      description:
        'the key that encrypts secrets in the store: 32 random bytes in base64 or hex (`openssl rand -base64 32`)',
      fallback: 'a key file, `$DATA_DIR/keys/secrets.key`',
    }),
    SECRETS_KEY_BEFORE: secretsKey.optional().meta({
      isSecret: true,
      description: 'the previous key, while you change the key; see [secrets.md](../do/secrets.md)',
    }),
  },
  faults: ({ SECRETS_KEY }, { NODE_ENV }: { NODE_ENV: string }) =>
    NODE_ENV === 'production' && SECRETS_KEY !== undefined && isGuessable(SECRETS_KEY)
      ? ['SECRETS_KEY: must be random, as `openssl rand -base64 32` makes it']
      : [],
  settings: (own): Omit<StoreSettings, 'databaseUrl'> => ({
    dataDir: own.DATA_DIR,
    secretsKey: own.SECRETS_KEY,
    secretsKeyBefore: own.SECRETS_KEY_BEFORE,
  }),
});

export const databaseSettings = settingsGroup({
  variables: {
    DATABASE_URL: z.string().optional().meta({
      isSecret: true,
      description:
        'stores everything in PostgreSQL, for any number of processes: `postgres://user:password@host/database?sslmode=verify-full`; see [postgresql.md](../do/postgresql.md)',
      fallback: 'the embedded store',
    }),
  },
  faults: ({ DATABASE_URL }, { NODE_ENV }: { NODE_ENV: string }) => {
    const fault = DATABASE_URL && databaseFault(DATABASE_URL, NODE_ENV === 'production');
    return fault ? [`DATABASE_URL: ${fault}`] : [];
  },
  settings: (own): Pick<StoreSettings, 'databaseUrl'> => ({ databaseUrl: own.DATABASE_URL }),
});

/**
 * Returns the fault of a database address, without quoting it, because it may hold a password; undefined where it has
 * none.
 */
function databaseFault(text: string, production: boolean): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length < 2) {
    return 'must be postgres://user:password@host:port/database';
  }
  const names = [...url.searchParams.keys()];
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  // The driver takes the last value, the checks below see the first.
  if (repeated !== undefined) return `has the parameter ${repeated} more than once`;
  const mode = url.searchParams.get('sslmode');
  const modes = ['disable', 'require', 'verify-ca', 'verify-full'];
  if (mode !== null && !modes.includes(mode)) return `sslmode must be one of ${modes.join(', ')}`;
  if (production && mode === null && !isDatabaseNear(url)) {
    return 'needs sslmode=verify-full in production; sslmode=disable says that the network between is to be trusted';
  }
  return databaseNumbersFault(url.searchParams);
}

/**
 * Reports whether the way to the database stays on this machine: a socket file, or a loopback address. The driver takes
 * the `host` of the query before that of the address.
 */
export function isDatabaseNear(url: URL): boolean {
  const { host: named } = Object.fromEntries(url.searchParams);
  const host = named || url.hostname;
  return host === '' || /^(?:\/|%2f)/i.test(host) || isLoopback(host);
}

/**
 * The numeric parameters of a database address, with their least and greatest values: milliseconds, and connections of
 * each process.
 */
const DATABASE_NUMBERS = {
  statement_timeout: [1, 600_000],
  lock_timeout: [1, 600_000],
  idle_in_transaction_session_timeout: [1, 600_000],
  connections: [2, 200],
} as const;

function databaseNumbersFault(parameters: URLSearchParams): string | undefined {
  for (const [name, [min, max]] of Object.entries(DATABASE_NUMBERS)) {
    const value = parameters.get(name);
    if (value === null) continue;
    const isRight = /^\d{1,7}$/.test(value) && Number(value) >= min && Number(value) <= max;
    if (!isRight) return `${name} must be a number from ${min} to ${max}`;
  }
  return undefined;
}
