// A message ready to go, and what takes it: a mail server, an SMS provider, the development outbox.

export interface OutgoingEmail {
  channel: 'email';
  to: string;
  /** As a mail header has it: `Name <address>` or the address. */
  from: string;
  subject: string;
  text: string;
  html: string;
  /** For the development inbox, which shows them large. */
  code?: string;
  link?: string;
}

export interface OutgoingSms {
  channel: 'sms';
  /** E.164. */
  to: string;
  text: string;
  /** The sender that the connection names; the transport's own otherwise. */
  from?: string;
  code?: string;
}

export type Outgoing = OutgoingEmail | OutgoingSms;

/** Hands a message over once; trying again is the caller's. */
export interface Transport<M extends Outgoing = Outgoing> {
  /**
   * Resolves when the provider has taken the message.
   * @throws DeliveryError: `unavailable` when it may work later (a 4xx of SMTP, a timeout, 429, 5xx),
   *   `rejected` or `invalid-number` when it never will.
   */
  deliver(message: M): Promise<void>;
  /** Closes its connections. */
  close(): Promise<void>;
}
