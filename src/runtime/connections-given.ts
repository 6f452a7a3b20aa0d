// Connections on their way to a worker. Node.js keeps one open until the worker says that it has it: of a worker that is killed
// meanwhile nothing is heard, and whoever connected would wait for ever.
import type { Worker } from 'node:cluster';

/** What Node.js sends with a connection: of which port it is, and the number that the worker acknowledges. */
interface Giving {
  cmd: 'NODE_CLUSTER';
  act: 'newconn';
  key: string;
  seq: number;
}

/** A connection without a socket yet. Closing it again does nothing. */
interface Handle {
  close(): void;
}

/** How often it is looked whether all was read, milliseconds. */
const LOOK = 10;

/**
 * Closes what was given to a worker when that ends before it has taken it. Node.js tells nobody which these are, so they are
 * noted as they are sent.
 */
export function closeWhatIsNotTaken({ process: child }: Pick<Worker, 'process'>): void {
  // A worker is given one connection of a port after the other.
  const given = new Map<string, { seq: number; handle: Handle }>();
  const send = child.send.bind(child) as (...all: unknown[]) => boolean;
  child.send = (message: unknown, handle?: unknown, ...others: unknown[]) => {
    if (isGiving(message)) given.set(message.key, { seq: message.seq, handle: handle as Handle });
    return send(message, handle, ...others);
  };
  child.on('internalMessage', ({ ack }: { ack?: number }) => {
    for (const [key, { seq }] of given) if (seq === ack) given.delete(key);
  });
  const close = () => {
    // What it said last may be read after it has ended.
    if (child.connected) return void setTimeout(close, LOOK);
    for (const { handle } of given.values()) handle.close();
    given.clear();
  };
  // Not the end of the channel, which is never told while a connection is on its way.
  child.once('exit', () => void setImmediate(close));
}

function isGiving(message: unknown): message is Giving {
  const { cmd, act } = (message ?? {}) as Partial<Giving>;
  return cmd === 'NODE_CLUSTER' && act === 'newconn';
}
