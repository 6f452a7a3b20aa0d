// The routes of the My Account API that are about what one logs in with (docs/wire/my-account.md).
import type { Context } from 'koa';
import { z } from 'zod';
import { AuthError } from '../http/errors.ts';
import { type RouteDeclaration, type RouteDeclarations, taking } from '../http/routes.ts';
import type { Actor } from './actor.ts';
import type { AccountScope } from './api.ts';
import { actorOf } from './caller.ts';
import { begunAnswer, createBody, factorsAnswer, listAnswer, patchBody, verifyBody } from './described.ts';
import { type AccountRoutesDependencies, handleCreate, handleVerify, METHODS } from './enroll-by-api.ts';
import { problemShape } from './errors.ts';
import { getMethod, listMethods, removeMethod, renameMethod } from './methods.ts';
import { offeredTypes } from './offered.ts';
import { METHOD_TYPES, type MethodType, methodAnswer } from './views.ts';

type Deps = AccountRoutesDependencies;

const api = { limit: 'myAccount', cors: 'applications', errors: problemShape } as const;
/** A route with the scope that its token must have, asked for before anything of the body is read. */
function asked<B extends z.ZodType>(
  scope: AccountScope,
  body: B,
  handle: (deps: Deps, ctx: Context, actor: Actor, body: z.output<B>) => Promise<void>,
): Pick<RouteDeclaration<Deps>, 'admit' | 'body' | 'isBodyChecked' | 'handle' | 'security'> {
  return {
    ...admitted(scope),
    ...taking(body, (deps: Deps, ctx, given) => handle(deps, ctx, ctx.state.actor, given)),
  };
}

function admitted(scope: AccountScope): Required<Pick<RouteDeclaration<Deps>, 'admit' | 'security'>> {
  return {
    security: ['accessToken'],
    admit: async (deps, ctx) => {
      ctx.set('Cache-Control', 'no-store');
      ctx.state.actor = await actorOf(deps, ctx, scope);
    },
  };
}

const actorIn = (ctx: Context): Actor => ctx.state.actor as Actor;

/** The routes. */
export const accountRoutes: RouteDeclarations<Deps> = {
  [`GET ${METHODS}` as const]: {
    ...api,
    ...admitted('read:me:authentication_methods'),
    summary: 'What the user logs in with',
    query: z.object({ type: z.enum(METHOD_TYPES).optional() }),
    answers: { 200: { description: 'Passwords, passkeys, and second factors that count', body: listAnswer } },
    handle: async (deps, ctx) => {
      const { type } = ctx.query;
      if (type !== undefined && !isMethodType(type)) throw invalidQuery();
      const all = await listMethods(deps, actorIn(ctx));
      ctx.body = { authentication_methods: all.filter((one) => type === undefined || one.type === type) };
    },
  },
  [`POST ${METHODS}` as const]: {
    ...api,
    summary: 'Begin to add to what the user logs in with',
    answers: {
      201: { description: 'What is to be verified now, at `Location` and `/verify`', body: begunAnswer },
    },
    ...asked('create:me:authentication_methods', createBody, handleCreate),
  },
  [`POST ${METHODS}/:id/verify` as const]: {
    ...api,
    summary: 'Verify what was begun: from now on it counts',
    answers: { 201: { description: 'The authentication method', body: methodAnswer } },
    ...asked('create:me:authentication_methods', verifyBody, handleVerify),
  },
  [`GET ${METHODS}/:id` as const]: {
    ...api,
    ...admitted('read:me:authentication_methods'),
    summary: 'One authentication method of the user',
    answers: { 200: { description: 'The authentication method', body: methodAnswer } },
    handle: async (deps, ctx) => {
      ctx.body = await getMethod(deps, actorIn(ctx), String(ctx.params.id));
    },
  },
  [`PATCH ${METHODS}/:id` as const]: {
    ...api,
    summary: 'Name an authentication method',
    answers: { 200: { description: 'The authentication method', body: methodAnswer } },
    ...asked('update:me:authentication_methods', patchBody, async (deps, ctx, actor, { name }) => {
      const id = String(ctx.params.id);
      ctx.body =
        name === undefined ? await getMethod(deps, actor, id) : await renameMethod(deps, actor, id, name);
    }),
  },
  [`DELETE ${METHODS}/:id` as const]: {
    ...api,
    ...admitted('delete:me:authentication_methods'),
    summary: 'Remove an authentication method',
    answers: { 204: 'Removed' },
    handle: async (deps, ctx) => {
      await removeMethod(deps, actorIn(ctx), String(ctx.params.id));
      ctx.status = 204;
    },
  },
  'GET /me/v1/factors': {
    ...api,
    ...admitted('read:me:factors'),
    summary: 'What the tenant lets its users log in with',
    answers: { 200: { description: 'Those that are on', body: factorsAnswer } },
    handle: async (deps, ctx) => {
      ctx.body = { factors: await offeredTypes(deps, actorIn(ctx)) };
    },
  },
};

const isMethodType = (text: unknown): text is MethodType => METHOD_TYPES.some((type) => type === text);

const invalidQuery = () =>
  new AuthError(400, 'invalid_request', 'The query is not valid.', {
    extra: { validation_errors: [{ detail: 'There is no such type.', field: 'type', source: 'query' }] },
  });
