// SMS through the provider that an `sms` connection names in its own options, as in the hosted service.
import type { Outbound } from '../../http/outbound.ts';
import { type SmsProvider, smsProviderOf } from '../../records/passwordless.ts';
import type { Clock } from '../../runtime/clock.ts';
import { createSmsTransport } from './sms.ts';
import { createSmsGateway } from './sms-gateway.ts';
import type { OutgoingSms, Transport } from './transport.ts';

interface ConnectionSmsDependencies {
  outbound: Outbound;
  /** The time of day. */
  clock: Clock;
  /** Replaces Twilio's address in tests. */
  twilioUrl?: string | undefined;
}

/** Returns the provider that a message's connection names; undefined where it names none. */
export function connectionSmsProvider({ source: { kind, notice } }: OutgoingSms): SmsProvider | undefined {
  return kind === 'passwordless_sms' ? smsProviderOf(notice.connection?.options) : undefined;
}

/** Makes a transport to the providers of connections. @param other the transport for connections that name none. */
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
