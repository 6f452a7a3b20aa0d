// `gatehouse migrate`: from one engine of the store to the other.
import type { Logger } from 'pino';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { readSettings, type Settings } from '../settings/index.ts';
import { fillStore, type Progress } from '../store/transfer/fill.ts';
import { transferredParts } from '../store/transfer/transfer-parts.ts';
import type { CommandDeclaration } from './command.ts';
import { keyName, type StorePlace, withStore } from './store-place.ts';

export const migrate: CommandDeclaration = {
  name: 'migrate',
  description: 'copy a store to another that is empty: a data directory or a database, either way',
  options: (command) =>
    void command
      .requiredOption('--from <place>', 'a data directory, or the address of a PostgreSQL database')
      .requiredOption('--to <place>', 'a data directory, or the address of a PostgreSQL database'),
  run: ({ host, log }, places: { from: string; to: string }) => move(places, host, log),
};

/**
 * Copies a store to another, which must be empty or hold an earlier copy that was cut short. Each is a data directory
 * or the address of a database.
 */
async function move(
  { from, to }: { from: string; to: string },
  host: CommandProcess,
  log: Logger,
): Promise<void> {
  const settings = readSettings({ ...host.env, DATABASE_URL: undefined });
  const [source, target] = [placeOf(from, settings), placeOf(to, settings)];
  if (JSON.stringify(source) === JSON.stringify(target)) throw new Error('both are the same store');
  const at = Date.now();
  const clock = () => at;
  const onProgress = progressPrinter(host);
  const records = await withStore(source, { log, clock }, (one) =>
    withStore(target, { log, clock, isFilling: true }, (other) =>
      one.withSnapshot((snapshot) => fillStore(other, transferredParts(snapshot), onProgress)),
    ),
  );
  print(host, `${records} records, counted and compared`);
  if (target.databaseUrl === undefined && target.dataDir !== settings.dataDir)
    print(host, `its secrets are sealed with ${keyName(target)}`);
}

/**
 * Returns the store of a directory or a database address. The key of a database is in the data directory of the
 * settings.
 */
function placeOf(place: string, { dataDir, secretsKey }: Settings): StorePlace {
  return /^postgres(ql)?:\/\//.test(place)
    ? { dataDir, databaseUrl: place, ...(secretsKey && { secretsKey }) }
    : { dataDir: place, ...(secretsKey && { secretsKey }) };
}

/** Returns a function that prints a line for each collection, and for each hundred thousand records of it. */
function progressPrinter(host: CommandProcess): (progress: Progress) => void {
  let last = { collection: '', hundred: 0 };
  return ({ collection, records }) => {
    const hundred = Math.floor(records / 100_000);
    if (collection === last.collection && hundred === last.hundred) return;
    last = { collection, hundred };
    print(host, `${collection} (${records} so far)`);
  };
}
