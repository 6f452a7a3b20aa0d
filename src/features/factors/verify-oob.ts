// Verifies the answer to an out-of-band challenge, and the grant that takes it (docs/reference/wire/mfa.md).
import { z } from 'zod';
import type { Outcome } from '../../capabilities/protection/challenges.ts';
import { AuthError } from '../../http/errors.ts';
import { optional, required } from '../../http/parameter-schemas.ts';
import { requiredField } from '../../http/server/body.ts';
import type { Claimant } from './claimant.ts';
import type { FactorDependencies, MfaGrant, Verification } from './factor.ts';
import { factorEvents, factorLimits } from './factors-declaration.ts';
import { findChallenge, useChallenge } from './out-of-band.ts';
import { confirmFirstUse, countGuesses, usableAuthenticators } from './verify.ts';

/**
 * Verifies the answer to a challenge: a code that was sent, or the decision of a device.
 * @param bindingCode the typed code; undefined for none.
 * @throws AuthError 429 `too_many_attempts`
 */
export async function verifyOob(
  deps: FactorDependencies,
  claimant: Claimant,
  oobCode: string,
  bindingCode: string | undefined,
): Promise<Verification> {
  const challenge = await findChallenge(deps, oobCode);
  const { user, clientId } = claimant;
  if (challenge?.userId !== user.id || challenge.clientId !== clientId)
    return { ok: false, outcome: 'unknown' };
  const verify = async (): Promise<Verification> => {
    const usable = await usableAuthenticators(deps, claimant);
    const authenticator = usable.find(({ id }) => id === challenge.authenticatorId);
    if (authenticator === undefined) return { ok: false, outcome: 'unknown' };
    const outcome = await useChallenge(deps, oobCode, bindingCode);
    if (outcome !== 'accepted') return { ok: false, outcome };
    if (challenge.needsCode) await deps.rateLimits.giveBack(factorLimits.mfaMessage, user.id);
    else if (authenticator.active) await deps.rateLimits.giveBack(factorLimits.mfaPush, user.id);
    const isConfirmed = await confirmFirstUse(deps, claimant, authenticator);
    return isConfirmed ? { ok: true } : { ok: false, outcome: 'unknown' };
  };
  // Polling for the decision of a device guesses nothing, so it is not counted.
  return challenge.needsCode ? countGuesses(deps, claimant, verify) : verify();
}

export const oobGrant: MfaGrant = {
  name: 'oob',
  summary: 'A second factor: a code that was sent, or a login that a device approved',
  parameters: z.object({
    oob_code: required('The value from the challenge.'),
    binding_code: optional('The code that was sent, if one was.'),
  }),
  events: { success: factorEvents.seoobft, failure: factorEvents.feoobft },
  verify: async (deps, claimant, params) => {
    const oobCode = requiredField(params, 'oob_code');
    const challenge = await findChallenge(deps, oobCode);
    const { binding_code: bindingCode } = params;
    if (challenge?.needsCode === true && bindingCode === undefined) requiredField(params, 'binding_code');
    const verification = await verifyOob(deps, claimant, oobCode, bindingCode);
    if (verification.ok) return verification;
    const client = await deps.config.client(claimant.clientId);
    const error = refusal(verification.outcome, client?.oidc_conformant === true);
    // A device's approval that was just used is no guess: with many concurrent requests, those that come too late would
    // otherwise end the MFA token before the first one has used it.
    const isOwn = challenge?.userId === claimant.user.id && challenge.clientId === claimant.clientId;
    return { ok: false, error, isGuess: error.status === 403 && (!isOwn || challenge.needsCode) };
  },
};

/**
 * Returns the error of an outcome. By the API contract some come with status 200; an application with
 * `oidc_conformant: true` gets 400 instead, because SDKs read a 200 as tokens.
 */
function refusal(outcome: Outcome, conformant: boolean): AuthError {
  const status = conformant ? 400 : 200;
  switch (outcome) {
    case 'pending':
      return new AuthError(
        status,
        'authorization_pending',
        'Authorization pending: please repeat the request in a few seconds.',
      );
    case 'too-fast':
      return new AuthError(
        status,
        // docs/understand/decisions/second-factors.md#a-devices-answer-is-polled-every-three-seconds-at-most
        'slow_down',
        'You are polling faster than allowed. Try again in a few seconds.',
      );
    case 'rejected':
      return new AuthError(status, 'invalid_grant', 'MFA Authorization rejected.');
    case 'wrong':
      return new AuthError(403, 'invalid_grant', 'Invalid binding_code.');
    default:
      return new AuthError(403, 'invalid_grant', 'Invalid oob_code.');
  }
}
