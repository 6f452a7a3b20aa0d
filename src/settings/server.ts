// The settings of the server itself: where it listens, its public origin, and its processes.
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { isLoopback } from '../http/loopback.ts';
import { origin, port, settingsGroup } from '../runtime/settings-group.ts';

export interface AddressSettings {
  /** 0: any free port. The base URL then has the port in use. */
  port: number;
  host: string;
  /** The most connections of this process. */
  maxConnections: number;
  /** The public origin, without a trailing slash. */
  baseUrl: string;
  /** The issuer: the public origin with a trailing slash. */
  issuer: string;
}

export const addressSettings = settingsGroup({
  variables: {
    PORT: port
      .default(3000)
      .meta({ description: 'the port that the server listens on; 0 takes a free port' }),
    HOST: z
      .string()
      .min(1)
      .default('127.0.0.1')
      .meta({ description: 'the address that the server listens on' }),
    MAX_CONNECTIONS: z
      .string()
      .regex(/^[1-9]\d{0,5}$/, 'must be a number from 1 to 999999')
      .transform(Number)
      .default(10_000)
      .meta({ description: 'the most connections of one process, see [Limits](limits.md)' }),
    BASE_URL: origin('https://login.example.com').optional().meta({
      description:
        'the public origin, such as `https://login.example.com`; the issuer is this origin plus `/`',
      fallback: '`https://localhost:$PORT`',
    }),
  },
  faults: ({ BASE_URL }, { NODE_ENV }: { NODE_ENV: string }) =>
    NODE_ENV === 'production' && BASE_URL === undefined ? ['BASE_URL: required in production'] : [],
  settings: (own): AddressSettings => ({
    port: own.PORT,
    host: own.HOST,
    maxConnections: own.MAX_CONNECTIONS,
    ...originAt(own.BASE_URL ?? new URL(`https://localhost:${own.PORT}`).origin),
  }),
});

const originAt = (baseUrl: string) => ({ baseUrl, issuer: `${baseUrl}/` });

export function withPort<S extends AddressSettings>(settings: S, chosen: number): S {
  if (settings.port !== 0 || settings.baseUrl !== 'https://localhost:0') return { ...settings, port: chosen };
  return { ...settings, port: chosen, ...originAt(`https://localhost:${chosen}`) };
}

export interface WorkerSettings {
  /** How many processes serve; undefined where this one alone does. */
  workers?: number | 'auto' | undefined;
}

export const workerSettings = settingsGroup({
  variables: {
    WORKERS: z
      .union(
        [z.literal('auto'), z.coerce.number().int().min(1).max(256)],
        'must be a number from 1 to 256, or `auto`',
      )
      .optional()
      .meta({
        description:
          'with `DATABASE_URL`: the number of processes that serve, or `auto` for one per processor; see [scaling.md](../do/scaling.md)',
        fallback: 'this process serves',
      }),
  },
  faults: (
    { WORKERS },
    { DATABASE_URL, WATCH_TENANT }: Partial<Record<'DATABASE_URL' | 'WATCH_TENANT', string | undefined>>,
  ) => {
    if (WORKERS === undefined || WORKERS === 1) return [];
    return [
      ...(DATABASE_URL === undefined
        ? ['WORKERS: the embedded store is for one process; several need DATABASE_URL']
        : []),
      ...(WATCH_TENANT === 'on' ? ['WATCH_TENANT: one process takes changes over, and not several'] : []),
    ];
  },
  settings: ({ WORKERS }): WorkerSettings => ({ workers: WORKERS === 1 ? undefined : WORKERS }),
});

/** Returns how many worker processes are to serve; undefined where the started process serves by itself. */
export function workersOf({ workers }: WorkerSettings): number | undefined {
  return workers === 'auto' ? availableParallelism() : workers;
}

export const processSettings = settingsGroup({
  variables: {
    // A misspelt `production` must not be served with the rules of development.
    NODE_ENV: z.enum(['development', 'test', 'production']).default('development').meta({
      description: '`development`, `test` or `production`; `production` refuses what is only for development',
    }),
    LOG_LEVEL: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .default('info')
      .meta({ description: '`debug` also logs each request' }),
  },
  settings: (own) => ({ production: own.NODE_ENV === 'production', logLevel: own.LOG_LEVEL }),
});

// docs/understand/decisions/operating.md#the-development-pages-are-served-to-this-machine-only
/**
 * Reports whether this is a development server for this machine only: not in production, and with a loopback public
 * origin. It enables the pages that show every code, and requests to local addresses, so a forgotten NODE_ENV alone
 * must not.
 */
export function isForThisMachine({
  production,
  baseUrl,
}: Pick<AddressSettings, 'baseUrl'> & { production: boolean }): boolean {
  return !production && isLoopback(new URL(baseUrl).hostname);
}
