// Chooses each channel's transport: the configured provider, otherwise the development outbox.

import { SignJWT } from 'jose';
import { isLoopbackAddress } from '../../http/addresses.ts';
import type { Outbound } from '../../http/outbound.ts';
import { OutboundError } from '../../http/outbound-error.ts';
import { emailProviderSchema } from '../../records/delivery.ts';
import { gatewayKey, type SmsProvider, smsProviderOf } from '../../records/passwordless.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { type Config, derived } from '../../tenant/config.ts';
import { createMailTransport, type MailSettings } from './mail.ts';
import { DeliveryError } from './messages.ts';
import type { Outbox } from './outbox.ts';
import type { DeliverySettings } from './settings.ts';
import { createSmsTransport } from './sms.ts';
import type { OutgoingEmail, OutgoingSms, Transport } from './transport.ts';

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

// SMS through the provider that an `sms` connection names in its own options, as in the hosted service.

interface ConnectionSmsDependencies {
  outbound: Outbound;
  /** The time of day. */
  clock: Clock;
  /** Replaces Twilio's address in tests. */
  twilioUrl?: string | undefined;
}

/** Returns the provider that a message's connection names; undefined where it names none. */
function connectionSmsProvider({ source: { kind, notice } }: OutgoingSms): SmsProvider | undefined {
  return kind === 'passwordless_sms' ? smsProviderOf(notice.connection?.options) : undefined;
}

/** @param other the transport for connections that name none. */
export function connectionSms(
  deps: ConnectionSmsDependencies,
  other: Transport<OutgoingSms>,
): Transport<OutgoingSms> {
  return {
    ...other,
    deliver: async (message, id) => {
      const provider = connectionSmsProvider(message);
      const transport = provider === undefined ? other : transportOf(deps, provider);
      await transport.deliver(message, id);
    },
  };
}

function transportOf(
  { outbound, clock, twilioUrl: apiUrl }: ConnectionSmsDependencies,
  provider: SmsProvider,
): Transport<OutgoingSms> {
  if (provider.kind === 'gateway') return createSmsGateway(provider, { outbound, clock });
  const { accountSid, authToken, from, messagingServiceSid } = provider;
  const settings = {
    accountSid,
    authToken,
    ...(from !== undefined && { from }),
    ...(messagingServiceSid !== undefined && { messagingServiceSid }),
    ...(apiUrl !== undefined && { apiUrl }),
  };
  return createSmsTransport(settings, outbound);
}

// SMS through an HTTP endpoint of the operator, which gets each message as JSON.

type Gateway = Extract<SmsProvider, { kind: 'gateway' }>;

/** Longest duration of a request, milliseconds. */
const TIMEOUT = 30_000;
/** Lifetime of the token of one request, seconds. */
const TOKEN_TTL = 300;

/** @param clock the time of day. */
function createSmsGateway(
  gateway: Gateway,
  { outbound, clock }: { outbound: Pick<Outbound, 'fetch'>; clock: Clock },
): Transport<OutgoingSms> {
  return {
    deliver: async (message, id) => {
      const token = await tokenOf(gateway, clock);
      const answer = await outbound
        .fetch(gateway.url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'Idempotency-Key': `"${id}"`,
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
          },
          body: JSON.stringify(bodyOf(gateway, message)),
          redirect: 'manual',
          timeout: TIMEOUT,
        })
        .catch((thrown: unknown) => {
          const isRefused = thrown instanceof OutboundError && thrown.failure === 'refused';
          const what = isRefused ? 'is at an address that may not be called' : 'cannot be reached';
          throw new DeliveryError('unavailable', `the SMS gateway ${what}`, { cause: thrown });
        });
      refuseFailure(answer.status);
    },
    close: async () => {},
  };
}

function bodyOf({ forwardsRequest }: Gateway, { to, text, from, source: { notice } }: OutgoingSms): object {
  return {
    recipient: to,
    body: text,
    ...(from !== undefined && { sender: from }),
    ...(forwardsRequest && { req: { ip: notice.ip, user_agent: notice.userAgent } }),
  };
}

/**
 * Returns a JWT signed with the gateway's secret; undefined where it requires none.
 * @throws DeliveryError when the secret is empty.
 */
async function tokenOf({ authentication }: Gateway, clock: Clock): Promise<string | undefined> {
  if (authentication === undefined) return undefined;
  const { subject, audience } = authentication;
  const key = gatewayKey(authentication);
  if (key.length === 0) throw new DeliveryError('rejected', 'the secret of the SMS gateway holds nothing');
  const now = epochSeconds(clock);
  const token = new SignJWT()
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setAudience(audience)
    .setIssuedAt(now)
    .setExpirationTime(now + TOKEN_TTL);
  if (subject !== undefined) token.setSubject(subject);
  return token.sign(key);
}

/** @throws DeliveryError for a status other than success. The rest of the answer is ignored. */
function refuseFailure(status: number): void {
  if (status >= 200 && status < 300) return;
  if (status === 401 || status === 403)
    throw new DeliveryError('rejected', `Authentication failed while calling the SMS gateway: ${status}`);
  const isFinal = status >= 300 && status < 500 && status !== 408 && status !== 429;
  throw new DeliveryError(isFinal ? 'rejected' : 'unavailable', `the SMS gateway answered ${status}`);
}
