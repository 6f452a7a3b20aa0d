// Sessions, refresh tokens, and what users have allowed applications.
import { z } from 'zod';
import type { ArtifactRecord, ConsentRecord } from '../../records/engine.ts';
import type { Frozen } from '../../records/record.ts';
import type { Store } from '../../store/contract.ts';
import { accepted, type Call, callsWith, noContent, ok } from '../call.ts';
import { apiError } from '../errors.ts';
import { arraySource, cursorQuery, listAnswer, pageQuery } from '../list.ts';
import { notFound } from '../resource.ts';

/** A session of a user as the engine describes it. */
export interface SessionDescription {
  id: string;
  user_id: string;
  [member: string]: unknown;
}

export interface SessionsDependencies {
  store: Store;
  /** The sessions of a user. */
  sessionsOf(userId: string): Promise<SessionDescription[]>;
  session(id: string): Promise<SessionDescription | undefined>;
  endSession(id: string): Promise<void>;
  /** Ends all sessions of a user, and the refresh tokens where asked for. */
  endAll(userId: string, refreshTokens: boolean): Promise<void>;
  /** The refresh tokens of a user, a client's alone where one is named. */
  refreshTokensOf(userId: string): Promise<SessionDescription[]>;
  refreshToken(id: string): Promise<SessionDescription | undefined>;
  endRefreshToken(id: string): Promise<void>;
  /** The API that a consent's key stands for. */
  audienceOf(key: string): string | undefined;
}
export type Consent = Frozen<ConsentRecord>;
export type Artifact = Frozen<ArtifactRecord>;

const noSession = notFound('The session does not exist', 'inexistent_session');
const noToken = notFound('The refresh token does not exist', 'inexistent_refresh_token');
const noUser = notFound('The user does not exist.', 'inexistent_user');

async function requireUser(store: Store, id = ''): Promise<string> {
  if ((await store.collection('users').get(id)) === undefined) throw noUser();
  return id;
}

const call = callsWith<SessionsDependencies>();

async function end(deps: SessionsDependencies, id = ''): Promise<SessionDescription | undefined> {
  const session = await deps.session(id);
  if (session !== undefined) await deps.endSession(id);
  return session;
}

