// With what a store is opened.
import type { KeyObject } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { SpareThreads } from '../runtime/spare-threads.ts';

export interface StoreOptions {
  /** The directory of all that the server keeps; the store's files are in `store` below it. */
  dataDir: string;
  /** What expiry goes by. */
  clock: Clock;
  /** What deletion of what has expired goes by, as far as it is to be believed (`clock` unless said otherwise). */
  wallClock?: Clock | undefined;
  /** That of the machine, where it is not the system's. */
  machineClock?: Clock | undefined;
  /** Monotonic milliseconds: how long that has been so. */
  elapsed?: (() => number) | undefined;
  log?: Pick<Logger, 'warn' | 'error'>;
  /** The key that the setting SECRETS_KEY gives; otherwise it is in a file, which is made where there is none. */
  secretsKey?: KeyObject | undefined;
  random?: Random;
  /** A PostgreSQL database that the store is in, in place of the embedded one. */
  databaseUrl?: string | undefined;
  /** It is being filled from elsewhere; one that is half filled is not opened otherwise. */
  isFilling?: boolean;
  /** Whoever reads what is in it finds nothing in a new one: where there is none, none is made, and that is said. */
  mustBeThere?: boolean;
  /** A database of more bytes is read through for damage while it serves, not before (64 MiB unless said otherwise). */
  checkBytes?: number;
  /** How long a search in the embedded store may take, milliseconds (5 s unless said otherwise). */
  searchMs?: number | undefined;
  /** Where the thread comes from that commits; its own unless said otherwise. */
  spareThreads?: SpareThreads | undefined;
}
