// The options for opening a store.
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/secrets.ts';
import type { SpareThreads } from '../runtime/spare-threads.ts';
import type { StoreSettings } from './store-settings.ts';

/** The store's files are in `store` below the data directory. */
export interface StoreOptions extends Pick<StoreSettings, 'dataDir' | 'secretsKey' | 'databaseUrl'> {
  /** The clock that decides whether a record has expired. */
  clock: Clock;
  /** The clock that decides whether an expired record is deleted, as far as it is trusted; `clock` by default. */
  wallClock?: Clock | undefined;
  /** The clock of the machine, if not the system's. */
  machineClock?: Clock | undefined;
  /** A monotonic clock in milliseconds, by which `wallClock` is checked. */
  elapsed?: (() => number) | undefined;
  log?: Pick<Logger, 'warn' | 'error'>;
  random?: Random;
  /** True while the store is filled from another one; a store whose filling was interrupted is not opened otherwise. */
  isFilling?: boolean;
  /** Throw StoreAbsent instead of creating a store, for commands that only read. */
  mustBeThere?: boolean;
  // docs/understand/decisions/store.md#a-database-of-more-than-64-mib-is-checked-for-damage-while-the-server-runs
  /**
   * A database larger than this many bytes is checked for damage in the background, not before it is opened (default 64
   * MiB).
   */
  checkBytes?: number;
  /** The time limit of a search in the embedded store, in milliseconds (default 5 s). */
  searchMs?: number | undefined;
  /** Where to take the thread that commits from; by default a new one is started. */
  spareThreads?: SpareThreads | undefined;
}
