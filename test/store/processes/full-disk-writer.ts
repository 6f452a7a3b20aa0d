// Writes until the disk refuses (its parent limits the size of files), then has the limit lifted, and reports what the
// store did as JSON: see failure.test.ts.
import { execFileSync } from 'node:child_process';
import { openStore } from '../../../src/store/open.ts';
import { aUser } from '../contract.ts';

export interface FullDiskReport {
  acknowledged: string[];
  refused: string[];
  /** What reads return after the failure. */
  visible: string[];
  /** A read of a refused record, started before the refusal. */
  readMeanwhile: boolean;
  counter: number | undefined;
  ready: string;
  laterWrite: string;
  emailIsFree: boolean;
  /** The numbers of errors and warnings logged before there was space, and after. */
  logged: [before: number, after: number];
  /** After there is space again. */
  afterwards: { ready: string; write: string };
}

const messageOf = async (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );

async function main(dataDir: string): Promise<FullDiskReport> {
  let errors = 0;
  let warnings = 0;
  const log = { warn: () => warnings++, error: () => errors++ };
  const store = await openStore({ dataDir, clock: Date.now, log });
  const users = store.collection('users');
  await users.insert(aUser('counter'));
  const acknowledged = ['counter'];
  const refused: string[] = [];
  let counted = 0;
  let readMeanwhile = false;
  const padding = 'x'.repeat(9000);
  // Small writes fill the space that a refused large write left.
  let ready = 'resolved';
  for (let round = 0; ready === 'resolved'; round++) {
    await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const id = `user${round}-${n}`;
        const insert = users.insert({ ...aUser(id, `${id}@a.example`), user_metadata: { padding } });
        const count = users.update('counter', (user) => ({ ...user, logins_count: user.logins_count + 1 }));
        const read = users.get(id);
        if ((await messageOf(insert)) === 'resolved') acknowledged.push(id);
        else refused.push(id);
        if ((await messageOf(count)) === 'resolved') counted++;
        if (refused.includes(id) && (await read) !== undefined) readMeanwhile = true;
      }),
    );
    if (refused.length > 0) ready = await messageOf(store.ready());
  }
  const big = (id: string) => users.insert({ ...aUser(id), user_metadata: { padding: padding.repeat(50) } });
  const report = {
    acknowledged,
    refused,
    visible: (await users.list({ limit: 100_000 })).records.map(({ id }) => id),
    readMeanwhile,
    counter: counted - ((await users.get('counter'))?.logins_count ?? 0),
    laterWrite: await messageOf(big('refused-later')),
    ready,
    emailIsFree: (await users.findBy('email', `${refused[0]}@a.example`)).length === 0,
  };
  const before = errors;
  execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited:unlimited']);
  const afterwards = { ready: await messageOf(store.ready()), write: await messageOf(big('later')) };
  if (afterwards.write === 'resolved') acknowledged.push('later');
  await store.close();
  return { ...report, afterwards, logged: [before, warnings] };
}

if (import.meta.main) process.stdout.write(JSON.stringify(await main(process.argv[2] ?? '')));
