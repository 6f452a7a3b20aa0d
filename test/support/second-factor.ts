// What an engine without MFA is given.
import type { SecondFactor } from '../../src/engine/second-factor.ts';

/** Demands nothing of anybody. */
export const NO_SECOND_FACTOR: { secondFactor: SecondFactor; acrValues: string[] } = {
  secondFactor: {
    isDemanded: async () => false,
    factorsOf: async () => '',
    tokenClaims: async () => ({}),
    refusal: async () => {
      throw new Error('no second factor is demanded');
    },
    error: 'none',
    description: 'none',
  },
  acrValues: [],
};
