// The recovery code as a second factor, used when the others are lost.

import { z } from 'zod';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { AuthError } from '../../../http/errors.ts';
import { required } from '../../../http/parameter-schemas.ts';
import { requiredField } from '../../../http/server/body.ts';
import { SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import type { Claimant } from '../claimant.ts';
import {
  type ChallengeModel,
  challengeView,
  type Factor,
  type FactorDependencies,
  type Verification,
} from '../factor.ts';
import { factorEvents } from '../factors-declaration.ts';
import { activeAuthenticators } from '../policy.ts';
import { countGuesses } from '../verify.ts';
import { RECOVERY_KIND, useRecoveryCode } from './codes.ts';

const EVENTS = {
  success: factorEvents.gd_recovery_succeed,
  failure: factorEvents.gd_recovery_failed,
} as const;

function verify(deps: FactorDependencies, claimant: Claimant, code: string): Promise<Verification> {
  const verifyCode = async (): Promise<Verification> => {
    const { user } = claimant;
    const has = (await activeAuthenticators(deps, user)).some(({ kind }) => kind === RECOVERY_KIND);
    const recoveryCode = has ? await useRecoveryCode(deps, user.id, code) : undefined;
    return recoveryCode === undefined ? { ok: false, outcome: 'wrong' } : { ok: true, recoveryCode };
  };
  return countGuesses(deps, claimant, verifyCode, EVENTS);
}

export const MFA_RECOVERY_PAGE = declarePage<ChallengeModel>('mfa/recovery');

export const recoveryCode: Factor = {
  ...SECOND_FACTORS['recovery-code'],
  authenticatorType: 'recovery-code',
  strength: 0,
  verify: (deps, claimant, { code }) => verify(deps, claimant, code),
  grant: {
    name: 'recovery-code',
    summary: 'A second factor: a recovery code',
    parameters: z.object({ recovery_code: required('The code.') }),
    events: { success: factorEvents.sercft, failure: factorEvents.fercft },
    verify: async (deps, claimant, params) => {
      const verification = await verify(deps, claimant, requiredField(params, 'recovery_code'));
      const error = new AuthError(403, 'invalid_grant', 'MFA Authorization rejected.');
      return verification.ok ? verification : { ok: false, error, isGuess: true };
    },
  },
  pages: { typesCode: true, challenge: challengeView(MFA_RECOVERY_PAGE, () => ({})) },
};
