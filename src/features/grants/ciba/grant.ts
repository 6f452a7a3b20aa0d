// The CIBA grant, for a request that its user has approved (OpenID Connect CIBA Core 1.0 §10.1, §11).
import { z } from 'zod';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { toResource } from '../../../engine/audience.ts';
import { type BackchannelPollResult, pollBackchannelRequest } from '../../../engine/backchannel-requests.ts';
import { completedRequest } from '../../../engine/second-factor.ts';
import type { GrantDeclaration } from '../../../engine/tokens.ts';
import { requiredField } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import { required } from '../../../http/parameter-schemas.ts';
import { asksEachTime } from '../../../records/apis.ts';
import { authenticationMethod } from '../../../records/client-authentication.ts';
import { profileOf } from '../../../records/compliance-levels.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Config } from '../../../tenant/config.ts';
import { CIBA_GRANT } from './callbacks.ts';
import { readRequestId } from './request-id.ts';

export interface CibaGrantDependencies {
  challenges: Challenges;
  /** The steady clock. */
  clock: Clock;
  config: Config;
}

/** The interval that a client gets when it polls too often, seconds. */
const SLOW_DOWN_SECONDS = 10;

/**
 * The errors for a client that has to poll again, or will not get tokens. `isHeld`: whether a compliance level
 * applies to the application.
 */
const REFUSALS: Readonly<
  Record<Exclude<BackchannelPollResult['is'], 'approved'> | 'expired', (hasProfile: boolean) => AuthError>
> = {
  pending: () => new AuthError(400, 'authorization_pending', 'The end-user authorization is pending'),
  // The standard's status (RFC 6749 §5.2) for applications with a compliance level; the hosted service's for
  // others.
  'too-fast': (hasProfile) =>
    new AuthError(
      hasProfile ? 400 : 429,
      'slow_down',
      `You are polling faster than allowed. Try again in ${SLOW_DOWN_SECONDS} seconds.`,
      {
        extra: { interval: SLOW_DOWN_SECONDS },
      },
    ),
  rejected: () =>
    new AuthError(
      400,
      'access_denied',
      'The end-user denied the authorization request or it has been expired',
    ),
  unknown: () => new AuthError(400, 'invalid_grant', 'Invalid or expired auth_req_id'),
  expired: () => new AuthError(400, 'expired_token', 'The auth_req_id has expired'),
};

export const cibaGrant: GrantDeclaration<CibaGrantDependencies> = {
  grantType: CIBA_GRANT,
  summary: 'A login that the user approved without a browser of the application',
  parameters: z.object({ auth_req_id: required('The value from `/bc-authorize`.') }),
  gty: CIBA_GRANT,
  events: { success: 'seciba', failure: 'feciba' },
  isFromPages: true,
  begin: async (deps, { clientId, params, ctx }) => {
    const client = await deps.config.client(clientId);
    // The user was not asked for consent: the application may have become a third party's while the request waited.
    if (client?.is_first_party !== true || authenticationMethod(client) === 'none')
      throw new AuthError(
        403,
        'unauthorized_client',
        `Grant type '${CIBA_GRANT}' not allowed for the client.`,
      );
    const { ticket, expiresAt } = readRequestId(client, requiredField(params, 'auth_req_id'));
    const polled = await pollBackchannelRequest(deps, ticket, clientId);
    const isExpired = polled.is === 'unknown' && epochSeconds(deps.clock) >= expiresAt;
    if (polled.is === 'too-fast') ctx.set('retry-after', String(SLOW_DOWN_SECONDS));
    const hasProfile = profileOf(client) !== undefined;
    if (polled.is !== 'approved') throw REFUSALS[isExpired ? 'expired' : polled.is](hasProfile);
    const { scope, audience, organization, authorizationDetails } = polled.request;
    const { login, isRecorded } = polled;
    const api = audience === undefined ? undefined : await deps.config.resourceServer(audience);
    // The API has come to require consent each time only after this user approved, who was not shown what for.
    if (asksEachTime(api) && polled.request.asksEachTime !== true) throw REFUSALS.unknown(hasProfile);
    return {
      authenticate: async () => ({ login, isRecorded }),
      completes: completedRequest(CIBA_GRANT, login, {
        scope,
        resource: audience === undefined ? undefined : toResource(audience),
        organization,
        authorizationDetails,
      }),
    };
  },
};
