// Raw bytes on a TLS connection, for requests that no HTTP client would send.
import { once } from 'node:events';
import tls from 'node:tls';
import { stopwatch } from './timing.ts';
import { PATIENCE } from './wait-until.ts';

interface RawConnection {
  socket: tls.TLSSocket;
  send(bytes: string | Buffer): void;
  /** What was received so far. */
  text(): string;
  /** Resolves with everything received when the server has closed the connection; rejects if it does not in time. */
  closed(withinMs: number): Promise<string>;
  /** Resolves once what was received contains the text. */
  has(text: string | RegExp, withinMs: number): Promise<string>;
  end(): void;
}

/** Connects to a test server. */
export async function connect(server: { url: string; ca: string }): Promise<RawConnection> {
  const { port } = new URL(server.url);
  const socket = tls.connect({
    host: '127.0.0.1',
    port: Number(port),
    ca: server.ca,
    servername: 'localhost',
  });
  const chunks: Buffer[] = [];
  const text = () => Buffer.concat(chunks).toString('latin1');
  let ended = false;
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => undefined);
  for (const event of ['end', 'close']) {
    socket.once(event, () => {
      ended = true;
    });
  }
  await once(socket, 'secureConnect');
  const until = (done: () => boolean, what: string, withinMs: number) =>
    new Promise<string>((resolve, reject) => {
      const time = stopwatch();
      const tooLate = () =>
        finish(() => reject(new Error(`${what} not within ${withinMs} ms; came: ${text().slice(0, 500)}`)));
      const look = () => {
        if (!done()) return;
        if (time() > withinMs) tooLate();
        else finish(() => resolve(text()));
      };
      // Long enough for a busy machine.
      const late = setTimeout(tooLate, withinMs + PATIENCE);
      const finish = (then: () => void) => {
        clearTimeout(late);
        for (const event of ['data', 'end', 'close']) socket.off(event, look);
        then();
      };
      for (const event of ['data', 'end', 'close']) socket.on(event, look);
      look();
    });
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    text,
    closed: (withinMs) => until(() => ended, 'the end', withinMs),
    has: (wanted, withinMs) =>
      until(
        () => (typeof wanted === 'string' ? text().includes(wanted) : wanted.test(text())),
        String(wanted),
        withinMs,
      ),
    end: () => socket.destroy(),
  };
}
