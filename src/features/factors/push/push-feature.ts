// The authenticator: the page that approves logins, and the API behind it.

import { PassThrough } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { z } from 'zod';
import { declarePage, type Views } from '../../../capabilities/pages/views.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { feature } from '../../../engine/provider/feature.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { httpLimits, limitsOf } from '../../../http/limits.ts';
import { required } from '../../../http/parameter-schemas.ts';
import { bodyOf } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import {
  answerRequest,
  type DeviceDependencies,
  enrollDevice,
  enrolledDevice,
  enrollment,
  identify,
  subscribeDevice,
  waitingRequest,
  waitingRequests,
} from './devices.ts';
import type { Streams } from './streams.ts';

// Routes of the authenticator: the page that approves logins, and its API (docs/reference/authenticator-api.md).

interface DeviceRoutesDependencies extends DeviceDependencies {
  views: Views;
  log: Logger;
  rateLimits: Pick<RateLimits, 'spend'>;
  streams: Streams;
  /** Aborted when the server stops. Streams end with it. */
  ending: AbortSignal;
}

const PATH = '/authenticator';
/** How often a stream checks for changes, and how long it lives before the page opens another; milliseconds. */
const POLL_INTERVAL = 1_000;
const STREAM_LIFETIME = 55_000;

const file = { limit: httpLimits.other, errors: 'page' } as const;
const api = {
  limit: httpLimits.other,
  cors: 'applications',
  errors: oauthShape,
  security: ['device'],
} as const;

/** The routes of the authenticator: the page, its files, and its API. */
const deviceRoutes: RouteDeclarations<DeviceRoutesDependencies> = {
  'GET|HEAD /authenticator': { ...file, cors: 'none', handle: showPage },
  'GET|HEAD /authenticator/manifest.webmanifest': { ...file, cors: 'applications', handle: sendManifest },
  'GET|HEAD /authenticator/worker.js': { ...file, cors: 'applications', handle: sendWorker },
  'POST /authenticator/devices': {
    ...api,
    security: [],
    summary: 'Enrol a device with the ticket of a QR code',
    uncheckedBody: enrollment,
    answers: { 200: { description: 'The device', body: enrolledDevice } },
    handle: async (deps, ctx) => {
      ctx.body = await enrollDevice(deps, bodyOf(ctx), ctx.ip);
    },
  },
  'POST /authenticator/push': {
    ...api,
    summary: 'Register the push endpoint of the device, which the assertion contains',
    answers: { 204: 'Stored' },
    handle: async (deps, ctx) => {
      await subscribeDevice(deps, assertionOf(ctx));
      ctx.status = 204;
    },
  },
  'GET /authenticator/requests': {
    ...api,
    summary: 'The logins that wait for the device, newest first',
    answers: { 200: { description: 'The logins', body: z.array(waitingRequest) } },
    handle: async (deps, ctx) => {
      ctx.set('Cache-Control', 'no-store');
      ctx.body = (await waitingRequests(deps, (await identify(deps, assertionOf(ctx))).id)) ?? [];
    },
  },
  'POST /authenticator/requests/:id': {
    ...api,
    summary: 'Allow or reject a login, as the assertion says',
    answers: { 204: 'Accepted' },
    handle: async (deps, ctx) => {
      await answerRequest(deps, String(ctx.params.id), assertionOf(ctx), ctx.ip);
      ctx.status = 204;
    },
  },
  'GET /authenticator/events': {
    ...api,
    security: [],
    summary: 'The logins that wait for the device, as server-sent events',
    query: z.object({
      assertion: required('The JWT that other requests have in the header `Authorization: Device`.'),
    }),
    answers: {
      200: { description: 'The list, whenever it changes', body: z.string(), type: 'text/event-stream' },
    },
    handle: stream,
  },
};

interface AuthenticatorModel {
  origin: string;
  pushKey: string | undefined;
}

export const AUTHENTICATOR_PAGE = declarePage<AuthenticatorModel>('authenticator');

