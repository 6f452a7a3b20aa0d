// Mail over SMTP (RFC 5321) with nodemailer: pooled connections, TLS, timeouts.
import { DeliveryError } from './messages.ts';
import { once } from './once.ts';
import type { OutgoingEmail, Transport } from './transport.ts';

export interface MailSettings {
  host: string;
  port: number;
  /** TLS from the first byte; otherwise STARTTLS. */
  secure: boolean;
  /** Whether plain text is allowed without STARTTLS: for a server on this machine only. */
  allowPlain: boolean;
  user?: string;
  password?: string;
}

interface MailOptions {
  /** The host of Message-IDs. */
  host: string;
  /** Authorities to trust beside the well-known ones, PEM. */
  ca?: string;
  /** How long each step of the conversation may take, milliseconds. */
  timeout?: number;
}

const TIMEOUT = 15_000;
/** A message may take so many step timeouts in all: a server that trickles its answers exceeds none of them. */
const STEPS = 3;
const CONNECTIONS = 4;

/** A transport to a mail server. */
export function createMailTransport(settings: MailSettings, options: MailOptions): Transport<OutgoingEmail> {
  const { timeout = TIMEOUT, host: messageHost } = options;
  const poolOf = { ...connectionOf(settings, options), pool: true as const, maxConnections: CONNECTIONS };
  // Loaded with the first mail.
  const mailer = once(async () => (await import('nodemailer')).createTransport(poolOf));
  return {
    deliver: async ({ to, from, subject, text, html }, id) => {
      try {
        await (await mailer()).sendMail({
          // As an object, it cannot be parsed as a list of addresses.
          to: { name: '', address: to },
          from,
          subject: subject.replace(/[\r\n]+/g, ' '),
          text,
          html,
          // RFC 5322 §3.6.4: the same at each try, by which a receiver tells that two are one.
          messageId: `<${id}@${messageHost}>`,
          // RFC 3834 §5: no out-of-office answers to this.
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: AbortSignal.timeout(timeout * STEPS),
        });
      } catch (thrown) {
        throw mailError(thrown);
      }
    },
    close: async () => {
      // Also closes connections in use: the caller has already waited.
      if (mailer.isMade()) (await mailer()).close({ force: true });
    },
  };
}

/** How a server is connected to. */
function connectionOf(settings: MailSettings, { timeout = TIMEOUT, ca }: Omit<MailOptions, 'host'>) {
  const { host, port, secure, allowPlain, user, password } = settings;
  return {
    host,
    port,
    secure,
    // Otherwise removing STARTTLS from the server's answer would expose the password (downgrade).
    requireTLS: !secure && !allowPlain,
    tls: { minVersion: 'TLSv1.2' as const, ...(ca === undefined ? {} : { ca }) },
    connectionTimeout: timeout,
    greetingTimeout: timeout,
    socketTimeout: timeout,
    dnsTimeout: timeout,
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    // Attachments and bodies are never read from files or URLs.
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

/** Connects and logs in, and sends nothing. @throws Error with what the server said. */
export async function askMailServer(
  settings: MailSettings,
  options: Omit<MailOptions, 'host'> = {},
): Promise<void> {
  const mailer = (await import('nodemailer')).createTransport(connectionOf(settings, options));
  try {
    await mailer.verify();
  } finally {
    mailer.close();
  }
}

/** A failure as nodemailer reports it. */
interface MailFailure {
  code?: string;
  responseCode?: number;
}

/** 5yz replies are permanent (RFC 5321 §4.2.1), and so are faults of our settings; all others are temporary. */
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
