// What features see of delivery: a message of a kind, to one person. Which template, which language, which
// provider, how often it is tried again: all that is behind this.
import type { Languages } from '../http/languages.ts';
import type { Client, Connection, Organization } from '../records/collections.ts';
import type { User } from '../users/user.ts';

/**
 * By their names in the tenant file's `emailTemplates`; `password_changed` is ours, and the template of
 * `passwordless_email` is in the connection's options.
 */
export type EmailKind =
  | 'verify_email'
  | 'reset_email'
  | 'welcome_email'
  | 'blocked_account'
  | 'mfa_oob_code'
  | 'password_changed'
  | 'passwordless_email';

/** `passwordless_sms`: its template is in the connection's options. */
export type SmsKind = 'passwordless_sms' | 'mfa_sms';

export type MessageKind = EmailKind | SmsKind;

/** One message: whom it goes to, and what its template may say. */
export interface Notice {
  /** An e-mail address, or a phone number in E.164. */
  to: string;
  application?: Client | undefined;
  connection?: Connection | undefined;
  organization?: Organization | undefined;
  user?: User | undefined;
  /** The link, where the kind has one. */
  url?: string;
  /** The code, where the kind has one. */
  code?: string;
  languages?: Languages | undefined;
  /** Who asked, for the log event. */
  ip?: string;
}

/** A message that could not be handed over, after whatever was tried. */
export class DeliveryError extends Error {
  readonly code: 'unavailable' | 'rejected' | 'invalid-number' | 'queue-full';
  /** The provider's own number for it, such as Twilio's 21211. */
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

/** The code or link in a message. */
export interface Carried {
  /** Called once when the message is given up: what nobody was sent must not stay valid. */
  revoke(): Promise<void>;
  /** Seconds for which it is good: the message is not sent later than that. */
  ttlSeconds: number;
}

export interface Messages {
  /**
   * Sends, and waits for about two seconds: until the provider has taken the message, or three tries have
   * failed. What is not decided by then goes on as with {@link Messages.post}, and this resolves.
   * @throws DeliveryError when the message was given up meanwhile.
   */
  send(kind: MessageKind, notice: Notice, carried?: Carried): Promise<void>;
  /** Sends in the background, trying again for longer; nobody waits, the outcome is a log event. */
  post(kind: MessageKind, notice: Notice, carried?: Carried): void;
  /** What the tenant file says of an e-mail template, with what it leaves out filled in. */
  template(kind: EmailKind): TemplateSettings;
  /** Waits for what is in the queue, at most `ms` milliseconds; what is left then is logged as not sent. */
  flush(ms: number): Promise<void>;
}

export interface TemplateSettings {
  enabled: boolean;
  /** How long the link in it may be used. */
  urlLifetimeInSeconds: number;
  /** Where the person goes from the page behind the link. */
  resultUrl?: string;
  includeEmailInRedirect: boolean;
}
