// How mail and text messages leave: what a transport gets, and how it fails.

/** An e-mail, as a mail server or provider gets it. */
export interface Mail {
  to: string;
  /** `Name <address>` or the address. */
  from: string;
  subject: string;
  text: string;
  html: string;
}

/** A text message, as an SMS provider gets it. */
export interface TextMessage {
  /** E.164. */
  to: string;
  text: string;
  /** The connection's sender; default: the transport's. */
  from?: string;
  /** IP address and `User-Agent` of the request that asked for the message. */
  ip?: string;
  userAgent?: string;
}

/** Delivers a message once; callers retry. */
export interface Transport<Message> {
  /**
   * Resolves when the provider has accepted the message.
   * @param id id of the message, the same at each try, by which a provider or receiver can recognise duplicates.
   * @throws DeliveryError `unavailable` when temporary (SMTP 4yz, timeout, 429, 5xx), `rejected` or `invalid-number`
   * when permanent.
   */
  deliver(message: Message, id: string): Promise<void>;
  close(): Promise<void>;
}

/** A failed try to send a message. Thrown to callers when the message was given up. */
export class DeliveryError extends Error {
  readonly code: 'unavailable' | 'rejected' | 'invalid-number' | 'queue-full';
  /** The provider's error code, such as Twilio's 21211. */
  readonly providerCode: string | undefined;

  constructor(
    code: DeliveryError['code'],
    message: string,
    options: { providerCode?: string; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'DeliveryError';
    this.code = code;
    this.providerCode = options.providerCode;
  }
}
