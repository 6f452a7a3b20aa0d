// The development outbox: without a provider, messages are written to files and shown at `/dev/inbox`.
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Transport } from '../../records/base/message-transport.ts';
import type { Clock } from '../../runtime/clock.ts';
import { jsonOf } from '../../runtime/json.ts';
import type { Random } from '../../runtime/secrets.ts';
import { messageSchema, type OutboxMessage } from './outbox-message.ts';
import type { Outgoing } from './transport.ts';

export interface Outbox extends Transport<Outgoing> {
  /** Returns the newest {@link MAX_LISTED} messages, newest first. */
  list(): Promise<OutboxMessage[]>;
  /** Returns the message with an id, if any. */
  get(id: string): Promise<OutboxMessage | undefined>;
  clear(): Promise<void>;
}

/** How many messages are listed at most. */
const MAX_LISTED = 200;
const ID = /^\d{13}-\d{6}-[0-9a-f]{8}$/;

/** Makes the outbox of a directory, which is created with the first message. Files are readable by their owner only. */
export function createOutbox({
  directory,
  clock,
  random,
}: {
  directory: string;
  clock: Clock;
  random: Random;
}): Outbox {
  // Orders messages of the same millisecond.
  let count = 0;
  return {
    deliver: async (message) => {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      count = (count + 1) % 1_000_000;
      const at = clock();
      const id = `${String(at).padStart(13, '0')}-${String(count).padStart(6, '0')}-${random(4).toString('hex')}`;
      const file = join(directory, `${id}.json`);
      const text = JSON.stringify(
        messageSchema.parse({ ...message, at: new Date(at).toISOString() }),
        null,
        2,
      );
      // Written under another name first, so that a list never reads half a message.
      const handle = await open(`${file}.part`, 'wx', 0o600);
      await handle.writeFile(text).finally(() => handle.close());
      await rename(`${file}.part`, file);
    },
    close: async () => {},
    list: async () => {
      const all = await Promise.all(
        (await idsIn(directory)).slice(0, MAX_LISTED).map((id) => read(directory, id)),
      );
      return all.filter((message) => message !== undefined);
    },
    get: (id) => read(directory, id),
    clear: async () => {
      await Promise.all(
        (await idsIn(directory)).map((id) => rm(join(directory, `${id}.json`), { force: true })),
      );
    },
  };
}

/** Returns the ids of the messages in a directory, newest first. */
async function idsIn(directory: string): Promise<string[]> {
  const files = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return files
    .filter((file) => file.endsWith('.json') && ID.test(file.slice(0, -5)))
    .map((file) => file.slice(0, -5))
    .sort()
    .reverse();
}

/** Returns a message; undefined where there is none, or where its file is damaged: the others are still shown. */
async function read(directory: string, id: string): Promise<OutboxMessage | undefined> {
  if (!ID.test(id)) return undefined;
  const text = await readFile(join(directory, `${id}.json`), 'utf8').catch(() => '');
  const { success, data } = messageSchema.safeParse(jsonOf(text));
  return success ? { ...data, id } : undefined;
}
