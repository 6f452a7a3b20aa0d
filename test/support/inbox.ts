// The messages sent to users: the development outbox stores each as a file.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { aMoment, PATIENCE } from './wait-until.ts';

interface Received {
  to: string;
  channel: 'email' | 'sms';
  subject?: string;
  text: string;
  html?: string;
  code?: string;
  link?: string;
  at: string;
}

/** The messages that were read; they do not change and are read often. */
const known = new Map<string, Received>();

async function readOnce(file: string): Promise<Received> {
  const message = known.get(file) ?? (JSON.parse(await readFile(file, 'utf8')) as Received);
  known.set(file, message);
  return message;
}

/** Returns the messages to an address, newest first. */
export async function messagesTo(server: { dataDir: string }, to: string): Promise<Received[]> {
  const directory = join(server.dataDir, 'outbox');
  const files = (await readdir(directory).catch(() => [])).filter((file) => file.endsWith('.json'));
  const messages = await Promise.all(
    files
      .sort()
      .reverse()
      .map((file) => readOnce(join(directory, file))),
  );
  return messages.filter((message) => message.to === to);
}

/**
 * Returns the newest message to an address, once there are `count`: messages are sent in the background.
 * @param having counts only messages with a link, with a code, or for which it returns true.
 */
export async function nextMessageTo(
  server: { dataDir: string },
  to: string,
  count = 1,
  having: 'link' | 'code' | ((message: Received) => boolean) = () => true,
): Promise<Received> {
  const isMeant =
    typeof having === 'function' ? having : (message: Received) => message[having] !== undefined;
  for (const deadline = performance.now() + PATIENCE; performance.now() < deadline; ) {
    const all = await messagesTo(server, to);
    const [newest, ...older] = all.filter(isMeant);
    if (newest !== undefined && older.length + 1 >= count) return newest;
    await aMoment();
  }
  throw new Error(`there are not ${count} messages to ${to}`);
}
