// Authenticator apps (RFC 6238) as a second factor.

import { Secret, TOTP } from 'otpauth';
import { z } from 'zod';
import { qrCode } from '../../../capabilities/pages/qr-code.ts';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { AuthError } from '../../../http/errors.ts';
import { required } from '../../../http/parameter-schemas.ts';
import { requiredField } from '../../../http/server/body.ts';
import { SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import { updateWithResult } from '../../../store/contract.ts';
import type { Authenticator, Enrollee } from '../authenticators.ts';
import type { Claimant } from '../claimant.ts';
import { accountNameOf } from '../enroll.ts';
import {
  challengeView,
  enrollmentView,
  type Factor,
  type FactorDependencies,
  type FactorModel,
  MFA_CODE_PAGE,
  type Verification,
} from '../factor.ts';
import { factorEvents } from '../factors-declaration.ts';
import { confirmFirstUse, countGuesses, digitsOf, usableAuthenticators } from '../verify.ts';

const SECRET_BYTES = 20;

type OtpDependencies = Pick<FactorDependencies, 'authenticators' | 'random' | 'wallClock'>;

/** @returns it and its secret in base32; the secret is stored encrypted. */
export async function startOtpEnrollment(
  { authenticators, random }: OtpDependencies,
  by: Enrollee,
): Promise<{ authenticator: Authenticator; secret: string }> {
  const secret = new Secret({ buffer: new Uint8Array(random(SECRET_BYTES)).buffer }).base32;
  const authenticator = await authenticators.startEnrollment(by, otp, () => ({ secret }));
  return { authenticator, secret };
}

/** Verifies a code. A right code, and those of earlier time steps, cannot be used again (RFC 6238 §5.2). */
export async function useOtp(
  { authenticators, wallClock }: OtpDependencies,
  { id, secret }: Authenticator,
  code: string,
): Promise<boolean> {
  if (secret === undefined) return false;
  const step = stepOf(secret, code, wallClock());
  if (step === undefined) return false;
  const isFresh = await updateWithResult(authenticators, id, (current) =>
    step > (current.lastStep ?? -1)
      ? { result: true, next: { ...current, lastStep: step } }
      : { result: false },
  );
  return isFresh === true;
}

function verify(deps: FactorDependencies, claimant: Claimant, code: string): Promise<Verification> {
  return countGuesses(deps, claimant, async () => {
    const apps = (await usableAuthenticators(deps, claimant)).filter(({ kind }) => kind === otp.kind);
    for (const app of apps) {
      if (!(await useOtp(deps, app, code))) continue;
      return (await confirmFirstUse(deps, claimant, app)) ? { ok: true } : { ok: false, outcome: 'wrong' };
    }
    return { ok: false, outcome: 'wrong' };
  });
}

/** Returns the secret of an unconfirmed authenticator, so that the page that sets it up can show it again. */
async function secretOf(
  { authenticators }: Pick<FactorDependencies, 'authenticators'>,
  id: string,
): Promise<string | undefined> {
  const { active, secret } = (await authenticators.get(id)) ?? {};
  return active === true ? undefined : secret;
}

interface MfaEnrollOtpModel extends FactorModel {
  /** An SVG. */
  qr: string;
  secret: string | undefined;
}

export const MFA_ENROLL_OTP_PAGE = declarePage<MfaEnrollOtpModel>('mfa/enroll-otp');

export const otp: Factor = {
  ...SECOND_FACTORS.otp,
  authenticatorType: 'otp',
  strength: 3,
  enroll: {
    requestedAs: ['otp'],
    start: async (deps, { user, credentialVersion }) => {
      const { authenticator, secret } = await startOtpEnrollment(deps, {
        userId: user.id,
        credentialVersion,
      });
      const issuer = deps.config.settings().tenant.friendly_name;
      return { authenticator, secret, barcodeUri: otpauthUri(secret, issuer, accountNameOf(user)) };
    },
  },
  challenge: async () => ({}),
  verify: (deps, claimant, { code }) => verify(deps, claimant, digitsOf(code)),
  grant: {
    name: 'otp',
    summary: 'A second factor: the code of an authenticator app',
    parameters: z.object({ otp: required('The code.') }),
    events: { success: factorEvents.seotpft, failure: factorEvents.feotpft },
    verify: async (deps, claimant, params) => {
      const verification = await verify(deps, claimant, requiredField(params, 'otp'));
      const error = new AuthError(403, 'invalid_grant', 'Invalid otp_code.');
      return verification.ok ? verification : { ok: false, error, isGuess: true };
    },
  },
  pages: {
    typesCode: true,
    enrollment: enrollmentView(MFA_ENROLL_OTP_PAGE, async (deps, _ctx, { claimant: { user }, state }) => {
      const id = state.factor === otp.type ? state.authenticatorId : undefined;
      const secret = id === undefined ? undefined : await secretOf(deps, id);
      const issuer = deps.config.settings().tenant.friendly_name;
      return { qr: await qrCode(otpauthUri(secret ?? '', issuer, accountNameOf(user))), secret };
    }),
    challenge: challengeView(MFA_CODE_PAGE, () => ({ channel: 'otp' })),
  },
};

// One-time passwords of authenticator apps (RFC 6238).

/** Seconds of a time step (RFC 6238 §4.1), and by how many steps a clock may differ. */
const STEP = 30;
const WINDOW = 1;

// docs/understand/decisions/second-factors.md#codes-of-a-second-factor-are-limited-in-time-tries-and-number
/**
 * Returns the time step of a right code: the present one, or one step before or after (RFC 6238 §5.2).
 * @param now epoch milliseconds.
 * @returns undefined for a wrong code.
 */
function stepOf(secret: string, code: string, now: number): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const totp = new TOTP({ secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: STEP });
  const delta = totp.validate({ token: code, timestamp: now, window: WINDOW });
  return delta === null ? undefined : Math.floor(now / 1000 / STEP) + delta;
}

/** Returns the URI that an authenticator app scans (Key URI Format): issuer and account, SHA1, 6 digits, 30 s. */
function otpauthUri(secret: string, issuer: string, account: string): string {
  return new TOTP({
    secret: Secret.fromBase32(secret),
    issuer,
    label: account,
    algorithm: 'SHA1',
    digits: 6,
    period: STEP,
  }).toString();
}
