// SMS through an HTTP endpoint of the operator, which gets each message as JSON.
import { SignJWT } from 'jose';
import { z } from 'zod';
import { isCallable } from '../../http/outbound/outbound.ts';
import { OutboundError } from '../../http/outbound/outbound-error.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { open, secret } from '../base/members.ts';
import { DeliveryError, type TextMessage, type Transport } from '../base/message-transport.ts';
import { type SmsNeeds, smsProvider } from './sms-provider.ts';

/** A boolean; tools write it as text too. */
const flag = z.union([z.boolean(), z.enum(['true', 'false', '']).transform((given) => given === 'true')]);

const gatewayAuthentication = z.looseObject({
  method: z.enum(['bearer']),
  subject: z.string().max(64).optional(),
  audience: z.string().max(128),
  secret: z.string().min(1).max(5120),
  secret_base64_encoded: flag.default(false),
});

type GatewayAuthentication = z.output<typeof gatewayAuthentication>;

export const gateway = smsProvider({
  name: 'sms_gateway',
  options: {
    gateway_url: open(z.string().max(2048).optional()),
    gateway_authentication: secret(gatewayAuthentication.optional(), '.secret'),
    /** Whether the gateway gets data of the request that asked for the message. */
    forward_req_info: open(flag.default(false)),
  },
  faults: ({ gateway_url: url = '', gateway_authentication: authentication }) => [
    ...(url !== '' && !isCallable(url)
      ? [
          {
            path: ['gateway_url'],
            message:
              'must be an http or https address without user and password: gateway_authentication says who calls',
          },
        ]
      : []),
    ...(authentication !== undefined && gatewayKey(authentication).length === 0
      ? [{ path: ['gateway_authentication', 'secret'], message: 'holds nothing in base64' }]
      : []),
  ],
  open: ({ gateway_url: url, gateway_authentication: authentication, forward_req_info: forwardsRequest }) =>
    url
      ? {
          address: url,
          forwardsRequest,
          transport: (needs) => gatewayTransport({ url, authentication, forwardsRequest }, needs),
        }
      : undefined,
});

interface Gateway {
  url: string;
  authentication: GatewayAuthentication | undefined;
  forwardsRequest: boolean;
}

/** Returns the key that is shared with a gateway; empty if the secret is not valid base64. */
function gatewayKey({ secret: text, secret_base64_encoded: isEncoded }: GatewayAuthentication): Buffer {
  return Buffer.from(text, isEncoded ? 'base64url' : 'utf8');
}

/** Longest duration of a request, milliseconds. */
const TIMEOUT = 30_000;
/** Lifetime of the token of one request, seconds. */
const TOKEN_TTL = 300;

function gatewayTransport(gateway: Gateway, { outbound, clock }: SmsNeeds): Transport<TextMessage> {
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

function bodyOf({ forwardsRequest }: Gateway, { to, text, from, ip, userAgent }: TextMessage): object {
  return {
    recipient: to,
    body: text,
    ...(from !== undefined && { sender: from }),
    ...(forwardsRequest && { req: { ip, user_agent: userAgent } }),
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
