// Waking a device up (RFC 8030, RFC 8292): an empty push message, where the tenant has VAPID keys. What there is
// to approve the device asks for itself; the push service learns nothing but that there is something.
import { importJWK, SignJWT } from 'jose';
import type { Logger } from 'pino';
import type { Outbound } from '../../http/outbound.ts';
import type { Background } from '../../runtime/background.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import type { Authenticator, Authenticators } from '../authenticators.ts';
import { setPushEndpoint } from './device-records.ts';

/** Push services of browsers: nobody else's address is called, whatever a device says. */
const SERVICES = [
  'fcm.googleapis.com',
  '.push.services.mozilla.com',
  '.push.apple.com',
  '.notify.windows.com',
];

/** Seconds that a message may wait for its device; a login does not wait longer. */
const TTL = 300;
const TOKEN_SECONDS = 3_600;
const TIMEOUT = 10_000;

export interface WebPush {
  /** The key that a page subscribes with; undefined where the tenant has none. */
  publicKey(): string | undefined;
  /** Whether an address may be called. */
  isService(endpoint: string): boolean;
  /** Wakes a device, in the background; nothing happens for one that has no address. */
  wake(device: Authenticator): void;
}

interface WebPushDependencies {
  config: Config;
  authenticators: Authenticators;
  background: Background;
  clock: Clock;
  log: Logger;
  outbound: Outbound;
  /** Whether a device may name an address of this machine: a stranger's would reach what nobody else does. */
  allowLoopback: boolean;
}

/** Web Push for the devices of a tenant. */
export function createWebPush(deps: WebPushDependencies): WebPush {
  const { config, background, allowLoopback } = deps;
  const isService = (endpoint: string) => {
    const url = URL.parse(endpoint);
    if (url === null || url.username !== '' || endpoint.length > 1000) return false;
    if (allowLoopback && (url.hostname === 'localhost' || url.hostname === '127.0.0.1')) return true;
    if (url.protocol !== 'https:' || url.port !== '') return false;
    return SERVICES.some(
      (one) => url.hostname === one || (one.startsWith('.') && url.hostname.endsWith(one)),
    );
  };
  return {
    publicKey: () => config.settings().webPush?.public_key,
    isService,
    wake: (device) => {
      const { pushEndpoint: endpoint } = device;
      if (endpoint === undefined || config.settings().webPush === undefined || !isService(endpoint)) return;
      background.run('waking a device', () => wake(deps, device, endpoint));
    },
  };
}

async function wake(deps: WebPushDependencies, device: Authenticator, endpoint: string): Promise<void> {
  const keys = deps.config.settings().webPush;
  if (keys === undefined) return;
  const { public_key: publicKey, private_key: d, subject } = keys;
  const point = Buffer.from(publicKey, 'base64url');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'));
  const key = await importJWK({ kty: 'EC', crv: 'P-256', d, x: x ?? '', y: y ?? '' }, 'ES256');
  const jwt = await new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
    .setAudience(new URL(endpoint).origin)
    .setSubject(subject)
    .setExpirationTime(epochSeconds(deps.clock) + TOKEN_SECONDS)
    .sign(key);
  const answer = await deps.outbound.fetch(endpoint, {
    method: 'POST',
    headers: { authorization: `vapid t=${jwt}, k=${publicKey}`, ttl: String(TTL), urgency: 'high' },
    redirect: 'manual',
    timeout: TIMEOUT,
    headOnly: true,
  });
  // RFC 8030 §7.3: the subscription is no more.
  if (answer.status === 404 || answer.status === 410)
    await setPushEndpoint(deps.authenticators, device.id, undefined);
  else if (!answer.ok) deps.log.warn({ status: answer.status }, 'a push service refused a message');
}
