// The approval of a login on an enrolled device (docs/reference/authenticator-api.md) as a second factor.

import { qrCode } from '../../../capabilities/pages/qr-code.ts';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { AuthError } from '../../../http/errors.ts';
import { SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import type { FactorRequest } from '../claimant.ts';
import { accountNameOf } from '../enroll.ts';
import {
  type Challenge,
  type ChallengeModel,
  challengeView,
  enrollmentView,
  type Factor,
  type FactorDependencies,
  type FactorModel,
  type StartedEnrollment,
} from '../factor.ts';
import { factorLimits } from '../factors-declaration.ts';
import { issueDeviceChallenge } from '../out-of-band.ts';
import { oobGrant, verifyOob } from '../verify-oob.ts';
import { DEVICE_ENROLLMENT } from './devices.ts';

const DEVICE_ENROLLMENT_SECONDS = 600;

/** Begins an authenticator, and returns the QR code by which a device enrols. */
async function start(
  deps: FactorDependencies,
  { user, credentialVersion, clientId, ip }: FactorRequest,
): Promise<StartedEnrollment> {
  const authenticator = await deps.authenticators.startEnrollment(
    { userId: user.id, credentialVersion },
    push,
  );
  const { oobCode } = await issueDeviceChallenge(deps, { authenticator, clientId, ip });
  const { secret: ticket } = await deps.challenges.issueTicket({
    purpose: DEVICE_ENROLLMENT,
    subject: authenticator.id,
    userId: user.id,
    ttlSeconds: DEVICE_ENROLLMENT_SECONDS,
    data: { authenticatorId: authenticator.id },
  });
  const query = new URLSearchParams({ enrollment_tx_id: ticket, base_url: deps.baseUrl });
  const issuer = deps.config.settings().tenant.friendly_name;
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(accountNameOf(user))}`;
  return { authenticator, oobCode, barcodeUri: `otpauth://totp/${label}?${query}` };
}

const challenge: Required<Factor>['challenge'] = async (
  deps,
  { user, clientId, ip },
  authenticator,
): Promise<Challenge> => {
  // Limits repeated requests by somebody who knows the password and hopes that the user allows one by mistake.
  if (!(await deps.rateLimits.spend(factorLimits.mfaPush, user.id)))
    throw new AuthError(
      429,
      'too_many_requests',
      'Too many requests to this user’s devices. Try again later.',
    );
  const deviceChallenge = await issueDeviceChallenge(deps, { authenticator, clientId, ip });
  await deps.webPush.wake(authenticator);
  return deviceChallenge;
};

interface MfaEnrollPushModel extends FactorModel {
  /** An SVG of `barcodeUri`. */
  qr: string;
  barcodeUri: string;
  /** Our own authenticator, for a user at the device to enrol. */
  authenticatorUrl: string;
  /** Where the page's script asks whether the device has enrolled. */
  statusUrl: string;
}

export const MFA_ENROLL_PUSH_PAGE = declarePage<MfaEnrollPushModel>('mfa/enroll-push');

interface MfaPushModel extends ChallengeModel {
  name: string;
  /** The number that the device shows too. */
  number: string | undefined;
  /** Where the page's script asks whether the device has answered. */
  statusUrl: string;
}

export const MFA_PUSH_PAGE = declarePage<MfaPushModel>('mfa/push');

export const push: Factor = {
  ...SECOND_FACTORS.push,
  authenticatorType: 'oob',
  channel: (vendorChannel) => vendorChannel,
  strength: 4,
  nameOf: ({ name }) => name,
  enroll: { requestedAs: ['oob'], start },
  challenge,
  verify: (deps, claimant, { oobCode }) => verifyOob(deps, claimant, oobCode, undefined),
  grant: oobGrant,
  pages: {
    typesCode: false,
    enrollment: enrollmentView(
      MFA_ENROLL_PUSH_PAGE,
      async (_deps, _ctx, { urlOf, state: { barcodeUri = '' } }) => ({
        qr: await qrCode(barcodeUri),
        barcodeUri,
        authenticatorUrl: `/authenticator#${encodeURIComponent(barcodeUri)}`,
        statusUrl: urlOf('status'),
      }),
    ),
    challenge: challengeView(MFA_PUSH_PAGE, (_deps, _ctx, { urlOf, state: { number } }, authenticator) => ({
      name: authenticator?.name ?? '',
      number,
      statusUrl: urlOf('status'),
    })),
  },
};
