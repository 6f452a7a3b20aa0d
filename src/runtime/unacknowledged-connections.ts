// Connections on their way to a worker process. Node.js keeps each open until the worker acknowledges it. A worker
// that is killed meanwhile never does, and the client would wait for ever.
import type { Worker } from 'node:cluster';

/** The message that Node.js sends with a connection: its port, and the number that the worker acknowledges. */
interface NewConnectionMessage {
  cmd: 'NODE_CLUSTER';
  act: 'newconn';
  key: string;
  seq: number;
}

/** A connection without a socket yet. Closing it again does nothing. */
interface Handle {
  close(): void;
}

/** How often to check whether all messages of the worker were read, milliseconds. */
const POLL_INTERVAL = 10;

/**
 * Closes the connections that a worker has not acknowledged when it ends. Node.js does not tell which these are, so
 * they are recorded as they are sent.
 */
export function closeUnacknowledged({ process: child }: Pick<Worker, 'process'>): void {
  // A worker gets the next connection of a port only after it has acknowledged the one before.
  const unacknowledged = new Map<string, { seq: number; handle: Handle }>();
  const send = child.send.bind(child) as (...all: unknown[]) => boolean;
  child.send = (message: unknown, handle?: unknown, ...others: unknown[]) => {
    if (isNewConnection(message))
      unacknowledged.set(message.key, { seq: message.seq, handle: handle as Handle });
    return send(message, handle, ...others);
  };
  child.on('internalMessage', ({ ack }: { ack?: number }) => {
    for (const [key, { seq }] of unacknowledged) if (seq === ack) unacknowledged.delete(key);
  });
  const close = () => {
    // Its last messages may be read after it has ended.
    if (child.connected) return void setTimeout(close, POLL_INTERVAL);
    for (const { handle } of unacknowledged.values()) handle.close();
    unacknowledged.clear();
  };
  // Not 'disconnect', which is not emitted while a connection is on its way.
  child.once('exit', () => void setImmediate(close));
}

function isNewConnection(message: unknown): message is NewConnectionMessage {
  const { cmd, act } = (message ?? {}) as Partial<NewConnectionMessage>;
  return cmd === 'NODE_CLUSTER' && act === 'newconn';
}
