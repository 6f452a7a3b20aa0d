// Second factors that actions of `post-login` ask for by type: one that the user has, or one to enrol.
import { z } from 'zod';
import { ALL_SECOND_FACTORS } from '../records/second-factors.ts';
import type { Take } from './taking.ts';

/** The second factor that is required before the next action runs. */
export interface FactorsAsked {
  /** Whether the user gives a factor that they have, or enrols one. */
  mode: 'challenge' | 'enroll';
  /** Types of which one is required, such as `otp`; the preferred one first. */
  types: string[];
  /** With several types: whether the user chooses one first. */
  isChosen?: boolean;
}

export interface WithFactors {
  login: { factors?: FactorsAsked; mayRemember?: boolean };
  multifactor: boolean;
}

const factor = z.object({ type: z.string().min(1).max(100) });
const factors = z.array(factor).min(1).max(20);

const typeOf = ({ type }: z.output<typeof factor>) =>
  ALL_SECOND_FACTORS.find(({ alias }) => alias === type)?.type ?? type;

const withMore = ([first, options]: unknown[]): unknown => {
  const { additionalFactors = [] } = (options ?? {}) as { additionalFactors?: unknown };
  return [first, ...(Array.isArray(additionalFactors) ? additionalFactors : [undefined])];
};
const any = ([all]: unknown[]): unknown => all;

const asking =
  (mode: FactorsAsked['mode'], read: typeof any): Take<WithFactors> =>
  (outcome, given) => {
    const all = factors.safeParse(read(Array.isArray(given) ? given : []));
    if (!all.success) return false;
    const types = [...new Set(all.data.map(typeOf))];
    outcome.login.factors = { mode, types, ...(read === any && { isChosen: true }) };
    // `multifactor` stays set after a factor was given: a later action may name another user, who has not given one.
    outcome.multifactor = true;
    outcome.login.mayRemember = false;
    return true;
  };

/** The methods that ask for second factors, by name. */
export const FACTORS_TAKE = {
  'authentication.challengeWith': asking('challenge', withMore),
  'authentication.challengeWithAny': asking('challenge', any),
  'authentication.enrollWith': asking('enroll', withMore),
  'authentication.enrollWithAny': asking('enroll', any),
} satisfies Record<string, Take<WithFactors>>;
