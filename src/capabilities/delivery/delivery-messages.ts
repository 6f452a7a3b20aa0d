// The interface of delivery to features: send a message of a kind to a person. It hides template, language, provider
// and retries.
import type { Languages } from '../../http/languages.ts';
import type { Client, Connection, Organization } from '../../records/collections.ts';
import type { PhoneTemplateType } from '../../records/tenant/phone-templates.ts';
import type { Write } from '../../store/contract.ts';
import type { User } from '../../users/user.ts';

/**
 * Kinds of e-mails, named as in the tenant file's `emailTemplates`. `password_changed`, `method_…`, `account_changed`
 * and `email_change_…` are our own. The template of `passwordless_email` is in the connection's options.
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

/** Kinds of SMS. The template of `passwordless_sms` is in the connection's options. */
export type SmsKind = 'passwordless_sms' | 'mfa_sms';

export type MessageKind = EmailKind | SmsKind;

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
  /** The person who invites the recipient to an organization. */
  inviter?: { readonly name: string };
  url?: string;
  code?: string;
  /** The published type of the factor or passkey that was added or removed. */
  method?: string;
  /** What has changed, in an `account_changed` message. */
  change?: AccountChange;
  address?: string;
  /** What an application asks the recipient to approve, with visible characters only. */
  details?: readonly MessageDetail[];
  /** Whether the code confirms the enrolment of a second factor. */
  isEnrollment?: boolean;
  /** The type of the phone template that the message only tries. */
  phoneTemplate?: PhoneTemplateType;
  /** Lifetime of the link or code, where the template does not decide it. */
  lifetimeInSeconds?: number;
  /** Those of the request that caused the message. */
  languages?: Languages | undefined;
  /** The language that the sender asked for; it precedes the user's own. */
  locale?: string | undefined;
  /** IP address of the request that caused the message, for the log event. */
  ip?: string;
  /** `User-Agent` of that request, for providers that get it. */
  userAgent?: string;
}

/** One of the `authorization_details` (RFC 9396): rendered by the API's template, or else listed in full. */
export interface MessageDetail {
  type: string;
  html?: string;
  lines: readonly { readonly name: string; readonly value: string }[];
}

export interface MessageCredential {
  /**
   * Refers to the credential, which is revoked when the message is given up: an unsent credential must not stay valid.
   */
  ref?: CredentialRef;
  /** Lifetime, seconds. The message is not sent after it. */
  ttlSeconds: number;
}

export interface CredentialRef {
  id: string;
  secretHash: string;
}

/**
 * A message that is not stored yet. The caller stores it in the same write as its cause, and then calls `send` or
 * `post`.
 */
export interface PreparedMessage {
  write: Write;
  // docs/understand/decisions/passwordless-messages.md#a-request-waits-for-a-message-where-the-caller-must-know-the-outcome
  /**
   * Sends the message and waits until the provider has accepted it, three tries have failed, or two seconds have
   * passed. In the last case sending continues as with {@link PreparedMessage.post}, and this resolves.
   * @throws DeliveryError when the message was given up meanwhile.
   */
  send(): Promise<void>;
  /** Sends in the background with more retries; the outcome is a log event. */
  post(): void;
}

export interface Messages {
  prepare(kind: MessageKind, notice: Notice, credential?: MessageCredential): PreparedMessage;
  /** Makes a message that is stored and never sent, where the absence of a message must not be observable. */
  decoy(kind: MessageKind, notice: Notice): PreparedMessage;
  /** Stores a message by itself and sends it in the background. */
  post(kind: MessageKind, notice: Notice, credential?: MessageCredential): Promise<void>;
  template(kind: EmailKind): TemplateSettings;
  close(): Promise<void>;
}

export interface TemplateSettings {
  enabled: boolean;
  urlLifetimeInSeconds: number;
  /** Where the page behind the link leads. */
  resultUrl?: string;
  includeEmailInRedirect: boolean;
}
