// Chooses each channel's transport: the configured provider, otherwise the development outbox.
import { isLoopbackAddress } from '../../http/addresses.ts';
import type { Outbound } from '../../http/outbound.ts';
import { emailProviderSchema } from '../../records/delivery.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Config, derived } from '../../tenant/config.ts';
import { connectionSms, connectionSmsProvider } from './connection-sms.ts';
import { createMailTransport, type MailSettings } from './mail.ts';
import type { Outbox } from './outbox.ts';
import { createSmsTransport, type SmsSettings } from './sms.ts';
import type { OutgoingEmail, OutgoingSms, Transport } from './transport.ts';

/** The process settings about delivery. */
interface DeliverySettings {
  /** The public origin. */
  baseUrl: string;
  /** Undefined where mail goes to the provider of the tenant or to the development outbox. */
  mail?: { smtpUrl: string; from: string | undefined };
  /** Undefined where SMS go to the provider of the connection or to the development outbox. */
  sms?: SmsSettings;
}

interface Transports {
  email: Transport<OutgoingEmail>;
  sms: Transport<OutgoingSms>;
  /** Whether a message goes to an SMS provider, and not to the outbox. */
  hasSmsProvider(message: OutgoingSms): boolean;
  /** Whether actions of the tenant deliver its mail: its provider is `custom`, and the process has none. */
  isMailCustom(): boolean;
  /** Returns the default sender of mail. */
  mailFrom(): string;
}

/** Returns the transports of a tenant. The process's settings take precedence over the tenant's. */
export function chooseTransports(
  settings: DeliverySettings,
  {
    config,
    outbound,
    outbox,
    wallClock: clock,
  }: { config: Config; outbound: Outbound; outbox: Outbox; wallClock: Clock },
): Transports {
  const { baseUrl, sms } = settings;
  const { hostname: host } = new URL(baseUrl);
  const provider = () => config.settings().emailProvider;
  const configured =
    settings.mail === undefined
      ? undefined
      : createMailTransport(smtpSettings(new URL(settings.mail.smtpUrl)), { host });
  return {
    email: configured ?? tenantMail(provider, host, outbox),
    sms: sms === undefined ? connectionSms({ outbound, clock }, outbox) : createSmsTransport(sms, outbound),
    hasSmsProvider: (message) => sms !== undefined || connectionSmsProvider(message) !== undefined,
    isMailCustom: () => {
      const { name, enabled } = emailProviderSchema.safeParse(provider() ?? {}).data ?? {};
      return settings.mail === undefined && name === 'custom' && enabled === true;
    },
    mailFrom: () => {
      const { friendly_name: name } = config.settings().tenant;
      return (
        settings.mail?.from ??
        emailProviderSchema.safeParse(provider() ?? {}).data?.default_from_address ??
        `"${name.replace(/["\\\r\n]/g, '')}" <no-reply@${host}>`
      );
    },
  };
}

/** Makes a transport to the tenant's mail server, which may change at any time; to the outbox where it has none. */
function tenantMail(provider: () => unknown, host: string, outbox: Outbox): Transport<OutgoingEmail> {
  let latest: { transport: Transport<OutgoingEmail>; sending: number } | undefined;
  const closeIfDone = (used: typeof latest) => {
    if (used !== undefined && used !== latest && used.sending === 0) used.transport.close().catch(() => {});
  };
  const current = derived(provider, (source) => {
    const before = latest;
    const mail = providerSettings(source);
    latest = { transport: mail === undefined ? outbox : createMailTransport(mail, { host }), sending: 0 };
    closeIfDone(before);
    return latest;
  });
  return {
    deliver: async (message, id) => {
      const used = current();
      used.sending += 1;
      try {
        await used.transport.deliver(message, id);
      } finally {
        used.sending -= 1;
        closeIfDone(used);
      }
    },
    close: async () => current().transport.close(),
  };
}

function providerSettings(source: unknown): MailSettings | undefined {
  const provider = emailProviderSchema.safeParse(source ?? {}).data;
  const { smtp_host, smtp_port, smtp_user, smtp_pass = '' } = provider?.credentials ?? {};
  if (provider?.enabled !== true || smtp_host === undefined || smtp_port === undefined) return undefined;
  return {
    host: smtp_host,
    port: smtp_port,
    secure: smtp_port === 465,
    allowPlain: isThisMachine(smtp_host),
    ...(smtp_user === undefined ? {} : { user: smtp_user, password: smtp_pass }),
  };
}

/** Parses an SMTP URL: `smtps:` is TLS from the first byte, `smtp:` STARTTLS. */
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

/** Names below `localhost` do not count: some resolvers look them up elsewhere. */
const isThisMachine = (host: string) => host === 'localhost' || isLoopbackAddress(host);
