// SMS through an HTTP endpoint of the operator, which gets each message as JSON.
import { SignJWT } from 'jose';
import type { Outbound } from '../../http/outbound.ts';
import { OutboundError } from '../../http/outbound-error.ts';
import { gatewayKey, type SmsProvider } from '../../records/passwordless.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { DeliveryError } from './messages.ts';
import type { OutgoingSms, Transport } from './transport.ts';

type Gateway = Extract<SmsProvider, { kind: 'gateway' }>;

/** Longest duration of a request, milliseconds. */
const TIMEOUT = 30_000;
/** Lifetime of the token of one request, seconds. */
const TOKEN_TTL = 300;

/** Makes a transport to a gateway. @param clock the time of day. */
export function createSmsGateway(
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
