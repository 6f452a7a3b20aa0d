// `/custom-claims`, an extension of the hosted API: the claims that the tenant declares. They are read and replaced
// as a whole.
import { z } from 'zod';
import { customClaimsSchema } from '../../../../records/users/custom-claims.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { type SectionDependencies, section } from '../../section.ts';

const claims = section('customClaims', customClaimsSchema.optional());

const call = callsWith<SectionDependencies>();

export const customClaimCalls: Call<SectionDependencies>[] = [
  call({
    method: 'GET',
    path: '/custom-claims',
    scopes: ['read:tenant_settings'],
    summary: 'Get the declared claims',
    handle: async (deps) => ok({ custom_claims: (await claims.read(deps)) ?? [] }),
  }),
  call({
    method: 'PUT',
    path: '/custom-claims',
    scopes: ['update:tenant_settings'],
    summary: 'Replace the declared claims',
    body: z.strictObject({ custom_claims: customClaimsSchema }),
    handle: async (deps, { body }) => {
      const { before = [], after = [] } = await claims.change(deps, () => body.custom_claims);
      return ok(
        { custom_claims: after },
        { before: { custom_claims: before }, after: { custom_claims: after } },
      );
    },
  }),
];
