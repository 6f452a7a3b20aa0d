// TEMPORARY stand-in
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Random } from '../http/runtime.ts';
import type { Outgoing, Transport } from './transport.ts';
export interface OutboxMessage {
  id: string;
  to: string;
  channel: 'email' | 'sms';
  subject?: string;
  text?: string;
  html?: string;
  code?: string;
  link?: string;
  at: string;
}
export function createOutbox({
  directory,
  clock,
  random,
}: {
  directory: string;
  clock: Clock;
  random: Random;
}): Transport & { list(): Promise<OutboxMessage[]> } {
  return {
    deliver: async (message: Outgoing) => {
      await mkdir(directory, { recursive: true });
      const at = new Date(clock()).toISOString();
      const id = `${at.replace(/[:.]/g, '')}-${process.hrtime.bigint()}-${random(4).toString('hex')}`;
      await writeFile(join(directory, `${id}.tmp`), JSON.stringify({ id, ...message, at }));
      await rename(join(directory, `${id}.tmp`), join(directory, `${id}.json`));
    },
    close: async () => {},
    list: async () => {
      const files = (await readdir(directory).catch(() => []))
        .filter((f) => f.endsWith('.json'))
        .sort()
        .reverse();
      return Promise.all(
        files.map(async (f) => JSON.parse(await readFile(join(directory, f), 'utf8')) as OutboxMessage),
      );
    },
  };
}
