// `/refresh-tokens` and `/users/{id}/refresh-tokens`.
import { z } from 'zod';
import type { RefreshTokenView } from '../../../../engine/session/refresh-directory.ts';
import { accepted, type Call, callsWith, ok } from '../../call.ts';
import { arrayAnswer, arraySource, cursorQuery, listAnswer, mapped, pageQuery } from '../../list.ts';
import { fieldsQuery, selectFields } from '../../management-fields.ts';
import { notFound } from '../../resource.ts';
import { noUser } from './user-calls.ts';
import {
  metadataBody,
  metadataToStore,
  requireUser,
  type SessionsDependencies,
} from './user-sessions-calls.ts';

const noToken = notFound('The refresh token does not exist', 'inexistent_refresh_token');

const LIST = { key: 'tokens', isCursorOnly: true };

const call = callsWith<SessionsDependencies>();

const singleCalls: Call<SessionsDependencies>[] = [
  call({
    method: 'GET',
    path: '/refresh-tokens/:id',
    scopes: ['read:refresh_tokens'],
    summary: 'Get a refresh token',
    handle: async ({ refreshTokens }, { params }) => {
      const token = await refreshTokens.get(params.id ?? '');
      if (token === undefined) throw noToken();
      return ok(token);
    },
  }),
  call({
    method: 'PATCH',
    path: '/refresh-tokens/:id',
    scopes: ['update:refresh_tokens'],
    summary: 'Update the metadata of a refresh token',
    body: z.strictObject({ refresh_token_metadata: metadataBody }),
    handle: async ({ refreshTokens }, { params, body }) => {
      const id = params.id ?? '';
      const before = await refreshTokens.get(id);
      const after =
        body.refresh_token_metadata === undefined
          ? before
          : await refreshTokens.setMetadata(id, metadataToStore(body.refresh_token_metadata));
      if (after === undefined) throw noToken();
      return ok(after, { before, after });
    },
  }),
  call({
    method: 'DELETE',
    path: '/refresh-tokens/:id',
    scopes: ['delete:refresh_tokens'],
    summary: 'Delete a refresh token',
    handle: async ({ refreshTokens }, { params }) => {
      const token = await refreshTokens.get(params.id ?? '');
      if (token !== undefined) await refreshTokens.end(token.id);
      return { ...accepted(), before: token };
    },
  }),
];

const ids = z.array(z.string().min(1).max(255)).min(1).max(100);

const revokeBody = z.union([
  z.strictObject({ ids }),
  z.strictObject({
    user_id: z.string().min(1).max(255),
    client_id: z.string().max(255).optional(),
    audience: z.string().max(600).optional(),
  }),
]);

/** Whether a token matches a client and an API, as far as they are given. */
export function isOf(
  token: Pick<RefreshTokenView, 'client_id' | 'resource_servers'>,
  { client_id, audience }: { client_id?: string | undefined; audience?: string | undefined },
): boolean {
  return (
    (client_id === undefined || token.client_id === client_id) &&
    (audience === undefined || token.resource_servers.some((one) => one.audience === audience))
  );
}

const manyCalls: Call<SessionsDependencies>[] = [
  call({
    method: 'GET',
    path: '/refresh-tokens',
    scopes: ['read:refresh_tokens'],
    summary: 'Get the refresh tokens of a user, or those of one client',
    query: z.strictObject({
      ...cursorQuery,
      ...pageQuery,
      ...fieldsQuery,
      user_id: z.string().min(1).max(255),
      client_id: z.string().max(255).optional(),
    }),
    handle: async ({ store, refreshTokens }, { query }) => {
      const { user_id, client_id, ...paging } = query;
      const all = await refreshTokens.of(await requireUser(store, user_id, noUser));
      const source = arraySource(
        all.filter((token) => isOf(token, { client_id })),
        ({ id }) => id,
      );
      const view = (token: object) => selectFields(token, query);
      const shape = { ...LIST, key: 'refresh_tokens' };
      return ok(await listAnswer(paging, mapped(source, view), shape));
    },
  }),
  call({
    method: 'POST',
    path: '/refresh-tokens/revoke',
    scopes: ['delete:refresh_tokens'],
    summary: 'Revoke refresh tokens',
    body: revokeBody,
    handle: async ({ refreshTokens }, { body }) => {
      const revoked =
        'ids' in body
          ? body.ids
          : (await refreshTokens.of(body.user_id)).filter((one) => isOf(one, body)).map(({ id }) => id);
      for (const id of revoked) await refreshTokens.end(id);
      return accepted();
    },
  }),
  call({
    method: 'GET',
    path: '/users/:id/refresh-tokens',
    scopes: ['read:refresh_tokens'],
    summary: 'Get the refresh tokens of a user',
    query: z.strictObject({ ...cursorQuery, ...pageQuery }),
    handle: async ({ store, refreshTokens }, { params, query }) => {
      const all = await refreshTokens.of(await requireUser(store, params.id));
      return ok(await arrayAnswer(query, all, ({ id }) => id, LIST));
    },
  }),
  call({
    method: 'DELETE',
    path: '/users/:id/refresh-tokens',
    scopes: ['delete:refresh_tokens'],
    summary: 'End all refresh tokens of a user',
    handle: async ({ store, refreshTokens }, { params }) => {
      const all = await refreshTokens.of(await requireUser(store, params.id));
      for (const { id } of all) await refreshTokens.end(id);
      return accepted();
    },
  }),
];

export const refreshTokenCalls: Call<SessionsDependencies>[] = [...manyCalls, ...singleCalls];
