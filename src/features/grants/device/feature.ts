// The device flow (RFC 8628): a device without a keyboard or browser shows a code, and its user logs in elsewhere.
import { feature } from '../../../engine/feature.ts';
import { oauthShape } from '../../../http/errors.ts';
import type { Limits } from '../../../records/limits.ts';
import {
  type AuthorizationDependencies,
  authorizationAnswer,
  authorizationBody,
  authorizeDevice,
} from './authorization.ts';
import { type DeviceGrantDependencies, deviceGrant } from './grant.ts';
import { type DevicePageDependencies, devicePageRoutes } from './pages.ts';

interface DeviceDependencies extends AuthorizationDependencies, DevicePageDependencies {}

const limits = {
  deviceCode: { capacity: 50, perMinute: 300, per: 'address', where: '`/oauth/device/code`' },
  userCode: { capacity: 10, perMinute: 2, per: 'address', where: 'wrong codes at `/activate`' },
  userCodeNetwork: {
    capacity: 60,
    perMinute: 10,
    per: 'network (IPv4 /24, IPv6 /48)',
    where: 'wrong codes at `/activate`',
  },
  userCodes: {
    capacity: 600,
    perMinute: 300,
    per: 'tenant',
    where: 'wrong codes at `/activate`, from all addresses',
  },
} satisfies Limits;

const events = {
  sede: 'A device got tokens for its code.',
  fede: 'A device got no tokens for its code.',
  fdeac: 'A login for a device failed; the description says why.',
  fdecc: 'A user refused the login of a device.',
};

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const device = feature<DeviceDependencies, DeviceGrantDependencies>({
  name: 'device',
  limits,
  events,
  grants: [deviceGrant],
  routes: {
    'POST /oauth/device/code': {
      limit: 'deviceCode',
      cors: 'applications',
      errors: oauthShape,
      summary: 'Begin a login for a device (RFC 8628)',
      security: ['client'],
      body: authorizationBody,
      answers: { 200: { description: 'The codes', body: authorizationAnswer } },
      handle: async (deps, ctx) => {
        const codes = await authorizeDevice(deps, ctx);
        ctx.set('Cache-Control', 'no-store');
        ctx.body = codes;
      },
    },
    ...devicePageRoutes,
  },
  pages: ['device/allowed', 'device/code', 'device/confirm', 'device/denied'],
});
