// Chooses each channel's transport: the configured provider, else the development outbox.
import { isLoopbackAddress } from '../http/addresses.ts';
import { emailProviderSchema } from '../records/delivery.ts';
import type { Config } from '../tenant/config.ts';
import { createMailTransport, type MailSettings } from './mail.ts';
import type { Outbox } from './outbox.ts';
import { createSmsTransport, type SmsSettings } from './sms.ts';
import type { OutgoingEmail, OutgoingSms, Transport } from './transport.ts';

/** The process settings about delivery. */
export interface DeliverySettings {
  /** The public origin. */
  baseUrl: string;
  /** Real mail; the development outbox without it. */
  mail?: { smtpUrl: string; from: string | undefined };
  /** Real SMS; the development outbox without it. */
  sms?: SmsSettings;
}

export interface Transports {
  email: Transport<OutgoingEmail>;
  sms: Transport<OutgoingSms>;
  /** Default sender of mail. */
  mailFrom: string;
}

/** The transports of a tenant; the process's settings take precedence over the tenant's. */
export function chooseTransports(settings: DeliverySettings, config: Config, outbox: Outbox): Transports {
  const { hostname } = new URL(settings.baseUrl);
  const provider = emailProviderSchema.safeParse(config.settings().emailProvider ?? {}).data;
  const own = settings.mail === undefined ? undefined : smtpSettings(new URL(settings.mail.smtpUrl));
  const theirs =
    provider?.enabled === true && provider.credentials?.smtp_host !== undefined
      ? {
          host: provider.credentials.smtp_host,
          port: provider.credentials.smtp_port,
          secure: provider.credentials.smtp_port === 465,
          allowPlain: isThisMachine(provider.credentials.smtp_host),
          ...(provider.credentials.smtp_user === undefined
            ? {}
            : { user: provider.credentials.smtp_user, password: provider.credentials.smtp_pass ?? '' }),
        }
      : undefined;
  const mail = own ?? theirs;
  const { friendly_name: name } = config.settings().tenant;
  return {
    email: mail === undefined ? outbox : createMailTransport(mail, { host: hostname }),
    sms: settings.sms === undefined ? outbox : createSmsTransport(settings.sms),
    mailFrom:
      settings.mail?.from ??
      provider?.default_from_address ??
      `"${name.replace(/["\\\r\n]/g, '')}" <no-reply@${hostname}>`,
  };
}

/** Reads an SMTP URL: `smtps:` is TLS from the first byte, `smtp:` STARTTLS. */
export function smtpSettings(url: URL): MailSettings {
  const secure = url.protocol === 'smtps:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return {
    host,
    port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
    secure,
    allowPlain: isThisMachine(host),
    ...(url.username === ''
      ? {}
      : { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }),
  };
}

/** Not names below `localhost`: some resolvers look them up elsewhere. */
const isThisMachine = (host: string) => host === 'localhost' || isLoopbackAddress(host);
