// Mail over SMTP (RFC 5321) with nodemailer: pooled connections, TLS, timeouts.

import { DeliveryError, type Mail, type Transport } from '../../records/base/message-transport.ts';
import type { MailServer } from '../../records/mail-providers/mail-provider.ts';
import { once } from './once.ts';

interface MailOptions {
  /** The host name in Message-IDs. */
  host: string;
  /** Authorities to trust beside the well-known ones, PEM. */
  ca?: string;
  /** How long each step of the conversation may take, milliseconds. */
  timeout?: number;
}

const TIMEOUT = 15_000;
/**
 * A message may take this many times the timeout of a step: a server that trickles its answers exceeds none of the step
 * timeouts.
 */
const MAX_STEPS = 3;
const CONNECTIONS = 4;

export function createMailTransport(settings: MailServer, options: MailOptions): Transport<Mail> {
  const { timeout = TIMEOUT, host: messageHost } = options;
  const poolOptions = {
    ...connectionOf(settings, options),
    pool: true as const,
    maxConnections: CONNECTIONS,
  };
  // Imported with the first mail.
  const mailer = once(async () => (await import('nodemailer')).createTransport(poolOptions));
  return {
    deliver: async ({ to, from, subject, text, html }, id) => {
      try {
        await (await mailer()).sendMail({
          // As an object it is not parsed as a list of addresses.
          to: { name: '', address: to },
          from,
          subject: subject.replace(/[\r\n]+/g, ' '),
          text,
          html,
          // The same at each try, so that receivers recognise duplicates (RFC 5322 §3.6.4).
          messageId: `<${id}@${messageHost}>`,
          // No automatic replies to this message (RFC 3834 §5).
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: AbortSignal.timeout(timeout * MAX_STEPS),
        });
      } catch (thrown) {
        throw mailError(thrown);
      }
    },
    close: async () => {
      // Also closes connections in use: the caller has already waited.
      if (mailer.isCreated()) (await mailer()).close({ force: true });
    },
  };
}

function connectionOf(settings: MailServer, { timeout = TIMEOUT, ca }: Omit<MailOptions, 'host'>) {
  const { host, port, secure, allowPlain, user, password } = settings;
  return {
    host,
    port,
    secure,
    // Otherwise an attacker who removes STARTTLS from the server's answer would get the password (downgrade).
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

/** Connects and logs in without sending a message. @throws Error with the server's reply. */
export async function checkMailServer(
  settings: MailServer,
  options: Omit<MailOptions, 'host'> = {},
): Promise<void> {
  const mailer = (await import('nodemailer')).createTransport(connectionOf(settings, options));
  try {
    await mailer.verify();
  } finally {
    mailer.close();
  }
}

interface MailFailure {
  code?: string;
  responseCode?: number;
}

/** Permanent are 5yz replies (RFC 5321 §4.2.1) and faults of our settings; all other failures are temporary. */
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
