// Which transport each channel has: a provider where one is set, the development outbox otherwise.
import { isLoopbackAddress } from '../http/addresses.ts';
import { emailProviderSchema } from '../records/delivery.ts';
import type { Config } from '../tenant/config.ts';
import { createMailTransport, type MailSettings } from './mail.ts';
import type { Outbox } from './outbox.ts';
import { createSmsTransport, type SmsSettings } from './sms.ts';
import type { OutgoingEmail, OutgoingSms, Transport } from './transport.ts';

/** What of the process's settings decides how messages go out. */
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
  /** What messages come from where no template says. */
  mailFrom: string;
}

/** The transports of a tenant: the process's settings come before the tenant's. */
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

/** The settings that an SMTP URL says: `smtps:` is TLS from the first byte, `smtp:` STARTTLS. */
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

/** No other name: not every resolver keeps those below `localhost` on this machine. */
const isThisMachine = (host: string) => host === 'localhost' || isLoopbackAddress(host);
