// Chooses each channel's transport: the configured provider, otherwise the development outbox.

import type { Outbound } from '../../http/outbound/outbound.ts';
import type { Transport } from '../../records/base/message-transport.ts';
import { smsProviderOf } from '../../records/connections/passwordless.ts';
import type { MailNeeds, MailServer } from '../../records/mail-providers/mail-provider.ts';
import { isThisMachine } from '../../records/mail-providers/smtp.ts';
import type { ConnectionSms, SmsNeeds, TwilioAccount } from '../../records/sms-providers/sms-provider.ts';
import { emailProviderSchema, mailProviderOf, tenantMail } from '../../records/tenant/delivery.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Config, derived } from '../../tenant/config.ts';
import type { DeliverySettings } from './delivery-settings.ts';
import { createMailTransport } from './mail.ts';
import type { Outbox } from './outbox.ts';
import { createSmsTransport } from './sms.ts';
import type { OutgoingEmail, OutgoingSms } from './transport.ts';

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
  settings: DeliverySettings & { baseUrl: string },
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
  const smtp = (server: MailServer) => createMailTransport(server, { host });
  const twilio = (account: TwilioAccount) => createSmsTransport(account, outbound);
  return {
    email:
      settings.mail === undefined
        ? tenantTransport(provider, { outbound, clock, smtp }, outbox)
        : smtp(smtpSettings(new URL(settings.mail.smtpUrl))),
    sms: sms === undefined ? connectionSms({ outbound, clock, twilio }, outbox) : twilio(sms),
    hasSmsProvider: (message) => sms !== undefined || connectionSmsProvider(message) !== undefined,
    isMailCustom: () => {
      const { name, enabled } = emailProviderSchema.safeParse(provider() ?? {}).data ?? {};
      return settings.mail === undefined && enabled === true && mailProviderOf(name).isByActions;
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

/** Makes a transport to the tenant's provider, which may change at any time; to the outbox where it has none. */
function tenantTransport(
  provider: () => unknown,
  needs: MailNeeds,
  outbox: Outbox,
): Transport<OutgoingEmail> {
  let latest: { transport: Transport<OutgoingEmail>; sending: number } | undefined;
  const closeIfDone = (used: typeof latest) => {
    if (used !== undefined && used !== latest && used.sending === 0) used.transport.close().catch(() => {});
  };
  const current = derived(provider, (source) => {
    const before = latest;
    latest = { transport: tenantMail(source)?.transport(needs) ?? outbox, sending: 0 };
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

/** Parses an SMTP URL: `smtps:` is TLS from the first byte, `smtp:` STARTTLS. */
export function smtpSettings(url: URL): MailServer {
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

// SMS through the provider that an `sms` connection names in its own options, as in the hosted service.

/** Returns the provider that a message's connection names; undefined where it names none. */
function connectionSmsProvider({ source: { kind, notice } }: OutgoingSms): ConnectionSms | undefined {
  return kind === 'passwordless_sms' ? smsProviderOf(notice.connection?.options) : undefined;
}

/** @param other the transport for connections that name none. */
export function connectionSms(needs: SmsNeeds, other: Transport<OutgoingSms>): Transport<OutgoingSms> {
  return {
    ...other,
    deliver: async (message, id) => {
      const provider = connectionSmsProvider(message);
      if (provider === undefined) return other.deliver(message, id);
      const { ip, userAgent } = message.source.notice;
      await provider
        .transport(needs)
        .deliver(
          { ...message, ...(ip !== undefined && { ip }), ...(userAgent !== undefined && { userAgent }) },
          id,
        );
    },
  };
}
