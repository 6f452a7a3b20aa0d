// How mail and text messages leave.
import { z } from 'zod';
import { isCallable } from '../../http/outbound/outbound.ts';
import type { TwilioAccount } from '../../records/sms-providers/sms-provider.ts';
import { present, settingsGroup } from '../../runtime/settings-group.ts';

export interface DeliverySettings {
  /** Undefined where mail goes to the provider of the tenant, or to the development outbox. */
  mail?: { smtpUrl: string; from: string | undefined } | undefined;
  /** Undefined where SMS go to the provider of the connection, or to the development outbox. */
  sms?: TwilioAccount | undefined;
}

export const deliverySettings = settingsGroup({
  variables: {
    SMTP_URL: z.string().optional().meta({
      isSecret: true,
      description:
        'the mail server: `smtps://user:password@host` or `smtp://user:password@host` (STARTTLS); without it, and without a provider in the tenant file, mail goes to the development inbox',
    }),
    MAIL_FROM: z
      .string()
      .regex(
        /^[^\r\n]*[^\s@<>]@[^\s@<>]+>?$/,
        'must be an e-mail address, with or without a name: Example <login@example.com>',
      )
      .optional()
      .meta({ description: 'the sender of mail; required with `SMTP_URL`' }),
    TWILIO_ACCOUNT_SID: z
      .string()
      .optional()
      .meta({ description: 'the Twilio account for SMS; required with `TWILIO_AUTH_TOKEN`' }),
    TWILIO_AUTH_TOKEN: z
      .string()
      .optional()
      .meta({ isSecret: true, description: 'the token of the Twilio account' }),
    TWILIO_FROM: z
      .string()
      .optional()
      .meta({ description: 'the sender of SMS; set this or `TWILIO_MESSAGING_SERVICE_SID`' }),
    TWILIO_MESSAGING_SERVICE_SID: z
      .string()
      .optional()
      .meta({ description: 'the Twilio messaging service that sends SMS' }),
    TWILIO_API_URL: z
      .string()
      .refine(isCallable, 'must be an http or https address without user and password')
      .optional()
      .meta({ description: 'another address of the Twilio API, for tests' }),
  },
  // None quotes the value: an SMTP URL holds a password.
  faults: (own) => {
    const faults: string[] = [];
    const smtp = own.SMTP_URL === undefined ? undefined : smtpFault(own.SMTP_URL);
    if (smtp !== undefined) faults.push(`SMTP_URL: ${smtp}`);
    if (own.SMTP_URL !== undefined && own.MAIL_FROM === undefined)
      faults.push('MAIL_FROM: required with SMTP_URL, such as "Example <login@example.com>"');
    const { TWILIO_ACCOUNT_SID: sid, TWILIO_AUTH_TOKEN: token } = own;
    if ((sid === undefined) !== (token === undefined))
      faults.push('TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN: one does not work without the other');
    if (sid !== undefined && !sid.startsWith('AC')) faults.push('TWILIO_ACCOUNT_SID: must start with AC');
    const senders = [own.TWILIO_FROM, own.TWILIO_MESSAGING_SERVICE_SID].filter((one) => one !== undefined);
    if (sid !== undefined && senders.length !== 1)
      faults.push('TWILIO_FROM, TWILIO_MESSAGING_SERVICE_SID: exactly one of them is required');
    return faults;
  },
  settings: (own): DeliverySettings => {
    const { TWILIO_ACCOUNT_SID: accountSid, TWILIO_AUTH_TOKEN: authToken } = own;
    return {
      mail: own.SMTP_URL === undefined ? undefined : { smtpUrl: own.SMTP_URL, from: own.MAIL_FROM },
      sms:
        accountSid === undefined || authToken === undefined
          ? undefined
          : present({
              accountSid,
              authToken,
              from: own.TWILIO_FROM,
              messagingServiceSid: own.TWILIO_MESSAGING_SERVICE_SID,
              apiUrl: own.TWILIO_API_URL,
            }),
    };
  },
});

const SMTP_FORM =
  'must be smtps://user:password@host:465 or smtp://user:password@host:587 (in user and password write / as %2F, ? as %3F, # as %23, @ as %40)';

/** Returns the fault of an SMTP URL, without quoting it; undefined where it has none. */
function smtpFault(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^smtps?:$/.test(url.protocol)) return SMTP_FORM;
  if (url.hostname === '') return `${SMTP_FORM}: it names no host`;
  if (url.port === '0') return `${SMTP_FORM}: its port is 0`;
  // Query options would be ignored silently. An unescaped `#` in a password ends up here, too.
  if (/[?#]/.test(text) || !['', '/'].includes(url.pathname)) {
    return `${SMTP_FORM}: it has more after the host`;
  }
  if (url.username === '' && url.password !== '') return `${SMTP_FORM}: it has a password and no user`;
  if (url.hostname.includes('%')) return `${SMTP_FORM}: its host has a %`;
  try {
    decodeURIComponent(url.username + url.password);
    return undefined;
  } catch {
    return 'its user or password has a % that stands for no character (write % as %25)';
  }
}
