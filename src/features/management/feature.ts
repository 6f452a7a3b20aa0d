// The Management API.
import { feature } from '../../engine/feature.ts';
import type { Area } from '../../http/routes.ts';
import type { Limits } from '../../records/limits.ts';
import { MANAGEMENT_CALLS, type ManagementDependencies } from './calls.ts';
import { managementShape } from './errors.ts';
import { exportLinks, type LinkDependencies } from './jobs/links.ts';
import { type ManagementRoutesDependencies, routesOfCalls } from './routes.ts';

const limits = {
  management: { capacity: 300, perMinute: 1800, per: 'address', where: '`/api/v2/*`' },
} satisfies Limits;

const events = {
  sapi: 'A call of the Management API made a change; the details are who made it, what it was, and the values before and after.',
  fapi: 'A call of the Management API that would have made a change was refused.',
};

declare module '../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

/** The dependencies of the Management API. */
export type ManagementFeatureDependencies = ManagementDependencies &
  ManagementRoutesDependencies &
  LinkDependencies;

export const management = feature<ManagementFeatureDependencies>({
  name: 'management',
  limits,
  events,
  routes: { ...routesOfCalls(MANAGEMENT_CALLS), ...exportLinks },
  collections: [
    'connectionKeys',
    'documents',
    'jobs',
    'jobParts',
    'logStreamPositions',
    'invitations',
    'memberships',
    'roles',
  ],
});

/** Unknown paths below `/api/v2/` are answered in the API's error format too: clients decode no other. */
export const managementArea: Area = { prefix: '/api/v2/', limit: 'management', errors: managementShape };
