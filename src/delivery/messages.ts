// Delivery's interface to features: send a message of a kind to a person. Template, language, provider and retries are
// hidden behind it.
import type { Languages } from '../http/languages.ts';
import type { Client, Connection, Organization } from '../records/collections.ts';
import type { Write } from '../store/contract.ts';
import type { User } from '../users/user.ts';

/**
 * Named as in the tenant file's `emailTemplates`; `password_changed`, `method_…`, `account_changed` and those of a change of
 * address are our own, and the template of `passwordless_email` is in the connection's options.
 */
export type EmailKind =
  | 'verify_email'
  | 'reset_email'
  | 'welcome_email'
  | 'user_invitation'
  | 'administrator_invitation'
  | 'enrollment_email'
  | 'blocked_account'
  | 'mfa_oob_code'
  | 'async_approval'
  | 'password_changed'
  | 'method_added'
  | 'method_removed'
  | 'account_changed'
  | 'email_change_allow'
  | 'email_change_prove'
  | 'passwordless_email';

/** `passwordless_sms`: its template is in the connection's options. */
export type SmsKind = 'passwordless_sms' | 'mfa_sms';

export type MessageKind = EmailKind | SmsKind;

/** What a user is told of that has changed of their account. */
export type AccountChange =
  | 'email'
  | 'linked'
  | 'unlinked'
  | 'phone'
  | 'connected'
  | 'disconnected'
  | 'deleted';

/** A message: recipient and template variables. */
export interface Notice {
  /** An e-mail address, or a phone number in E.164. */
  to: string;
  application?: Client | undefined;
  connection?: Connection | undefined;
  organization?: Organization | undefined;
  user?: User | undefined;
  /** Who asks somebody to an organization. */
  inviter?: { readonly name: string };
  url?: string;
  code?: string;
  /** What of what one logs in with was added or removed: its published type. */
  method?: string;
  /** What has changed, of `account_changed`. */
  change?: AccountChange;
  /** The new address, of a change of address. */
  address?: string;
  /** Whether the code is to confirm a second factor that is new. */
  isEnrollment?: boolean;
  /** How long link or code are good, where the template does not decide it. */
  lifetimeInSeconds?: number;
  languages?: Languages | undefined;
  /** Address of who asked for it, for the log event. */
  ip?: string;
  /** Their `User-Agent`, where a provider is told of it. */
  userAgent?: string;
}

/** A message that was given up after all tries. */
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

/** The credential in a message. */
export interface Carried {
  /** What it is taken back by when the message is given up: an unsent credential must not stay valid. */
  ref?: CredentialRef;
  /** Lifetime, seconds; the message is not sent after it. */
  ttlSeconds: number;
}

/** Says which credential is meant, to whoever keeps it. */
export interface CredentialRef {
  id: string;
  secretHash: string;
}

/** A message that is yet to be written, together with what it follows from. Once it is, one of the others is called. */
export interface Letter {
  write: Write;
  /**
   * Sends and waits: until the provider has taken the message, three tries have failed, or two seconds have passed. What
   * is undecided then continues as with {@link Letter.post}, and this resolves.
   * @throws DeliveryError when the message was given up meanwhile.
   */
  send(): Promise<void>;
  /** Sends in the background with more retries; the outcome is a log event. */
  post(): void;
}

export interface Messages {
  /** A message. */
  letter(kind: MessageKind, notice: Notice, carried?: Carried): Letter;
  /** What is written, and comes to nobody, where a message must not be seen to be missing. */
  decoy(kind: MessageKind, notice: Notice): Letter;
  /** Writes a message by itself, and has it sent in the background. */
  post(kind: MessageKind, notice: Notice, carried?: Carried): Promise<void>;
  /** Settings of an e-mail template, with defaults. */
  template(kind: EmailKind): TemplateSettings;
  /** Closes the connections to providers. */
  close(): Promise<void>;
}

export interface TemplateSettings {
  enabled: boolean;
  /** Lifetime of the link. */
  urlLifetimeInSeconds: number;
  /** Where the page behind the link leads. */
  resultUrl?: string;
  includeEmailInRedirect: boolean;
}
