// Writes to a store until it is killed. Reports on standard output, synchronously, what it found on opening, what it is
// about to write, and each acknowledgment. See crash.test.ts.
import { writeSync } from 'node:fs';
import type { Collection, Store } from '../../../src/store/contract.ts';
import { openStore } from '../../../src/store/open.ts';
import { aUser } from '../contract.ts';

/** A line of the report; `value` identifies the state of a record, null that it is deleted. */
export type Report =
  | { opening: true }
  | { found: [key: string, value: string][] }
  | { trying: string; value: string | null }
  | { acknowledged: string };

const writers = 6;
const idsPerWriter = 12;
const padding = 'x'.repeat(700);

/** Makes a test record of each collection, and reads its value. */
const kinds = {
  users: {
    make: (id: string, value: string) => ({
      ...aUser(id, `${id}@example.com`),
      user_metadata: { value, padding },
    }),
    value: (store: Store, id: string) =>
      store
        .collection('users')
        .get(id)
        .then((user) => user?.user_metadata.value),
  },
  credentials: {
    make: (id: string, value: string) => ({ id, passwordHash: value, history: [padding] }),
    value: (store: Store, id: string) =>
      store
        .collection('credentials')
        .get(id)
        .then((credential) => credential?.passwordHash),
  },
  artifacts: {
    make: (id: string, value: string) => ({
      id,
      model: 'RefreshToken',
      payload: { value, grantId: id, padding },
      expiresAt: 9_000_000_000,
    }),
    value: (store: Store, id: string) =>
      store
        .collection('artifacts')
        .get(id)
        .then((artifact) => artifact?.payload.value),
  },
  organizations: {
    make: (id: string, value: string) => ({ id, name: id, display_name: value }),
    value: (store: Store, id: string) =>
      store
        .collection('organizations')
        .get(id)
        .then((organization) => organization?.display_name),
  },
};
type Kind = keyof typeof kinds;
const kindNames: Kind[] = ['users', 'credentials', 'artifacts', 'organizations'];

/** Everything that the writers keep in a store: `<collection>/<id>` and the record's value. */
export async function findAll(store: Store): Promise<[key: string, value: string][]> {
  const found: [string, string][] = [];
  for (const kind of kindNames) {
    const { records } = await store.collection(kind).list({ limit: writers * idsPerWriter + 1 });
    for (const { id } of records) found.push([`${kind}/${id}`, String(await kinds[kind].value(store, id))]);
  }
  return found;
}

/** Writes a line completely before it returns, even if the pipe is full and does not block. */
function report(line: Report): void {
  let data = Buffer.from(`${JSON.stringify(line)}\n`);
  while (data.length > 0) {
    try {
      data = data.subarray(writeSync(1, data));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

/** One writer with ids of its own, so that the order of writes to each record is known. */
async function write(store: Store, writer: number, run: string): Promise<never> {
  for (let n = 0; ; n++) {
    const kind = kindNames[n % kindNames.length] ?? 'users';
    const id = `${writer}-${Math.floor(Math.random() * idsPerWriter)}`;
    const value = `${run}.${writer}.${n}`;
    const there = (await kinds[kind].value(store, id)) !== undefined;
    const removes = there && Math.random() < 0.3;
    report({ trying: `${kind}/${id}`, value: removes ? null : value });
    const collection = store.collection(kind) as unknown as Collection<{ id: string }>;
    if (removes) await remove(collection, kind, id);
    else await change(collection, there, kinds[kind].make(id, value));
    report({ acknowledged: `${kind}/${id}` });
  }
}

async function remove(collection: Collection<{ id: string }>, kind: Kind, id: string): Promise<void> {
  if (kind === 'users') await collection.deleteBy('email', `${id}@example.com`);
  else if (kind === 'artifacts') await collection.take(id);
  else await collection.delete(id);
}

async function change(collection: Collection<{ id: string }>, there: boolean, record: { id: string }) {
  if (!there) await collection.insert(record);
  else if (Math.random() < 0.5) await collection.put(record);
  else await collection.update(record.id, () => record);
}

if (import.meta.main) {
  const [dataDir = '', run = ''] = process.argv.slice(2);
  report({ opening: true });
  const store = await openStore({ dataDir, clock: Date.now });
  report({ found: await findAll(store) });
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(store, writer, run)));
}
