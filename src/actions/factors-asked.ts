// Second factors that actions of `post-login` ask for by their types: one that the user has, or has to enrol.
import { z } from 'zod';
import { ALL_SECOND_FACTORS } from '../records/second-factors.ts';
import type { Take } from './taking.ts';

/** Which second factor has to be given before the actions go on. */
export interface FactorsAsked {
  /** Whether the user gives one that they have, or enrols one. */
  mode: 'challenge' | 'enroll';
  /** Any of these types, such as `otp`; the one to begin with first. */
  types: string[];
  /** Where there are several, the user chooses before they are asked for one. */
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
    // It stays asked for when it was given: the login may become another user's, who has not given one.
    outcome.multifactor = true;
    outcome.login.mayRemember = false;
    return true;
  };

/** What each of their methods does. */
export const FACTORS_TAKE = {
  'authentication.challengeWith': asking('challenge', withMore),
  'authentication.challengeWithAny': asking('challenge', any),
  'authentication.enrollWith': asking('enroll', withMore),
  'authentication.enrollWithAny': asking('enroll', any),
} satisfies Record<string, Take<WithFactors>>;
