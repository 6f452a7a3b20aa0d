// Takes changes of the tenant file over while a development server runs.
// docs/understand/decisions/operating.md#a-development-server-follows-the-edits-of-its-tenant-file
import { existsSync, realpathSync, watch as watchFiles } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { TenantFile } from '../records/tenant/tenant.ts';
import { type LoadedTenant, TenantFault } from '../tenant/load.ts';

/** How long nothing must happen to a file before it is read, milliseconds: an editor may write it in several parts. */
const QUIET_MS = 100;

/** How often a file is looked for that is not there, milliseconds. Editors replace a file; its folder may be gone, too. */
const MISSING_MS = 1_000;

/** How many changes the line about them names. */
const NAMED = 5;

interface Closable {
  close(): void;
}

export interface TenantWatch {
  /** Stops watching. A change that is being applied is completed. */
  close(): void;
}

interface WatchOptions {
  /** The tenant file. */
  file: string;
  /** What the server runs with, and the files that it was read from. */
  loaded: { tenant: TenantFile; files: Iterable<string> };
  /** Reads the file again. @param onFile called with each file before it is read. @throws TenantFault */
  load(onFile: (path: string) => void): Promise<LoadedTenant>;
  /** Makes the changes between two versions. @returns a line for each */
  follow(file: TenantFile, former: TenantFile): Promise<string[]>;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** Calls back for everything that happens in a folder, with the name of a file where the system says it. */
  watch?(folder: string, onEvent: (name: string | undefined) => void): Closable;
  pause?(ms: number): Promise<void>;
}

/**
 * Watches the folders of the tenant file and of the files that it names, because editors replace files. What has no faults
 * is taken over; of what has, the faults are logged.
 */
export function watchTenant({
  file,
  loaded: { tenant, files: initialFiles },
  load,
  follow,
  log,
  watch = watchFolder,
  pause = (ms) => wait(ms, undefined, { ref: false }),
}: WatchOptions): TenantWatch {
  let former = tenant;
  let files = new Set<string>();
  let folders = new Map<string, Closable>();
  let isClosed = false;
  let isDue = false;
  let isReading = false;

  const due = (): void => {
    isDue = true;
    if (isReading || isClosed) return;
    isReading = true;
    void readWhileDue();
  };

  /** Also watches a file, before it is read, so that no change after that is lost. */
  const include = (path: string): void => {
    for (const one of placesOf(path)) {
      files.add(one);
      const folder = dirname(one);
      if (folders.has(folder)) continue;
      try {
        const onEvent = (name: string | undefined) => {
          if (name === undefined || files.has(join(folder, name))) due();
        };
        folders.set(folder, watch(folder, onEvent));
      } catch (thrown) {
        // A folder that is not there is a fault of the file that names it.
        if (existsSync(folder))
          log.warn({ err: thrown }, `${folder} cannot be watched: run gatehouse apply after a change`);
      }
    }
  };

  const closeFolders = (): void => {
    for (const folder of folders.values()) folder.close();
    folders = new Map();
  };

  async function readWhileDue(): Promise<void> {
    while (isDue && !isClosed) {
      isDue = false;
      await pause(QUIET_MS);
      if (isDue || isClosed) continue;
      if (existsSync(file)) await readAgain();
      else await untilThere();
    }
    isReading = false;
  }

  /** Waits for a file that is gone. Its folder may be another one then. */
  async function untilThere(): Promise<void> {
    await pause(MISSING_MS);
    if (!existsSync(file) && !isClosed) {
      log.error(`${file} is gone; the server runs on with what it had`);
      while (!existsSync(file) && !isClosed) await pause(MISSING_MS);
    }
    closeFolders();
    isDue = true;
  }

  async function readAgain(): Promise<void> {
    const before = files;
    files = new Set();
    try {
      const next = await load(include);
      // A shell empties a file before the command that writes it has begun: gatehouse export > tenant.yaml
      if (next.isEmpty) throw new TenantFault([`it is empty: to have nothing in it, write clients: []`]);
      const changes = await follow(next.tenant, former);
      former = next.tenant;
      log.info(`${file}: ${summaryOf(changes)}`);
    } catch (thrown) {
      // What a file with faults names may be incomplete.
      for (const path of before) include(path);
      // It was replaced at this moment.
      if (!existsSync(file)) isDue = true;
      else report(thrown);
    }
  }

  function report(thrown: unknown): void {
    const faults = thrown instanceof TenantFault ? thrown.faults : [messageOf(thrown)];
    const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`;
    log.error(`${file} has ${count}; the server runs on with what it had`);
    for (const fault of faults) log.error(fault);
  }

  for (const path of initialFiles) include(path);
  return {
    close: () => {
      isClosed = true;
      closeFolders();
    },
  };
}

const messageOf = (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown));

function summaryOf(changes: readonly string[]): string {
  if (changes.length === 0) return 'no changes';
  const more = changes.length > NAMED ? [`and ${changes.length - NAMED} more`] : [];
  return [...changes.slice(0, NAMED), ...more].join('; ');
}

/** Returns where a file is: its path, and what that leads to if it is a link. */
function placesOf(path: string): string[] {
  const own = resolve(path);
  const place = (one: string) => join(realFolder(dirname(one)), basename(one));
  try {
    return [...new Set([place(own), realpathSync(own)])];
  } catch {
    return [place(own)];
  }
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return folder;
  }
}

function watchFolder(folder: string, onEvent: (name: string | undefined) => void): Closable {
  const watcher = watchFiles(folder, { persistent: false }, (_event, name) => onEvent(name ?? undefined));
  // A folder that is removed is an error on some systems: look what became of its files.
  return watcher.on('error', () => onEvent(undefined));
}
