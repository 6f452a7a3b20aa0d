// `/sessions`, the sessions of a user, and revoking all access of a user.
import { z } from 'zod';
import type { RefreshTokenDirectory } from '../../../../engine/session/refresh-directory.ts';
import type { SessionDirectory, SessionView } from '../../../../engine/session/session-directory.ts';
import type { AuthError } from '../../../../http/errors.ts';
import type { Store } from '../../../../store/contract.ts';
import { accepted, type Call, callsWith, ok } from '../../call.ts';
import { arrayAnswer, cursorQuery, pageQuery } from '../../list.ts';
import { notFound } from '../../resource.ts';
import { noUserNamed } from './user-calls.ts';

export interface SessionsDependencies {
  store: Store;
  sessionDirectory: SessionDirectory;
  refreshTokens: RefreshTokenDirectory;
}

const noSession = notFound('The session does not exist', 'inexistent_session');

export const metadataBody = z
  .record(z.string().max(255), z.string().max(255))
  .refine((all) => Object.keys(all).length <= 25, 'At most 25 properties')
  .nullish();

/** Returns metadata as it is stored: undefined if it is empty. */
export function metadataToStore(
  metadata: z.output<typeof metadataBody>,
): Readonly<Record<string, unknown>> | undefined {
  return metadata == null || Object.keys(metadata).length === 0 ? undefined : metadata;
}

/** Checks that a user exists. @param absent the error otherwise. @returns its id. */
export async function requireUser(
  store: Store,
  id = '',
  absent: (id: string) => AuthError = noUserNamed,
): Promise<string> {
  if ((await store.collection('users').get(id)) === undefined) throw absent(id);
  return id;
}

/** Ends a session if it exists. @returns the session. */
async function end(deps: SessionsDependencies, id = ''): Promise<SessionView | undefined> {
  const session = await deps.sessionDirectory.get(id);
  if (session !== undefined) await deps.sessionDirectory.end(id);
  return session;
}

async function endTokensOf({ refreshTokens }: SessionsDependencies, session: SessionView): Promise<void> {
  for (const token of await refreshTokens.of(session.user_id)) {
    if (token.session_id === session.id) await refreshTokens.end(token.id);
  }
}

const call = callsWith<SessionsDependencies>();

function singleCalls(): Call<SessionsDependencies>[] {
  return [
    call({
      method: 'GET',
      path: '/sessions/:id',
      scopes: ['read:sessions'],
      summary: 'Get a session',
      handle: async ({ sessionDirectory }, { params }) => {
        const session = await sessionDirectory.get(params.id ?? '');
        if (session === undefined) throw noSession();
        return ok(session);
      },
    }),
    call({
      method: 'PATCH',
      path: '/sessions/:id',
      scopes: ['update:sessions'],
      summary: 'Update the metadata of a session',
      body: z.strictObject({ session_metadata: metadataBody }),
      handle: async ({ sessionDirectory }, { params, body }) => {
        const id = params.id ?? '';
        const before = await sessionDirectory.get(id);
        const after =
          body.session_metadata === undefined
            ? before
            : await sessionDirectory.setMetadata(id, metadataToStore(body.session_metadata));
        if (after === undefined) throw noSession();
        return ok(after, { before, after });
      },
    }),
    call({
      method: 'DELETE',
      path: '/sessions/:id',
      scopes: ['delete:sessions'],
      summary: 'Delete a session',
      handle: async (deps, { params }) => ({ ...accepted(), before: await end(deps, params.id) }),
    }),
    call({
      method: 'POST',
      path: '/sessions/:id/revoke',
      scopes: [],
      allScopes: ['delete:sessions', 'delete:refresh_tokens'],
      summary: 'Revoke a session and its refresh tokens',
      handle: async (deps, { params }) => {
        const session = await end(deps, params.id);
        if (session === undefined) throw noSession();
        await endTokensOf(deps, session);
        return { ...accepted(), before: session };
      },
    }),
  ];
}

function userCalls(): Call<SessionsDependencies>[] {
  return [
    call({
      method: 'GET',
      path: '/users/:id/sessions',
      scopes: ['read:sessions'],
      summary: 'Get the sessions of a user',
      query: z.strictObject({ ...cursorQuery, ...pageQuery }),
      handle: async ({ store, sessionDirectory }, { params, query }) => {
        const all = await sessionDirectory.of(await requireUser(store, params.id));
        return ok(
          await arrayAnswer(query, all, ({ id }) => id, {
            key: 'sessions',
            isCursorOnly: true,
          }),
        );
      },
    }),
    call({
      method: 'DELETE',
      path: '/users/:id/sessions',
      scopes: ['delete:sessions'],
      summary: 'End all sessions of a user',
      handle: async ({ store, sessionDirectory }, { params }) => {
        await sessionDirectory.endAllOf(await requireUser(store, params.id), false);
        return accepted();
      },
    }),
    call({
      method: 'POST',
      path: '/users/:id/revoke-access',
      scopes: [],
      allScopes: ['delete:sessions', 'delete:refresh_tokens'],
      summary: 'End the sessions and refresh tokens of a user',
      body: z.strictObject({
        session_id: z.string().max(255).optional(),
        preserve_refresh_tokens: z.boolean().optional(),
      }),
      handle: async (deps, { params, body }) => {
        const userId = await requireUser(deps.store, params.id);
        const endsTokens = body.preserve_refresh_tokens !== true;
        if (body.session_id === undefined) await deps.sessionDirectory.endAllOf(userId, endsTokens);
        else {
          const session = await deps.sessionDirectory.get(body.session_id);
          // A session of another user is treated as one that does not exist.
          if (session?.user_id !== userId) return accepted();
          await end(deps, session.id);
          if (endsTokens) await endTokensOf(deps, session);
        }
        return accepted();
      },
    }),
  ];
}

export const sessionCalls: Call<SessionsDependencies>[] = [...singleCalls(), ...userCalls()];
