// Writes until the disk refuses (its parent limits the size of files) and reports, as JSON, what the
// store then does: see lowdb-failure.test.ts.
import { openLowdbStore } from '../../../src/store/lowdb.ts';
import { aUser } from '../contract.ts';

export interface FullDiskReport {
  acknowledged: string[];
  refused: string[];
  /** What reads give after the failure. */
  visible: string[];
  /** A read of a refused record that was under way when the disk refused. */
  readMeanwhile: boolean;
  counter: number | undefined;
  ready: string;
  laterWrite: string;
  emailIsFree: boolean;
  logged: number;
}

const messageOf = async (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );

async function main(dataDir: string): Promise<FullDiskReport> {
  let logged = 0;
  const log = { warn: () => {}, error: () => logged++ };
  const store = await openLowdbStore({ dataDir, clock: Date.now, log });
  const users = store.collection('users');
  await users.insert(aUser('counter'));
  const acknowledged = ['counter'];
  const refused: string[] = [];
  let counted = 0;
  let readMeanwhile = false;
  const padding = 'x'.repeat(900);
  for (let round = 0; refused.length === 0; round++) {
    await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const id = `user${round}-${n}`;
        const insert = users.insert({ ...aUser(id, `${id}@a.example`), user_metadata: { padding } });
        const count = users.update('counter', (user) => ({
          ...aUser(user.id),
          logins_count: user.logins_count + 1,
        }));
        const read = users.get(id);
        if ((await messageOf(insert)) === 'resolved') acknowledged.push(id);
        else refused.push(id);
        if ((await messageOf(count)) === 'resolved') counted++;
        if (refused.includes(id) && (await read) !== undefined) readMeanwhile = true;
      }),
    );
  }
  const report = {
    acknowledged,
    refused,
    visible: (await users.list({ limit: 100_000 })).records.map(({ id }) => id),
    readMeanwhile,
    counter: counted - ((await users.get('counter'))?.logins_count ?? 0),
    ready: await messageOf(store.ready()),
    laterWrite: await messageOf(users.insert(aUser('later'))),
    emailIsFree: (await users.findBy('email', `${refused[0]}@a.example`)).length === 0,
    logged,
  };
  await store.close();
  return report;
}

if (import.meta.main) process.stdout.write(JSON.stringify(await main(process.argv[2] ?? '')));
