// The device code grant (RFC 8628 §3.4, §3.5), for a login that was made at our pages.
import { z } from 'zod';
import { toResource } from '../../../engine/audience.ts';
import { completedRequest } from '../../../engine/second-factor.ts';
import type { GrantDeclaration } from '../../../engine/tokens.ts';
import { requiredField } from '../../../http/body-fields.ts';
import { AuthError } from '../../../http/errors.ts';
import { required } from '../../../http/parameter-schemas.ts';
import { DEVICE_GRANT } from './callbacks.ts';
import { type CodeDependencies, INTERVAL, needsConsent, type PollResult, pollDeviceCode } from './codes.ts';

/** The errors for a device that has to poll again, or will not get tokens. */
const REFUSALS: Readonly<Record<Exclude<PollResult['is'], 'allowed'>, () => AuthError>> = {
  pending: () => new AuthError(403, 'authorization_pending', 'User has yet to authorize device code.'),
  'too-fast': () =>
    new AuthError(
      429,
      'slow_down',
      `You are polling faster than the specified interval of ${INTERVAL} seconds.`,
    ),
  expired: () => new AuthError(403, 'expired_token', 'The device code has expired.'),
  rejected: () => new AuthError(403, 'access_denied', 'User cancelled the confirmation prompt.'),
  unknown: () => new AuthError(403, 'invalid_grant', 'Invalid or expired device code.'),
};

export interface DeviceGrantDependencies extends CodeDependencies {
  /** @see Sessions.isOpen */
  isOpen(sessionUid: string): Promise<boolean>;
}

export const deviceGrant: GrantDeclaration<DeviceGrantDependencies> = {
  grantType: DEVICE_GRANT,
  summary: 'A login for a device, made in a browser',
  parameters: z.object({ device_code: required('The value from `/oauth/device/code`.') }),
  gty: DEVICE_GRANT,
  events: { success: 'sede', failure: 'fede' },
  isFromPages: true,
  begin: async (deps, { clientId, params }) => {
    const polled = await pollDeviceCode(deps, requiredField(params, 'device_code'), clientId);
    if (polled.is !== 'allowed') throw REFUSALS[polled.is]();
    const { scope, audience } = polled.request;
    const { login, organization, hasConsent, sessionUid } = polled.allowed;
    if (!(await deps.isOpen(sessionUid))) throw REFUSALS.unknown();
    // The application may have become a third party's after its user was not asked for consent.
    if (!hasConsent && (await needsConsent(deps, { clientId, audience }))) throw REFUSALS.unknown();
    return {
      authenticate: async () => ({ login, isRecorded: true }),
      completes: completedRequest(DEVICE_GRANT, login, {
        scope,
        resource: audience === undefined ? undefined : toResource(audience),
        organization,
      }),
    };
  },
};
