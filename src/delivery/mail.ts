// Mail over SMTP (RFC 5321), by nodemailer: one pool of connections, TLS, and an end to every wait.
import { DeliveryError } from './messages.ts';
import { once } from './once.ts';
import type { OutgoingEmail, Transport } from './transport.ts';

export interface MailSettings {
  host: string;
  port: number;
  /** TLS from the first byte; otherwise STARTTLS. */
  secure: boolean;
  /** Whether a server that offers no STARTTLS is spoken to in the clear: on this machine alone. */
  allowPlain: boolean;
  user?: string;
  password?: string;
}

export interface MailOptions {
  /** The host of Message-IDs. */
  host: string;
  /** Authorities to trust beside the well-known ones, PEM. */
  ca?: string;
  /** How long each step of the conversation may take, milliseconds. */
  timeout?: number;
}

const TIMEOUT = 15_000;
/** One message at most, in such steps: a server that trickles its answers would never be too slow in any step. */
const STEPS = 3;
const CONNECTIONS = 4;

/** A transport to a mail server. */
export function createMailTransport(settings: MailSettings, options: MailOptions): Transport<OutgoingEmail> {
  const { timeout = TIMEOUT, ca, host: messageHost } = options;
  const { host, port, secure, allowPlain, user, password } = settings;
  const poolOf = {
    pool: true as const,
    maxConnections: CONNECTIONS,
    host,
    port,
    secure,
    // Without it a password would go in the clear where somebody takes STARTTLS out of the server's answer.
    requireTLS: !secure && !allowPlain,
    tls: { minVersion: 'TLSv1.2' as const, ...(ca === undefined ? {} : { ca }) },
    connectionTimeout: timeout,
    greetingTimeout: timeout,
    socketTimeout: timeout,
    dnsTimeout: timeout,
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    // Messages are rendered here: nothing is read from files or fetched for them.
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  // Loaded when the first mail goes out: a server that sends none does without it.
  const mailer = once(async () => (await import('nodemailer')).createTransport(poolOf));
  return {
    deliver: async ({ to, from, subject, text, html }) => {
      try {
        await (await mailer()).sendMail({
          // As an object the address is one, whatever is in it.
          to: { name: '', address: to },
          from,
          subject: subject.replace(/[\r\n]+/g, ' '),
          text,
          html,
          messageId: `<${crypto.randomUUID()}@${messageHost}>`,
          // RFC 3834 §5: no out-of-office answers to this.
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: AbortSignal.timeout(timeout * STEPS),
        });
      } catch (thrown) {
        throw mailError(thrown);
      }
    },
    close: async () => {
      // With what is still being sent: the caller has waited for it as long as it wanted to.
      if (mailer.isMade()) (await mailer()).close({ force: true });
    },
  };
}

/** What nodemailer says of a failure. */
interface MailFailure {
  code?: string;
  responseCode?: number;
}

/** 5yz is for good (RFC 5321 §4.2.1), and so is what is wrong with our own settings; all else may pass. */
function mailError(thrown: unknown): DeliveryError {
  const { code, responseCode } = thrown as MailFailure;
  const isFinal =
    (responseCode !== undefined && responseCode >= 500) || code === 'EAUTH' || code === 'EENVELOPE';
  const providerCode = responseCode === undefined ? code : String(responseCode);
  return new DeliveryError(
    isFinal && !(responseCode !== undefined && responseCode < 500) ? 'rejected' : 'unavailable',
    isFinal ? 'the mail server refuses the message' : 'the mail server cannot be reached',
    { ...(providerCode === undefined ? {} : { providerCode }), cause: thrown },
  );
}
