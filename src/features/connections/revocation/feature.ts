// Identity providers revoke the sessions of their users (global token revocation).
import { feature } from '../../../engine/feature.ts';
import { oauthShape } from '../../../http/errors.ts';
import type { Limits } from '../../../records/limits.ts';
import { REVOCATION, type RevocationDependencies, revocationBody, revokeGlobally } from './revoke.ts';

const limits = {
  globalRevocation: { capacity: 100, perMinute: 300, per: 'address', where: `\`${REVOCATION}/*\`` },
} satisfies Limits;

const events = {
  universal_logout_succeeded: "An identity provider ended a user's sessions and refresh tokens.",
  universal_logout_failed: "An identity provider's request to end a user's sessions matched no user.",
};

declare module '../../../records/limits.ts' {
  interface LimitNames extends Record<keyof typeof limits, Bucket> {}
}

declare module '../../../records/log-events.ts' {
  interface EventTypes extends Record<keyof typeof events, string> {}
}

export const revocation = feature<RevocationDependencies>({
  name: 'revocation',
  limits,
  events,
  routes: {
    [`POST ${REVOCATION}/:connection` as const]: {
      limit: 'globalRevocation',
      cors: 'none',
      errors: oauthShape,
      summary: "End a user's sessions and refresh tokens, by a JWT that their identity provider signs",
      body: revocationBody,
      bodyTypes: ['json'],
      answers: { 204: 'The sessions and refresh tokens have ended' },
      handle: async (deps, ctx) => {
        await revokeGlobally(deps, ctx);
        ctx.status = 204;
      },
    },
  },
});
