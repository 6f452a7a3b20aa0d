// Writes while the process has no file descriptor left (its parent limits them), or one, each time the journal
// should begin a segment, and again when it has; reports what the store did, as JSON: see descriptors.test.ts.
import { closeSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openLowdbStore } from '../../../src/store/lowdb.ts';
import { aUser } from '../contract.ts';

export interface DescriptorReport {
  rounds: {
    /** Descriptors that were left. */
    left: number;
    /** Why writes were refused. */
    refused: string[];
    ready: string;
    /** The newest segment of the journal, when something was written after there was room again. */
    newest: number;
    /** Warnings and errors of the store in this round. */
    said: string[];
  }[];
  /** The round in which each record was last written. */
  acknowledged: Record<string, number>;
}

const outcome = async (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );

/** Takes every descriptor but some. @returns how many, and what gives them back. */
function takeAll(but: number) {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') throw error;
  }
  const count = taken.length;
  const close = (fd: number) => closeSync(fd);
  taken.splice(0, but).forEach(close);
  return { count, giveBack: () => taken.splice(0).forEach(close) };
}

/** How many descriptors there are to take. */
function available(): number {
  const { count, giveBack } = takeAll(0);
  giveBack();
  return count;
}

async function main(dataDir: string): Promise<DescriptorReport> {
  let said: string[] = [];
  const note = (_: unknown, message?: string) => void said.push(String(message));
  const log = { warn: note, error: note };
  // Each round writes some 45 KiB, to the same records, so that a segment stays at what is said here.
  const store = await openLowdbStore({ dataDir, clock: Date.now, log, foldBytes: 32 << 10 });
  const users = store.collection('users');
  const newest = () =>
    Math.max(
      ...readdirSync(join(dataDir, 'store')).map((name) => Number(/^journal-(\d+)/.exec(name)?.[1] ?? 0)),
    );
  const idle = available();
  const acknowledged: Record<string, number> = {};
  const rounds: DescriptorReport['rounds'] = [];
  const padding = 'x'.repeat(900);
  const write = async (id: string) => {
    const logins_count = rounds.length;
    const record = { ...aUser(id), user_metadata: { padding }, logins_count };
    const done = await outcome(users.put(record));
    if (done === 'resolved') acknowledged[id] = logins_count;
    return done;
  };
  // With one descriptor the segment's file can be made, and its name in the directory not be made durable.
  for (const left of [0, 1, 0]) {
    // The thread that folds has descriptors of its own, and gives them back when it ends.
    while (available() < idle) await new Promise((resolve) => setImmediate(resolve));
    said = [];
    const held = takeAll(left);
    const refused: string[] = [];
    for (let n = 0; n < 40; n++) {
      const done = await write(`user${n}`);
      if (done !== 'resolved') refused.push(done);
    }
    const ready = await outcome(store.ready());
    held.giveBack();
    await write('after');
    await write('later');
    rounds.push({ left, refused, ready, newest: newest(), said });
  }
  await store.close();
  return { rounds, acknowledged };
}

if (import.meta.main) process.stdout.write(JSON.stringify(await main(process.argv[2] ?? '')));
