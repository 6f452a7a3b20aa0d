// `/connections/{id}/scim-configuration/tokens`: the access tokens of a directory.
import { z } from 'zod';
import type { Frozen } from '../../../../records/base/record.ts';
import type { DocumentRecord } from '../../../../records/tenant/documents.ts';
import { hashSecret } from '../../../../runtime/secrets.ts';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import { idOf } from '../../ids.ts';
import { apiError } from '../../management-errors.ts';
import { connectionOf, find, PATH, type ScimConfigurationDependencies, TOKEN, tokensOf } from './scim.ts';

const TOKENS = `${PATH}/tokens`;

/** Highest number of tokens of a connection: the current one, and one that replaces it. */
const MAX_TOKENS = 2;

const SCOPES = ['get:users', 'post:users', 'put:users', 'patch:users', 'delete:users'] as const;

const call = callsWith<ScimConfigurationDependencies>();

function tokenView({ id, body: { connection_id: _, ...shown }, created_at }: Frozen<DocumentRecord>) {
  return { token_id: id, ...shown, created_at };
}

export const scimTokenCalls: Call<ScimConfigurationDependencies>[] = [
  call({
    method: 'GET',
    path: TOKENS,
    scopes: ['read:scim_token'],
    summary: 'Get the SCIM tokens of a connection',
    handle: async (deps, { params }) => {
      const connection = await connectionOf(deps, params.id);
      return ok((await tokensOf(deps.store, connection.id)).map(tokenView));
    },
  }),
  call({
    method: 'POST',
    path: TOKENS,
    scopes: ['create:scim_token'],
    summary: 'Create a SCIM token of a connection; it is shown once',
    body: z
      .strictObject({
        scopes: z.array(z.enum(SCOPES)).min(1).max(SCOPES.length),
        token_lifetime: z.int().min(900).max(315_360_000).nullable(),
      })
      .partial(),
    handle: async (deps, { params, body: { scopes = [...SCOPES], token_lifetime: seconds } }) => {
      const connection = await connectionOf(deps, params.id);
      await find(deps, connection);
      if ((await tokensOf(deps.store, connection.id)).length >= MAX_TOKENS)
        throw apiError(409, 'The connection has the most SCIM tokens that it may have.');
      const token = deps.random(32).toString('base64url');
      const timestamp = deps.now();
      const validUntil =
        seconds == null ? undefined : new Date(Date.parse(timestamp) + seconds * 1000).toISOString();
      const record: DocumentRecord = {
        id: idOf('tok', deps.random),
        kind: TOKEN,
        // The token is not stored; it is found by its hash.
        name: hashSecret(token),
        body: {
          connection_id: connection.id,
          scopes,
          ...(validUntil === undefined ? {} : { valid_until: validUntil }),
        },
        created_at: timestamp,
        updated_at: timestamp,
      };
      await deps.store.collection('documents').insert(record);
      return { status: 201, body: { ...tokenView(record), token }, after: tokenView(record) };
    },
  }),
  call({
    method: 'DELETE',
    path: `${TOKENS}/:token_id`,
    scopes: ['delete:scim_token'],
    summary: 'Delete a SCIM token of a connection',
    handle: async (deps, { params }) => {
      const connection = await connectionOf(deps, params.id);
      const found = (await tokensOf(deps.store, connection.id)).find(({ id }) => id === params.token_id);
      if (found === undefined) return noContent();
      await deps.store.collection('documents').delete(found.id);
      return noContent({ before: tokenView(found) });
    },
  }),
];
