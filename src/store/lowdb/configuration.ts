// The collections of the configuration, kept in memory. Each is a JSON file that is rewritten at each change; changes
// that arrive during a write share the next one. If a write fails, its changes are undone in memory, and the next
// change is tried normally.
import type { Low } from 'lowdb';
import type { Stored } from '../../records/base/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Collection } from '../contract.ts';
import { type Commit, createCollection } from '../memory/collection.ts';
import { createTable, fill, type Table } from '../memory/table.ts';
import type { AnySpec } from '../record.ts';
import { parseRecord } from '../record.ts';
import type { RecordSeal } from '../sealing/records.ts';
import { openConfiguration, type Texts } from './lowdb-file.ts';

export interface Configuration {
  table: Table;
  collection: Collection<Stored>;
  commit: Commit;
  /** Waits for a write under way. */
  close(): Promise<void>;
}

interface ConfigurationOptions {
  directory: string;
  name: string;
  spec: AnySpec;
  clock: Clock;
  /** Called at the start of each method; throws when the store is closed. */
  check(): void;
  seal: RecordSeal;
}

interface Group {
  undos: (() => void)[];
  durable: PromiseWithResolvers<void>;
}

/** @throws Error naming the file when it is missing or damaged, or a secret in it cannot be decrypted. */
export async function openConfigurationCollection(options: ConfigurationOptions): Promise<Configuration> {
  const { directory, name, spec, clock, check, seal } = options;
  const low = await openConfiguration(directory, name);
  const table = createTable(name, spec, clock);
  const opened = new Map<string, string>();
  for (const [id, text] of low.data) {
    const json = JSON.stringify(seal.open(text));
    fill(table, json);
    opened.set(id, json);
  }
  const { commit, close } = fileCommit(low, table, sealer(seal, low.data, opened));
  return { table, collection: createCollection(table, commit, check), commit, close };
}

/** Returns a function that seals the records that have changed and keeps the stored text of the others. */
function sealer(seal: RecordSeal, stored: Texts, opened: Texts): (texts: Texts) => Texts {
  let before = { stored, opened };
  return (texts) => {
    const next = new Map<string, string>();
    for (const [id, json] of texts) {
      const known = before.opened.get(id) === json ? before.stored.get(id) : undefined;
      next.set(id, known ?? seal.seal({ json, record: parseRecord(json) }));
    }
    before = { stored: next, opened: new Map(texts) };
    return next;
  };
}

function fileCommit(
  low: Low<Texts>,
  table: Table,
  sealAll: (texts: Texts) => Texts,
): { commit: Commit; close(): Promise<void> } {
  let waiting: Group | undefined;
  let writing: Promise<void> | undefined;

  async function write(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (waiting === undefined) break;
      const group = waiting;
      waiting = undefined;
      try {
        low.data = sealAll(table.texts);
        await low.write();
        group.durable.resolve();
      } catch (error) {
        refuse(group, error);
      }
    }
    writing = undefined;
  }

  /** Later changes were decided on the basis of the failed ones, so they are refused with them. */
  function refuse(group: Group, error: unknown): void {
    const groups = waiting === undefined ? [group] : [group, waiting];
    waiting = undefined;
    for (const undo of groups.flatMap(({ undos }) => undos).reverse()) undo();
    for (const { durable } of groups) durable.reject(error);
  }

  return {
    commit({ undo }) {
      waiting ??= { undos: [], durable: Promise.withResolvers() };
      waiting.undos.push(undo);
      writing ??= write();
      return waiting.durable.promise;
    },
    close: async () => writing,
  };
}
