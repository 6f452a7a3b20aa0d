// The commands that move a store: into a file and back, and from one engine to the other.
import type { KeyObject } from 'node:crypto';
import type { Logger } from 'pino';
import { systemClock } from '../runtime/clock.ts';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { fetchBackup, writeBackup } from '../server/administration/backup.ts';
import { readSettings, type Settings } from '../settings/index.ts';
import type { Store } from '../store/contract.ts';
import { naming } from '../store/files.ts';
import { openStore } from '../store/open.ts';
import { checkOf, keyFile, readKey } from '../store/sealing/key.ts';
import { archiveParts, checkArchive } from '../store/transfer/archive.ts';
import { fillStore, type Progress } from '../store/transfer/fill.ts';
import { transferredParts } from '../store/transfer/parts.ts';
import { writeWhole } from '../store/write-whole.ts';

const keyName = ({ dataDir, secretsKey }: Pick<Settings, 'dataDir' | 'secretsKey'>) =>
  secretsKey === undefined ? keyFile(dataDir) : 'SECRETS_KEY';

/**
 * Writes a backup to a file that must not exist, and verifies the whole file before it is renamed to its final name.
 */
export async function backup(file: string, host: CommandProcess, log: Logger): Promise<void> {
  const settings = readSettings(host.env);
  const records = await writeWhole(file, { replaces: false }, async (unfinished, to) => {
    await naming(unfinished, writeTo(settings, to, log));
    return (await checkArchive(unfinished)).records;
  });
  print(host, `${file}: ${records} records`);
  print(
    host,
    `its secrets are sealed with ${keyName(settings)}, which is not in it: keep that elsewhere, a backup without it is not whole`,
  );
}

/**
 * Writes the backup: through the running server where it has the embedded store open, otherwise from the store itself.
 * A database is read while servers use it.
 */
async function writeTo(settings: Settings, to: NodeJS.WritableStream, log: Logger): Promise<void> {
  const sink = to as Parameters<typeof fetchBackup>[1];
  if (settings.databaseUrl === undefined && (await fetchBackup(settings.dataDir, sink))) return;
  await withStore(settings, { log }, (store) => writeBackup(store, settings, sink));
}

interface OpenOptions {
  log: Logger;
  clock?: () => number;
  isFilling?: boolean;
}

async function withStore<T>(
  { dataDir, databaseUrl, secretsKey }: Pick<Settings, 'dataDir' | 'databaseUrl' | 'secretsKey'>,
  { log, clock = systemClock, isFilling = false }: OpenOptions,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const store = await openStore({
    dataDir,
    databaseUrl,
    secretsKey,
    clock,
    log,
    isFilling,
    mustBeThere: !isFilling,
  });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/**
 * Fills the store of the settings, which must be empty, from a backup. Nothing is written before the whole file was
 * verified.
 */
export async function restore(file: string, host: CommandProcess, log: Logger): Promise<void> {
  const settings = readSettings(host.env);
  const { header } = await checkArchive(file);
  const key = await archiveKey(settings, file, header.key);
  // The clock stands at the time of the backup, so that nothing expires before the counts are compared.
  const opening = { log, clock: () => header.at, isFilling: true };
  const records = await withStore(settings, opening, (store) => fillStore(store, archiveParts(file, key)));
  const where = settings.databaseUrl === undefined ? settings.dataDir : 'DATABASE_URL';
  print(host, `${where}: ${records} records, as they were at ${new Date(header.at).toISOString()}`);
}

async function archiveKey(settings: Settings, file: string, check: string): Promise<KeyObject> {
  const key = settings.secretsKey ?? (await readKey(keyFile(settings.dataDir)));
  if (key !== undefined && checkOf(key) === check) return key;
  throw new Error(
    `the secrets in ${file} are sealed with another key than ${keyName(settings)}: set SECRETS_KEY to that of the store that it is of, or put its keys/secrets.key to ${keyFile(settings.dataDir)}`,
  );
}

/**
 * Copies a store to another, which must be empty or hold an earlier copy that was cut short. Each is a data directory
 * or the address of a database.
 */
export async function move(
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
function placeOf(
  place: string,
  { dataDir, secretsKey }: Settings,
): Pick<Settings, 'dataDir' | 'databaseUrl' | 'secretsKey'> {
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
