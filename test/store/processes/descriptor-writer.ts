// Writes while the process has no free file descriptor (its parent limits them), and reports what the store did as
// JSON: see failure.test.ts.
import { closeSync, openSync } from 'node:fs';
import { openStore } from '../../../src/store/open.ts';
import { aUser } from '../contract.ts';

export interface DescriptorReport {
  acknowledged: string[];
  /** The reasons why writes were refused. */
  refused: string[];
  ready: string;
  /** A change to a file of the configuration. */
  configuration: { meanwhile: string; visible: boolean; afterwards: string };
}

const outcome = async (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );

/** Takes all free file descriptors; returns a function that frees them. */
function takeAll(): () => void {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') throw error;
  }
  return () => {
    for (const fd of taken.splice(0)) closeSync(fd);
  };
}

async function main(dataDir: string): Promise<DescriptorReport> {
  const store = await openStore({ dataDir, clock: Date.now });
  const users = store.collection('users');
  const acknowledged: string[] = [];
  const refused: string[] = [];
  const write = async (id: string) => {
    const done = await outcome(users.put({ ...aUser(id), user_metadata: { padding: 'x'.repeat(9000) } }));
    if (done === 'resolved') acknowledged.push(id);
    else refused.push(done);
  };
  // The first commit starts the thread.
  await write('first');
  const giveBack = takeAll();
  for (let n = 0; n < 600; n++) await write(`user${n}`);
  const ready = await outcome(store.ready());
  const clients = store.collection('clients');
  const insert = () => clients.insert({ id: 'app', client_id: 'app', name: 'App' } as never);
  const meanwhile = await outcome(insert());
  const visible = (await clients.get('app')) !== undefined;
  giveBack();
  const afterwards = await outcome(insert());
  await store.close();
  return { acknowledged, refused, ready, configuration: { meanwhile, visible, afterwards } };
}

if (import.meta.main) process.stdout.write(JSON.stringify(await main(process.argv[2] ?? '')));
