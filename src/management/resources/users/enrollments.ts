// Second factors as older clients know them: enrollments, providers, recovery codes, remembered browsers.
import { z } from 'zod';
import type { AuthenticatorRecord } from '../../../records/authenticators.ts';
import type { Frozen } from '../../../records/record.ts';
import type { Store } from '../../../store/contract.ts';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import { apiError } from '../../errors.ts';
import { notFound } from '../../resource.ts';
import { methodView, type UserFactorsDependencies } from './factors.ts';
import { userOf } from './user.ts';

export interface EnrollmentsDependencies extends UserFactorsDependencies {
  store: Store;
  /** Makes a new recovery code of a user; the one before is dead. */
  renewRecoveryCode(userId: string): Promise<string>;
  /** Forgets the browsers in which a user wants no second factor. */
  forgetBrowsers(userId: string): Promise<void>;
}

/** How it is proved, in the words of the hosted service; what recovers others is no enrollment. */
const METHODS: Readonly<Record<string, string>> = {
  otp: 'authenticator',
  sms: 'sms',
  push: 'guardian',
  email: 'email',
};

function enrollmentView(one: Frozen<AuthenticatorRecord>): object {
  return {
    id: one.id,
    status: one.active ? 'confirmed' : 'pending',
    type: METHODS[one.kind],
    auth_method: METHODS[one.kind],
    ...(one.name === undefined ? {} : { name: one.name }),
    ...(one.phone_number === undefined ? {} : { phone_number: one.phone_number }),
    ...(one.email === undefined ? {} : { identifier: one.email }),
    ...(one.active ? { enrolled_at: one.created_at } : {}),
  };
}

const call = callsWith<EnrollmentsDependencies>();

const enrollmentCalls: Call<EnrollmentsDependencies>[] = [
  call({
    method: 'GET',
    path: '/users/:id/enrollments',
    scopes: ['read:users'],
    ownScopes: ['read:current_user'],
    summary: 'Get the enrollments of a user',
    query: z.strictObject({}),
    handle: async (deps, { params }) => {
      const user = await userOf(deps, params.id);
      const all = await deps.authenticators.of(user.id);
      return ok(all.filter(({ kind }) => METHODS[kind] !== undefined).map(enrollmentView));
    },
  }),
  call({
    method: 'GET',
    path: '/guardian/enrollments/:enrollment_id',
    scopes: ['read:guardian_enrollments'],
    summary: 'Get an enrollment',
    handle: async (deps, { params }) => {
      const found = await deps.authenticators.get(params.enrollment_id ?? '');
      if (found === undefined) throw notFound('Enrollment not found', 'enrollment_not_found')();
      return ok(enrollmentView(found));
    },
  }),
  call({
    method: 'DELETE',
    path: '/guardian/enrollments/:enrollment_id',
    scopes: ['delete:guardian_enrollments'],
    summary: 'Delete an enrollment',
    handle: async (deps, { params }) => {
      const found = await deps.authenticators.get(params.enrollment_id ?? '');
      if (found === undefined) return noContent();
      await deps.authenticators.remove(found.id);
      return noContent({ before: { user_id: found.user_id, ...methodView(found) } });
    },
  }),
];

/** The kinds of authenticators of a provider; of one that we have none of there is nothing to remove. */
const PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  duo: [],
  'google-authenticator': ['otp'],
};

const undoCalls: Call<EnrollmentsDependencies>[] = [
  call({
    method: 'DELETE',
    path: '/users/:id/multifactor/:provider',
    scopes: ['update:users'],
    summary: "Delete a user's multi-factor provider",
    handle: async (deps, { params }) => {
      const { provider = '' } = params;
      const kinds = Object.hasOwn(PROVIDERS, provider) ? PROVIDERS[provider] : undefined;
      if (kinds === undefined)
        throw apiError(400, 'Path validation error: unknown provider on property provider.', 'invalid_uri');
      const user = await userOf(deps, params.id);
      const doomed = (await deps.authenticators.of(user.id)).filter(({ kind }) => kinds.includes(kind));
      for (const { id } of doomed) await deps.authenticators.remove(id);
      await deps.store.collection('users').update(user.id, (current) => ({
        ...current,
        multifactor: (current.multifactor ?? []).filter((one) => one !== provider),
      }));
      return noContent({ before: doomed.map(methodView) });
    },
  }),
  call({
    method: 'POST',
    path: '/users/:id/multifactor/actions/invalidate-remember-browser',
    scopes: ['update:users'],
    summary: 'Forget the browsers in which a user gives no second factor',
    handle: async (deps, { params }) => {
      const user = await userOf(deps, params.id);
      await deps.forgetBrowsers(user.id);
      return noContent();
    },
  }),
  call({
    method: 'POST',
    path: '/users/:id/recovery-code-regeneration',
    scopes: ['update:users'],
    summary: 'Make a new recovery code of a user',
    handle: async (deps, { params }) => {
      const user = await userOf(deps, params.id);
      // A code stands in for a factor: without one it would be a factor on its own.
      const all = await deps.authenticators.of(user.id);
      if (!all.some(({ active, kind }) => active && METHODS[kind] !== undefined))
        throw notFound('The user has no second factor.', 'enrollment_not_found')();
      return ok({ recovery_code: await deps.renewRecoveryCode(user.id) });
    },
  }),
];

/** The calls. */
export const enrollmentsCalls: Call<EnrollmentsDependencies>[] = [...enrollmentCalls, ...undoCalls];
