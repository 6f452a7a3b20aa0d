// Wakes devices by push messages without content (RFC 8030, RFC 8292), if the tenant has VAPID keys. The device
// then fetches what to approve, so the push service learns nothing about it.
import { importJWK, SignJWT } from 'jose';
import type { Logger } from 'pino';
import type { Deliveries } from '../../../capabilities/delivery/deliveries.ts';
import { DeliveryRefused } from '../../../capabilities/delivery/delivery-refused.ts';
import type { Outbound } from '../../../http/outbound/outbound.ts';
import { hasUserInfo } from '../../../http/outbound/outbound.ts';
import { OutboundError } from '../../../http/outbound/outbound-error.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Store } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Authenticator, Authenticators } from '../authenticators.ts';
import { setPushEndpoint } from './device-records.ts';

/** The push services of browsers. A device cannot make the server call any other host. */
const SERVICES = [
  'fcm.googleapis.com',
  '.push.services.mozilla.com',
  '.push.apple.com',
  '.notify.windows.com',
];

/** How many seconds a message may wait for its device; no login waits longer. */
const TTL = 300;
const TOKEN_SECONDS = 3_600;
const TIMEOUT = 10_000;
/** Pauses between tries in milliseconds. They are short because a user waits for the device. */
const PAUSES = [1_000, 5_000, 20_000, 60_000];

export interface WebPush {
  /** Returns the VAPID public key that a page subscribes with; undefined when the tenant has none. */
  publicKey(): string | undefined;
  /** Returns whether the server may call an endpoint. */
  isService(endpoint: string): boolean;
  /**
   * Wakes a device in the background. Does nothing for a device without an endpoint. Resolves once the delivery is
   * stored.
   */
  wake(device: Authenticator): Promise<void>;
}

interface WebPushDependencies {
  config: Config;
  authenticators: Authenticators;
  clock: Clock;
  deliveries: Pick<Deliveries, 'add'>;
  log: Logger;
  outbound: Outbound;
  store: Pick<Store, 'batch'>;
  /** Whether endpoints on this machine are allowed. On a public server that would let strangers reach local services. */
  allowLoopback: boolean;
}

interface WakeUp {
  id: string;
  /** When the login is over, epoch milliseconds. */
  until: number;
}

export function createWebPush(deps: WebPushDependencies): WebPush {
  const { config, clock, store, log, allowLoopback } = deps;
  const isService = (endpoint: string) => {
    const url = URL.parse(endpoint);
    if (url === null || hasUserInfo(endpoint) || endpoint.length > 1000) return false;
    if (allowLoopback && (url.hostname === 'localhost' || url.hostname === '127.0.0.1')) return true;
    if (url.protocol !== 'https:' || url.port !== '') return false;
    return SERVICES.some(
      (one) => url.hostname === one || (one.startsWith('.') && url.hostname.endsWith(one)),
    );
  };
  const usableEndpoint = (device: Pick<Authenticator, 'pushEndpoint'> | undefined) => {
    const { pushEndpoint: endpoint } = device ?? {};
    const isUsable = endpoint !== undefined && config.settings().webPush !== undefined && isService(endpoint);
    return isUsable ? endpoint : undefined;
  };
  const prepare = deps.deliveries.add<WakeUp>({
    kind: 'web-push',
    attempt: async ({ id, until }) => {
      if (clock() >= until) return;
      // The endpoint may have changed since, or have been removed.
      const endpoint = usableEndpoint(await deps.authenticators.get(id));
      if (endpoint !== undefined) await wake(deps, id, endpoint);
    },
    isTemporary: (error) => error instanceof DeliveryRefused && error.isTemporary,
    onGiveUp: async (_waking, error) => log.warn({ err: error }, 'a device could not be woken'),
    pauses: PAUSES,
    maxDuration: TIMEOUT * 2,
    concurrency: 16,
    capacity: 5_000,
  });
  return {
    publicKey: () => config.settings().webPush?.public_key,
    isService,
    wake: async (device) => {
      if (usableEndpoint(device) === undefined) return;
      const { write, start } = prepare({ id: device.id, until: clock() + TTL * 1000 });
      await store.batch([write]);
      start();
    },
  };
}

/** Sends one message. @throws DeliveryRefused */
async function wake(deps: WebPushDependencies, id: string, endpoint: string): Promise<void> {
  const keys = deps.config.settings().webPush;
  if (keys === undefined) return;
  const authorization = await authorizationFor(deps, keys, endpoint);
  const answer = await deps.outbound
    .fetch(endpoint, {
      method: 'POST',
      headers: { authorization, ttl: String(TTL), urgency: 'high' },
      redirect: 'manual',
      timeout: TIMEOUT,
      headOnly: true,
    })
    .catch((thrown: unknown) => {
      const isTemporary = thrown instanceof OutboundError && thrown.failure !== 'refused';
      throw new DeliveryRefused('a push service could not be reached', isTemporary);
    });
  // RFC 8030 §7.3: the subscription has expired.
  if (answer.status === 404 || answer.status === 410)
    return setPushEndpoint(deps.authenticators, id, undefined);
  if (answer.ok) return;
  const isTemporary = answer.status >= 500 || answer.status === 429;
  throw new DeliveryRefused(`a push service answered ${answer.status}`, isTemporary);
}

/** Returns the `Authorization` header that identifies the tenant to a push service (RFC 8292 §2). */
async function authorizationFor(
  { clock }: WebPushDependencies,
  { public_key: publicKey, private_key: d, subject }: NonNullable<ReturnType<Config['settings']>['webPush']>,
  endpoint: string,
): Promise<string> {
  const point = Buffer.from(publicKey, 'base64url');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'));
  const key = await importJWK({ kty: 'EC', crv: 'P-256', d, x: x ?? '', y: y ?? '' }, 'ES256');
  const jwt = await new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
    .setAudience(new URL(endpoint).origin)
    .setSubject(subject)
    .setExpirationTime(epochSeconds(clock) + TOKEN_SECONDS)
    .sign(key);
  return `vapid t=${jwt}, k=${publicKey}`;
}
