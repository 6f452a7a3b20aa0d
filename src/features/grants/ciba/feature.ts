// Logins that a user approves on another device or page than the application's (OpenID Connect Client-Initiated
// Backchannel Authentication Core 1.0), in poll mode.
import { feature } from '../../../engine/feature.ts';
import { oauthShape } from '../../../http/errors.ts';
import type { Limits } from '../../../records/limits.ts';
import {
  type AuthorizationDependencies,
  authorizationAnswer,
  authorizationBody,
  authorizeBackchannel,
} from './authorization.ts';
import { type CibaGrantDependencies, cibaGrant } from './grant.ts';
import { type ApprovalPageDependencies, approvalPageRoutes } from './pages.ts';

interface CibaDependencies extends AuthorizationDependencies, ApprovalPageDependencies {}

const limits = {
  bcAuthorize: { capacity: 100, perMinute: 500, per: 'address', where: '`/bc-authorize`' },
  approvals: {
    capacity: 10,
    perMinute: 2,
    per: 'user',
    where: 'approvals that `/bc-authorize` requests from a user',
  },
} satisfies Limits;

const events = {
  seciba: 'An application got tokens for a login that its user approved.',
  feciba: 'An application got no tokens for a login that its user had to approve (CIBA).',
};

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

const authenticationRoute = {
  summary: 'Ask a user to approve a login (CIBA)',
  security: ['client'],
  body: authorizationBody,
  answers: { 200: { description: 'The `auth_req_id` for the token endpoint', body: authorizationAnswer } },
  limit: 'bcAuthorize',
  cors: 'none',
  errors: oauthShape,
  handle: async (deps: CibaDependencies, ctx: Parameters<typeof authorizeBackchannel>[1]) => {
    const answer = await authorizeBackchannel(deps, ctx);
    ctx.set('Cache-Control', 'no-store');
    ctx.body = answer;
  },
} as const;

export const ciba = feature<CibaDependencies, CibaGrantDependencies>({
  name: 'ciba',
  limits,
  events,
  grants: [cibaGrant],
  routes: {
    'POST /bc-authorize': authenticationRoute,
    'POST /oauth/bc-authorize': authenticationRoute,
    ...approvalPageRoutes,
  },
  pages: ['approval/allowed', 'approval/ask', 'approval/denied', 'approval/none'],
});
