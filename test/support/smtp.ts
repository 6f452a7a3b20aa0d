// A real mail server on this machine, which accepts messages or refuses them as told.
import type { AddressInfo } from 'node:net';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export interface TestMailServer {
  port: number;
  /** As `SMTP_URL` has it. */
  url: string;
  /** The messages accepted so far, parsed, oldest first. */
  messages: Email[];
  /** The recipients in the envelopes. */
  recipients: string[];
  /** What happens to further messages: accept them, refuse them with a code, never answer, or answer only after `release`. */
  behave(how: 'accept' | 'silence' | 'hold' | { code: number; times?: number }): void;
  /** Accepts the held messages, or refuses them with a code. */
  release(code?: number): void;
  /** How many messages were offered. */
  offered(): number;
  stop(): Promise<void>;
}

/** Starts a mail server on a free port; without TLS by default. */
export async function startMailServer(options: SMTPServerOptions = {}): Promise<TestMailServer> {
  const messages: Email[] = [];
  const recipients: string[] = [];
  let behaviour: Parameters<TestMailServer['behave']>[0] = 'accept';
  let refusals = 0;
  let offered = 0;
  const held: ((code?: number) => void)[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    ...options,
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', async () => {
        offered++;
        if (behaviour === 'silence') return;
        const take = async () => {
          recipients.push(...session.envelope.rcptTo.map(({ address }) => address));
          messages.push(await PostalMime.parse(Buffer.concat(chunks)));
          done();
        };
        const refuse = (responseCode: number) =>
          done(Object.assign(new Error('refused by the test'), { responseCode }));
        if (behaviour === 'hold') {
          held.push((code) => (code === undefined ? void take() : refuse(code)));
          return;
        }
        if (behaviour !== 'accept' && refusals++ < (behaviour.times ?? Number.POSITIVE_INFINITY)) {
          return refuse(behaviour.code);
        }
        await take();
      });
    },
  });
  server.on('error', () => {
    // A client that disconnects; the test sees what happened to its message.
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    url: `smtp://127.0.0.1:${port}`,
    messages,
    recipients,
    behave: (how) => {
      behaviour = how;
      refusals = 0;
    },
    release: (code) => {
      for (const end of held.splice(0)) end(code);
    },
    offered: () => offered,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
