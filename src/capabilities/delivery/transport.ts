// A rendered message, as transports get it: mail server, provider, development outbox.
import type { Mail, TextMessage } from '../../records/base/message-transport.ts';
import type { EmailKind, Notice, SmsKind } from './delivery-messages.ts';

export interface OutgoingEmail extends Mail {
  channel: 'email';
  /** Shown in the development inbox. */
  code?: string;
  link?: string;
  /** What the message was rendered from; undefined for one that only tests the provider. */
  source?: { kind: EmailKind; notice: Notice; locale: string };
}

export interface OutgoingSms extends Pick<TextMessage, 'to' | 'text' | 'from'> {
  channel: 'sms';
  code?: string;
  /** What the message was rendered from. */
  source: { kind: SmsKind; notice: Notice; locale?: string };
}

export type Outgoing = OutgoingEmail | OutgoingSms;