function sessionCalls(): Call<SessionsDependencies>[] {
  return [
    call({
      method: 'GET',
      path: '/sessions/:id',
      scopes: ['read:sessions'],
      summary: 'Get a session',
      handle: async (deps, { params }) => {
        const session = await deps.session(params.id ?? '');
        if (session === undefined) throw noSession();
        return ok(session);
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
      summary: 'Revoke a session, and the refresh tokens of it',
      handle: async (deps, { params }) => {
        const session = await end(deps, params.id);
        if (session === undefined) throw noSession();
        for (const token of await deps.refreshTokensOf(session.user_id)) {
          if (token.session_id === session.id) await deps.endRefreshToken(token.id);
        }
        return { ...accepted(), before: session };
      },
    }),
    call({
      method: 'GET',
      path: '/users/:user_id/sessions',
      scopes: ['read:sessions'],
      summary: 'Get the sessions of a user',
      query: z.strictObject({ ...cursorQuery, ...pageQuery }),
      handle: async (deps, { params, query }) => {
        const all = await deps.sessionsOf(await requireUser(deps.store, params.user_id));
        const asked = { take: 50, ...query };
        return ok(
          await listAnswer(
            asked,
            arraySource(all, ({ id }) => id),
            { key: 'sessions', isByCursor: true },
          ),
        );
      },
    }),
    call({
      method: 'DELETE',
      path: '/users/:user_id/sessions',
      scopes: ['delete:sessions'],
      summary: 'End all sessions of a user',
      handle: async (deps, { params }) => {
        await deps.endAll(await requireUser(deps.store, params.user_id), false);
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
        if (body.session_id === undefined) await deps.endAll(userId, body.preserve_refresh_tokens !== true);
        else if ((await deps.session(body.session_id))?.user_id === userId)
          await deps.endSession(body.session_id);
        return accepted();
      },
    }),
  ];
}

function refreshTokenCalls(): Call<SessionsDependencies>[] {
  const ids = z.array(z.string().min(1).max(255)).min(1).max(100);
  return [
    call({
      method: 'GET',
      path: '/refresh-tokens/:id',
      scopes: ['read:refresh_tokens'],
      summary: 'Get a refresh token',
      handle: async (deps, { params }) => {
        const token = await deps.refreshToken(params.id ?? '');
        if (token === undefined) throw noToken();
        return ok(token);
      },
    }),
    call({
      method: 'DELETE',
      path: '/refresh-tokens/:id',
      scopes: ['delete:refresh_tokens'],
      summary: 'Delete a refresh token',
      handle: async (deps, { params }) => {
        const token = await deps.refreshToken(params.id ?? '');
        if (token !== undefined) await deps.endRefreshToken(token.id);
        return { ...accepted(), before: token };
      },
    }),
    call({
      method: 'POST',
      path: '/refresh-tokens/revoke',
      scopes: ['delete:refresh_tokens'],
      summary: 'Revoke refresh tokens',
      body: z.union([
        z.strictObject({ ids }),
        z.strictObject({
          user_id: z.string().min(1).max(255),
          client_id: z.string().max(255).optional(),
          audience: z.string().max(600).optional(),
        }),
      ]),
      handle: async (deps, { body }) => {
        if ('ids' in body) {
          for (const id of body.ids) {
            if ((await deps.refreshToken(id)) !== undefined) await deps.endRefreshToken(id);
          }
          return accepted();
        }
        for (const token of await deps.refreshTokensOf(body.user_id)) {
          const isClients = body.client_id === undefined || token.client_id === body.client_id;
          const audiences = (token.resource_servers as { audience: string }[] | undefined) ?? [];
          const isFor =
            body.audience === undefined || audiences.some(({ audience }) => audience === body.audience);
          if (isClients && isFor) await deps.endRefreshToken(token.id);
        }
        return accepted();
      },
    }),
    call({
      method: 'GET',
      path: '/users/:user_id/refresh-tokens',
      scopes: ['read:refresh_tokens'],
      summary: 'Get the refresh tokens of a user',
      query: z.strictObject({ ...cursorQuery, ...pageQuery }),
      handle: async (deps, { params, query }) => {
        const all = await deps.refreshTokensOf(await requireUser(deps.store, params.user_id));
        const asked = { take: 50, ...query };
        return ok(
          await listAnswer(
            asked,
            arraySource(all, ({ id }) => id),
            { key: 'tokens', isByCursor: true },
          ),
        );
      },
    }),
    call({
      method: 'DELETE',
      path: '/users/:user_id/refresh-tokens',
      scopes: ['delete:refresh_tokens'],
      summary: 'End all refresh tokens of a user',
      handle: async (deps, { params }) => {
        for (const { id } of await deps.refreshTokensOf(await requireUser(deps.store, params.user_id))) {
          await deps.endRefreshToken(id);
        }
        return accepted();
      },
    }),
  ];
}

/** A consent as a grant of the hosted service: one for each API. Its id names both. */
function grantViews(
  { id, user_id, client_id, scopes }: Consent,
  audienceOf: (key: string) => string | undefined,
) {
  return Object.entries(scopes).flatMap(([key, scope]) => {
    const audience = audienceOf(key);
    return audience === undefined
      ? []
      : [
          {
            id: Buffer.from(`${id}\n${key}`).toString('base64url'),
            clientID: client_id,
            user_id,
            audience,
            scope: [...scope],
          },
        ];
  });
}

/** `/grants`: what users have allowed applications. */
function grantCalls(): Call<SessionsDependencies>[] {
  return [
    call({
      method: 'GET',
      path: '/grants',
      scopes: ['read:grants'],
      summary: 'Get grants of users',
      query: z.strictObject({
        ...pageQuery,
        user_id: z.string().max(255).optional(),
        client_id: z.string().max(255).optional(),
        audience: z.string().max(600).optional(),
      }),
      handle: async (deps, { query }) => {
        const found =
          query.user_id === undefined
            ? (await deps.store.collection('consents').list({ limit: 1000 })).records
            : await deps.store.collection('consents').findBy('user', query.user_id);
        const all = found
          .flatMap((one) => grantViews(one, deps.audienceOf))
          .filter((one) => query.client_id === undefined || one.clientID === query.client_id)
          .filter((one) => query.audience === undefined || one.audience === query.audience);
        return ok(
          await listAnswer(
            query,
            arraySource(all, ({ id }) => id),
            { key: 'grants' },
          ),
        );
      },
    }),
    call({
      method: 'DELETE',
      path: '/grants/:id',
      scopes: ['delete:grants'],
      summary: 'Delete a grant',
      handle: async (deps, { params }) => {
        const [userId, clientId, key] = Buffer.from(params.id ?? '', 'base64url')
          .toString()
          .split('\n');
        if (key === undefined) return noContent();
        let before: unknown;
        await deps.store.collection('consents').update(`${userId}\n${clientId}`, (current) => {
          const { [key]: gone, ...scopes } = current.scopes;
          before = { user_id: userId, client_id: clientId, scope: gone };
          return { ...current, scopes };
        });
        return noContent({ before });
      },
    }),
    call({
      method: 'DELETE',
      path: '/grants',
      scopes: ['delete:grants'],
      summary: 'Delete all grants of a user',
      query: z.strictObject({ user_id: z.string().min(1).max(255).optional() }),
      handle: async (deps, { query }) => {
        if (query.user_id === undefined)
          throw apiError(
            400,
            "Query validation error: 'Missing required property: user_id'.",
            'invalid_query_string',
          );
        await deps.store.collection('consents').deleteBy('user', query.user_id);
        return noContent({ before: { user_id: query.user_id } });
      },
    }),
  ];
}

/** All calls of sessions, refresh tokens and grants. */
export const sessionsCalls: Call<SessionsDependencies>[] = [
  ...sessionCalls(),
  ...refreshTokenCalls(),
  ...grantCalls(),
];