async function showPage(deps: DeviceRoutesDependencies, ctx: Context): Promise<void> {
  const model = { origin: deps.baseUrl, pushKey: deps.webPush.publicKey() };
  await deps.views.page(ctx, AUTHENTICATOR_PAGE, model);
  // The page scans QR codes with the camera; no other page may.
  ctx.set('Permissions-Policy', 'camera=(self)');
}

function sendManifest(deps: DeviceRoutesDependencies, ctx: Context): void {
  const { friendly_name: name } = deps.config.settings().tenant;
  ctx.type = 'application/manifest+json';
  ctx.body = {
    name: `${name} Authenticator`,
    short_name: name,
    start_url: PATH,
    scope: PATH,
    display: 'standalone',
    icons: [{ src: deps.views.assets.path('mark.svg'), sizes: 'any', type: 'image/svg+xml' }],
  };
}

function sendWorker(deps: DeviceRoutesDependencies, ctx: Context): void {
  // By default a service worker controls only paths below its own, which would leave out the page itself.
  ctx.set('Service-Worker-Allowed', PATH);
  ctx.set('Cache-Control', 'no-cache');
  ctx.type = 'text/javascript';
  ctx.body = deps.views.assets.content('authenticator-worker.js');
}

function assertionOf(ctx: Context): string {
  const assertion = /^Device ([^\s]+)$/i.exec(ctx.get('Authorization'))?.[1];
  if (assertion === undefined) throw new AuthError(401, 'access_denied', 'Unauthorized');
  return assertion;
}

/**
 * Sends the requests that wait for a device as server-sent events: the whole list whenever it changes. The
 * assertion is in the query, because an EventSource sends no headers. It is at most a minute old and never logged.
 * @throws AuthError 401 when the assertion is not from a device of ours, 429 when the user's devices open too many
 *   streams.
 */
async function stream(deps: DeviceRoutesDependencies, ctx: Context): Promise<void> {
  const { assertion } = ctx.query;
  const device = await identify(deps, typeof assertion === 'string' ? assertion : '');
  if (!(await deps.rateLimits.spend(limits.deviceStream, device.userId)))
    throw new AuthError(429, 'too_many_requests', 'Too many event streams. Try again in a minute.');
  const events = new PassThrough();
  const disconnected = new AbortController();
  const { replaced, close } = deps.streams.open(device.userId);
  const signal = AbortSignal.any([deps.ending, disconnected.signal, replaced]);
  events.once('close', () => disconnected.abort());
  ctx.set('Cache-Control', 'no-store');
  ctx.type = 'text/event-stream';
  ctx.body = events;
  void sendChanges(deps, device.id, events, signal)
    .then(() => {
      // The page reconnects when a stream ends. This event tells it not to, because newer streams replaced this
      // one.
      if (replaced.aborted) events.write('event: replaced\ndata: \n\n');
    })
    .catch((error: unknown) => deps.log.warn({ err: error }, 'a stream of the authenticator broke'))
    .finally(() => {
      close();
      events.end();
    });
}

async function sendChanges(
  deps: DeviceRoutesDependencies,
  deviceId: string,
  events: PassThrough,
  signal: AbortSignal,
): Promise<void> {
  let last = '';
  for (let elapsed = 0; elapsed < STREAM_LIFETIME && !signal.aborted; elapsed += POLL_INTERVAL) {
    const waiting = await waitingRequests(deps, deviceId);
    // The device was removed in the meantime; its next assertion is refused.
    if (waiting === undefined) return;
    const list = JSON.stringify(waiting);
    if (list !== last) events.write(`event: requests\ndata: ${list}\n\n`);
    last = list;
    await wait(POLL_INTERVAL, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

const limits = limitsOf({
  deviceStream: {
    capacity: 60,
    perMinute: 60,
    per: 'user',
    where: 'event streams that the devices of a user open; each ends after at most a minute',
  },
});

export const authenticator = feature<DeviceRoutesDependencies>({
  name: 'authenticator',
  hasResources: true,
  limits,
  routes: deviceRoutes,
});
