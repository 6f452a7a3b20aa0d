// Second factors that actions of `post-login` ask for by type: one that the user has, or one to enrol.
import { z } from 'zod';
import { ALL_SECOND_FACTORS } from '../../records/users/second-factors.ts';
import type { ApiMethod } from './api-method.ts';

/** The second factor that is required before the next action runs. */
export interface RequiredFactors {
  /** Whether the user gives a factor that they have, or enrols one. */
  mode: 'challenge' | 'enroll';
  /** Types of which one is required, such as `otp`; the preferred one first. */
  types: string[];
  /** With several types: whether the user chooses one first. */
  isChosen?: boolean;
}

export interface WithRequiredFactors {
  login: { factors?: RequiredFactors; mayRemember?: boolean };
  multifactor: boolean;
}

const factor = z.object({ type: z.string().min(1).max(100) });
const factors = z.array(factor).min(1).max(20);

const typeOf = ({ type }: z.output<typeof factor>) =>
  ALL_SECOND_FACTORS.find(({ alias }) => alias === type)?.type ?? type;

const firstAndAdditional = ([first, options]: unknown[]): unknown => {
  const { additionalFactors = [] } = (options ?? {}) as { additionalFactors?: unknown };
  return [first, ...(Array.isArray(additionalFactors) ? additionalFactors : [undefined])];
};
const listOf = ([parsed]: unknown[]): unknown => parsed;

const requireFactors =
  (mode: RequiredFactors['mode'], factorsOf: typeof listOf): ApiMethod<WithRequiredFactors> =>
  (outcome, args) => {
    const parsed = factors.safeParse(factorsOf(Array.isArray(args) ? args : []));
    if (!parsed.success) return false;
    const types = [...new Set(parsed.data.map(typeOf))];
    outcome.login.factors = { mode, types, ...(factorsOf === listOf && { isChosen: true }) };
    // `multifactor` stays set after a factor was given: a later action may name another user, who has not given one.
    outcome.multifactor = true;
    outcome.login.mayRemember = false;
    return true;
  };

/** The methods that ask for second factors, by name. */
export const FACTOR_METHODS = {
  'authentication.challengeWith': requireFactors('challenge', firstAndAdditional),
  'authentication.challengeWithAny': requireFactors('challenge', listOf),
  'authentication.enrollWith': requireFactors('enroll', firstAndAdditional),
  'authentication.enrollWithAny': requireFactors('enroll', listOf),
} satisfies Record<string, ApiMethod<WithRequiredFactors>>;
