// A rendered message, and the interface of transports: mail server, SMS provider, development outbox.
import type { EmailKind, Notice, SmsKind } from './messages.ts';

export interface OutgoingEmail {
  channel: 'email';
  to: string;
  /** `Name <address>` or the address. */
  from: string;
  subject: string;
  text: string;
  html: string;
  /** Shown in the development inbox. */
  code?: string;
  link?: string;
  /** What the message was rendered from; undefined for one that only tests the provider. */
  source?: { kind: EmailKind; notice: Notice; locale: string };
}

export interface OutgoingSms {
  channel: 'sms';
  /** E.164. */
  to: string;
  text: string;
  /** The connection's sender; default: the transport's. */
  from?: string;
  code?: string;
  /** What the message was rendered from. */
  source: { kind: SmsKind; notice: Notice; locale?: string };
}

export type Outgoing = OutgoingEmail | OutgoingSms;

/** Delivers a message once; callers retry. */
export interface Transport<M extends Outgoing = Outgoing> {
  /**
   * Resolves when the provider has accepted the message.
   * @param id id of the message, the same at each try, by which a provider or receiver can recognise duplicates.
   * @throws DeliveryError `unavailable` when temporary (SMTP 4yz, timeout, 429, 5xx), `rejected` or `invalid-number`
   * when permanent.
   */
  deliver(message: M, id: string): Promise<void>;
  close(): Promise<void>;
}
