// Routes of the My Account API for authentication methods (docs/wire/my-account.md).
import { z } from 'zod';
import type { RouteDeclarations } from '../../http/routes.ts';
import { METHOD_TYPES, type MethodType } from '../../records/second-factors.ts';
import { type AccountRoutesDependencies, handleCreate, handleVerify, METHODS_PATH } from './enroll-by-api.ts';
import { invalidQuery } from './errors.ts';
import { getMethod, listMethods, removeMethod, renameMethod } from './methods.ts';
import { offeredTypes } from './offered.ts';
import {
  begunAnswer,
  createBody,
  factorsAnswer,
  listAnswer,
  patchBody,
  verifyBody,
} from './parameter-schemas.ts';
import { actorIn, myAccountRoute, withToken, withTokenAndBody } from './route.ts';
import { methodAnswer } from './views.ts';

type Deps = AccountRoutesDependencies;

/** The routes of authentication methods and factors. */
export const accountRoutes: RouteDeclarations<Deps> = {
  [`GET ${METHODS_PATH}` as const]: {
    ...myAccountRoute,
    ...withToken<Deps>('read:me:authentication_methods'),
    summary: "List the user's authentication methods",
    query: z.object({ type: z.enum(METHOD_TYPES).optional().describe('Only methods of this type.') }),
    answers: { 200: { description: 'Passwords, passkeys, and confirmed second factors', body: listAnswer } },
    handle: async (deps, ctx) => {
      const { type } = ctx.query;
      if (type !== undefined && !isMethodType(type)) throw invalidQuery('type', 'There is no such type.');
      const all = await listMethods(deps, actorIn(ctx));
      ctx.body = { authentication_methods: all.filter((one) => type === undefined || one.type === type) };
    },
  },
  [`POST ${METHODS_PATH}` as const]: {
    ...myAccountRoute,
    summary: 'Begin to add an authentication method',
    answers: {
      201: {
        description: 'The method, which must now be verified (at `Location` with `/verify`)',
        body: begunAnswer,
      },
    },
    ...withTokenAndBody('create:me:authentication_methods', createBody, handleCreate),
  },
  [`POST ${METHODS_PATH}/:id/verify` as const]: {
    ...myAccountRoute,
    summary: 'Verify a new authentication method, which is then active',
    answers: { 201: { description: 'The authentication method', body: methodAnswer } },
    ...withTokenAndBody('create:me:authentication_methods', verifyBody, handleVerify),
  },
  [`GET ${METHODS_PATH}/:id` as const]: {
    ...myAccountRoute,
    ...withToken<Deps>('read:me:authentication_methods'),
    summary: 'One authentication method of the user',
    answers: { 200: { description: 'The authentication method', body: methodAnswer } },
    handle: async (deps, ctx) => {
      ctx.body = await getMethod(deps, actorIn(ctx), String(ctx.params.id));
    },
  },
  [`PATCH ${METHODS_PATH}/:id` as const]: {
    ...myAccountRoute,
    summary: 'Name an authentication method',
    answers: { 200: { description: 'The authentication method', body: methodAnswer } },
    ...withTokenAndBody('update:me:authentication_methods', patchBody, async (deps, ctx, actor, { name }) => {
      const id = String(ctx.params.id);
      ctx.body =
        name === undefined ? await getMethod(deps, actor, id) : await renameMethod(deps, actor, id, name);
    }),
  },
  [`DELETE ${METHODS_PATH}/:id` as const]: {
    ...myAccountRoute,
    ...withToken<Deps>('delete:me:authentication_methods'),
    summary: 'Remove an authentication method',
    answers: { 204: 'Removed' },
    handle: async (deps, ctx) => {
      await removeMethod(deps, actorIn(ctx), String(ctx.params.id));
      ctx.status = 204;
    },
  },
  'GET /me/v1/factors': {
    ...myAccountRoute,
    ...withToken<Deps>('read:me:factors'),
    summary: 'List the factors that the tenant has enabled',
    answers: { 200: { description: 'The enabled factors', body: factorsAnswer } },
    handle: async (deps, ctx) => {
      ctx.body = { factors: await offeredTypes(deps, actorIn(ctx)) };
    },
  },
};

const isMethodType = (text: unknown): text is MethodType => METHOD_TYPES.some((type) => type === text);
