// Second factors as older clients use them: enrollments, providers, recovery codes, remembered browsers.

import { z } from 'zod';
import { emailSchema } from '../../../../records/base/email.ts';
import type { Frozen } from '../../../../records/base/record.ts';
import type { AuthenticatorRecord } from '../../../../records/users/authenticators.ts';
import { ALL_SECOND_FACTORS, secondFactorOf } from '../../../../records/users/second-factors.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import type { User } from '../../../../users/user.ts';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import { letters } from '../../ids.ts';
import { apiError } from '../../management-errors.ts';
import { notFound } from '../../resource.ts';
import { methodView, type UserFactorsDependencies } from './authentication-method.ts';
import { userOf } from './user-calls.ts';

export interface EnrollmentsDependencies extends UserFactorsDependencies {
  store: Store;
  random: Random;
  /**
   * Creates the link by which a user enrols a second factor, and sends it by e-mail if `mailTo` is set.
   * @returns the link, or the reason why none was created.
   */
  issueEnrollment(enrollment: {
    user: User;
    factor?: string | undefined;
    allowsSeveral: boolean;
    mailTo?: string | undefined;
    locale?: string | undefined;
  }): Promise<{ url: string } | { refusal: 'no-factor' | 'enrolled' }>;
  /** Creates a new recovery code of a user; the previous one becomes invalid. */
  renewRecoveryCode(userId: string): Promise<string>;
  /** Makes all browsers ask a user for a second factor again. */
  forgetBrowsers(userId: string): Promise<void>;
}

/** Returns the type of enrollment of an authenticator; undefined for recovery codes, which are not enrollments. */
const methodOf = ({ kind }: Frozen<AuthenticatorRecord>) => secondFactorOf(kind)?.enrollment;

function enrollmentView(one: Frozen<AuthenticatorRecord>): object {
  return {
    id: one.id,
    status: one.active ? 'confirmed' : 'pending',
    type: methodOf(one),
    auth_method: methodOf(one),
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
    currentUserScopes: ['read:current_user'],
    summary: 'Get the enrollments of a user',
    query: z.strictObject({}),
    handle: async (deps, { params }) => {
      const user = await userOf(deps, params.id);
      const all = await deps.authenticators.of(user.id);
      return ok(all.filter((one) => methodOf(one) !== undefined).map(enrollmentView));
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

const FACTORS = ALL_SECOND_FACTORS.filter(({ recovers }) => recovers !== true);

const REFUSALS = {
  'no-factor': 'The factor is not enabled.',
  enrolled: 'The user has a second factor already: allow_multiple_enrollments adds to it.',
};

const ticketCalls: Call<EnrollmentsDependencies>[] = [
  call({
    method: 'POST',
    path: '/guardian/enrollments/ticket',
    scopes: ['create:guardian_enrollment_tickets'],
    summary: 'Create a ticket for enrolling a second factor',
    body: z.strictObject({
      user_id: z.string().min(1).max(300),
      email: emailSchema.optional(),
      send_mail: z.boolean().optional(),
      email_locale: z.string().max(35).optional(),
      factor: z.enum(FACTORS.map(({ type }) => type)).optional(),
      allow_multiple_enrollments: z.boolean().optional(),
    }),
    handle: async (deps, { body }) => {
      const user = await userOf(deps, body.user_id);
      const mailTo = body.send_mail === true ? (body.email ?? user.email) : undefined;
      if (body.send_mail === true && mailTo === undefined)
        throw apiError(400, 'The user has no e-mail address, and none is given.', 'invalid_body');
      const enrollment = await deps.issueEnrollment({
        user,
        factor: FACTORS.find(({ type }) => type === body.factor)?.name,
        allowsSeveral: body.allow_multiple_enrollments ?? false,
        mailTo,
        locale: body.email_locale,
      });
      if ('refusal' in enrollment) throw apiError(400, REFUSALS[enrollment.refusal], 'invalid_body');
      // The response is not logged, because anyone who reads the link can use it.
      return ok({ ticket_id: letters(32, deps.random), ticket_url: enrollment.url });
    },
  }),
];

/** Providers of the published API for which no authenticators are created here. */
const WITHOUT_FACTORS: readonly string[] = ['duo'];

/** Returns the kinds of authenticators of a provider; undefined for an unknown provider. */
function kindsOf(provider: string): string[] | undefined {
  const kinds = ALL_SECOND_FACTORS.filter((one) => one.provider === provider).map(({ kind }) => kind);
  return kinds.length > 0 || WITHOUT_FACTORS.includes(provider) ? kinds : undefined;
}

const removalCalls: Call<EnrollmentsDependencies>[] = [
  call({
    method: 'DELETE',
    path: '/users/:id/multifactor/:provider',
    scopes: ['update:users'],
    summary: "Delete a user's multi-factor provider",
    handle: async (deps, { params }) => {
      const { provider = '' } = params;
      const kinds = kindsOf(provider);
      if (kinds === undefined)
        throw apiError(400, 'Path validation error: unknown provider on property provider.', 'invalid_uri');
      const user = await userOf(deps, params.id);
      const removed = (await deps.authenticators.of(user.id)).filter(({ kind }) => kinds.includes(kind));
      for (const { id } of removed) await deps.authenticators.remove(id);
      await deps.store.collection('users').update(user.id, (current) => ({
        ...current,
        multifactor: (current.multifactor ?? []).filter((one) => one !== provider),
      }));
      return noContent({ before: removed.map(methodView) });
    },
  }),
  call({
    method: 'POST',
    path: '/users/:id/multifactor/actions/invalidate-remember-browser',
    scopes: ['update:users'],
    summary: 'Forget the browsers in which a user skips the second factor',
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
    summary: 'Create a new recovery code for a user',
    handle: async (deps, { params }) => {
      const user = await userOf(deps, params.id);
      // A recovery code replaces another factor. Without one, it would be a factor by itself.
      const all = await deps.authenticators.of(user.id);
      if (!all.some((one) => one.active && methodOf(one) !== undefined))
        throw notFound('The user has no second factor.', 'enrollment_not_found')();
      return ok({ recovery_code: await deps.renewRecoveryCode(user.id) });
    },
  }),
];

export const enrollmentsCalls: Call<EnrollmentsDependencies>[] = [
  ...enrollmentCalls,
  ...ticketCalls,
  ...removalCalls,
];
