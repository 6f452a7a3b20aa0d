// Tabs of a user: identities, and second factors with passkeys.

import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { ALL_SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import { callApi } from '../api-calls.ts';
import { declareUserTab, scopesOf, tabForm, tabPage, type UserTab } from './console-user.ts';
import { takeOverForm } from './console-user-profile.ts';
import type { UsersDependencies } from './dependencies.ts';

interface IdentitiesModel {
  identities: {
    connection: string;
    provider: string;
    id: string;
    isFirst: boolean;
    name: string | undefined;
    address: string | undefined;
  }[];
}

export const USERS_IDENTITIES_PAGE = declareUserTab<IdentitiesModel>('console/users-identities');

const IDENTITIES: UserTab<UsersDependencies, IdentitiesModel> = {
  tab: 'identities',
  page: USERS_IDENTITIES_PAGE,
  scopes: scopesOf('identities'),
  model: async (_deps, _ctx, _here, { user }) => ({
    identities: user.identities.map((one, index) => {
      const { email, name, phone_number, username } = one.profileData ?? {};
      return {
        connection: one.connection,
        provider: one.provider,
        id: one.user_id,
        isFirst: index === 0,
        name,
        address:
          index === 0
            ? (user.email ?? user.phone_number ?? user.username)
            : (email ?? phone_number ?? username),
      };
    }),
  }),
};

interface Method {
  id: string;
  type: string;
  confirmed: boolean;
  name?: string;
  phone_number?: string;
  email?: string;
  created_at?: string;
  last_auth_at?: string;
  user_agent?: string;
}

/** The types of methods that have a message. */
const KINDS = new Set(['passkey', ...ALL_SECOND_FACTORS.map(({ managed }) => managed)]);

interface ShownMethod {
  id: string;
  type: string;
  /** The message key of its type; undefined for a type that has none. */
  kind: string | undefined;
  name: string | undefined;
  isConfirmed: boolean;
  added: FormattedTime | undefined;
  used: FormattedTime | undefined;
}

interface FactorsModel {
  passkeys: ShownMethod[];
  factors: ShownMethod[];
}

export const USERS_FACTORS_PAGE = declareUserTab<FactorsModel>('console/users-factors');

const FACTORS: UserTab<UsersDependencies, FactorsModel> = {
  tab: 'factors',
  page: USERS_FACTORS_PAGE,
  scopes: scopesOf('factors'),
  model: async (deps, ctx, session, { user }) => {
    const answer = await callApi(deps, ctx, session, 'GET /users/:id/authentication-methods', {
      params: { id: user.user_id },
      query: { per_page: '100' },
    });
    const time = timesOf(deps, ctx);
    const methods = (answer.body as Method[]).map(
      (one): ShownMethod => ({
        id: one.id,
        type: one.type,
        kind: KINDS.has(one.type) ? `console.users.method.${one.type}` : undefined,
        name: one.name ?? one.phone_number ?? one.email,
        isConfirmed: one.confirmed,
        added: time(one.created_at),
        used: time(one.last_auth_at),
      }),
    );
    return {
      passkeys: methods.filter(({ type }) => type === 'passkey'),
      factors: methods.filter(({ type }) => type !== 'passkey'),
    };
  },
};

const PATH = '/console/users/:id';
const REMOVE = { scopes: ['delete:authentication_methods'], isDangerous: true };

export const loginMethodRoutes: RouteDeclarations<UsersDependencies> = {
  [`GET ${PATH}/identities`]: tabPage(IDENTITIES),
  [`POST ${PATH}/identities`]: takeOverForm(IDENTITIES, async (deps, ctx, session, user) => {
    const { provider, identity_id } = formFields(ctx, 'provider', 'identity_id');
    const params = { id: user.user_id, provider, identity_id };
    await callApi(deps, ctx, session, 'DELETE /users/:id/identities/:provider/:identity_id', { params });
    return { notice: 'console.users.said.unlinked' };
  }),
  [`GET ${PATH}/factors`]: tabPage(FACTORS),
  [`POST ${PATH}/factors`]: tabForm(FACTORS, REMOVE, async (deps, ctx, session, user) => {
    const params = { id: user.user_id, method_id: formFields(ctx, 'method').method };
    await callApi(deps, ctx, session, 'DELETE /users/:id/authentication-methods/:method_id', { params });
    return { notice: 'console.users.said.methodRemoved' };
  }),
  [`POST ${PATH}/factors/all`]: tabForm(FACTORS, REMOVE, async (deps, ctx, session, user) => {
    const params = { id: user.user_id };
    await callApi(deps, ctx, session, 'DELETE /users/:id/authentication-methods', { params });
    return { notice: 'console.users.said.methodRemoved' };
  }),
  [`POST ${PATH}/factors/browsers`]: tabForm(
    FACTORS,
    { scopes: ['update:users'] },
    async (deps, ctx, session, user) => {
      const params = { id: user.user_id };
      await callApi(deps, ctx, session, 'POST /users/:id/multifactor/actions/invalidate-remember-browser', {
        params,
      });
      return { notice: 'console.users.said.browsersForgotten' };
    },
  ),
};
