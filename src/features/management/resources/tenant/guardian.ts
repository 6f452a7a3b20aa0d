// `/guardian/*`: the settings of multi-factor authentication.
import { z } from 'zod';
import {
  GUARDIAN_FACTORS,
  guardianFactorsSchema,
  guardianPoliciesSchema,
} from '../../../../records/users/guardian.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { type SectionDependencies, section } from '../../section.ts';
import { factorSettingCalls } from './guardian-settings.ts';

const call = callsWith<SectionDependencies>();

const READ = ['read:guardian_factors'];
const UPDATE = ['update:guardian_factors'];

function factorCalls(): Call<SectionDependencies>[] {
  const part = section('guardianFactors', guardianFactorsSchema);
  return [
    call({
      method: 'GET',
      path: '/guardian/factors',
      scopes: READ,
      summary: 'Get factors',
      handle: async (deps) => {
        const set = (await part.read(deps)) ?? [];
        return ok(
          GUARDIAN_FACTORS.map((name) => ({
            name,
            enabled: set.some((factor) => factor.name === name && factor.enabled),
            trial_expired: false,
          })),
        );
      },
    }),
    call({
      method: 'PUT',
      path: '/guardian/factors/:name',
      scopes: UPDATE,
      summary: 'Switch a factor on or off',
      body: z.strictObject({ enabled: z.boolean() }),
      handle: async (deps, { params, body }) => {
        const name = GUARDIAN_FACTORS.find((factor) => factor === params.name);
        if (name === undefined)
          throw apiError(400, 'Path validation error: unknown factor on property name.', 'invalid_uri');
        const switched = { name, enabled: body.enabled };
        const { before, after } = await part.change(deps, (current = []) =>
          current.some((factor) => factor.name === name)
            ? current.map((factor) => (factor.name === name ? { ...factor, ...switched } : factor))
            : [...current, switched],
        );
        return ok({ enabled: body.enabled }, { before, after });
      },
    }),
  ];
}

const policies = z.array(z.enum(['all-applications', 'confidence-score'])).max(1);

function policyCalls(): Call<SectionDependencies>[] {
  const part = section('guardianPolicies', guardianPoliciesSchema);
  return [
    call({
      method: 'GET',
      path: '/guardian/policies',
      scopes: ['read:mfa_policies'],
      summary: 'Get policies',
      handle: async (deps) => ok(((await part.read(deps)) ?? []).filter((policy) => policy !== 'never')),
    }),
    call({
      method: 'PUT',
      path: '/guardian/policies',
      scopes: ['update:mfa_policies'],
      summary: 'Set policies',
      body: policies,
      handle: async (deps, { body }) => {
        const { before, after } = await part.change(deps, () => body);
        return ok(after, { before, after });
      },
    }),
  ];
}

export const guardianCalls: Call<SectionDependencies>[] = [
  ...factorCalls(),
  ...policyCalls(),
  ...factorSettingCalls,
];
