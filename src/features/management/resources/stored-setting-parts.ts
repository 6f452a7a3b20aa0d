// Parts of settings that are stored for deploy tools: secrets of hooks, and texts of self-service profiles.
import { z } from 'zod';
import { type Call, callsWith, created, noContent, ok } from '../call.ts';
import { type DocumentDependencies, documentOf, storedObject } from '../document-resource.ts';
import { checkedSegment, PROMPT } from '../path-segments.ts';
import { notFound } from '../resource.ts';
import { LANGUAGE } from './tenant/prompts.ts';

const call = callsWith<DocumentDependencies>();

const hook = { kind: 'hooks', missing: notFound('The hook does not exist.') };
const secrets = z.record(z.string().max(128), z.string().max(4096));
type Secrets = z.output<typeof secrets>;

/** Returns the secrets of a hook, and a function that replaces them. @throws AuthError 404 */
async function secretsOf(deps: DocumentDependencies, hookId: string | undefined) {
  const { id } = await documentOf(deps.store, hook, hookId);
  const key = `hook-secrets/${id}`;
  const { values = {} } = (await storedObject(deps).read(key)) as { values?: Secrets };
  return {
    values,
    put: (changed: Secrets) => storedObject(deps).put(key, 'hook-secrets', { values: changed }),
  };
}

const hookSecretCalls = [
  call({
    method: 'GET',
    path: '/hooks/:id/secrets',
    scopes: ['read:hooks'],
    summary: 'List the names of a hook’s secrets',
    handle: async (deps, { params }) => {
      const { values } = await secretsOf(deps, params.id);
      return ok(Object.fromEntries(Object.keys(values).map((name) => [name, '_VALUE_NOT_SHOWN_'])));
    },
  }),
  ...(['POST', 'PATCH'] as const).map((method) =>
    call({
      method,
      path: '/hooks/:id/secrets',
      scopes: ['update:hooks'],
      summary: method === 'POST' ? 'Add secrets to a hook' : 'Change secrets of a hook',
      isBodySecret: true,
      body: secrets,
      handle: async (deps, { params, body }) => {
        const { values, put } = await secretsOf(deps, params.id);
        await put({ ...values, ...body });
        return created({});
      },
    }),
  ),
  call({
    method: 'DELETE',
    path: '/hooks/:id/secrets',
    scopes: ['delete:hooks'],
    summary: 'Remove secrets of a hook',
    body: z.array(z.string().max(128)).max(100),
    handle: async (deps, { params, body }) => {
      const { values, put } = await secretsOf(deps, params.id);
      await put(Object.fromEntries(Object.entries(values).filter(([name]) => !body.includes(name))));
      return noContent();
    },
  }),
];

const profile = {
  kind: 'self-service-profiles',
  missing: notFound('The self-service profile does not exist.'),
};
const TEXTS = '/self-service-profiles/:id/custom-text/:language/:page';

async function textsId(
  deps: DocumentDependencies,
  params: Readonly<Record<string, string>>,
): Promise<string> {
  const { id } = await documentOf(deps.store, profile, params.id);
  const language = checkedSegment(params.language, LANGUAGE, 'language');
  return `self-service-text/${id}/${language}/${checkedSegment(params.page, PROMPT, 'page')}`;
}

const selfServiceCalls = [
  call({
    method: 'GET',
    path: TEXTS,
    scopes: ['read:self_service_profile_custom_texts'],
    summary: 'Get the texts of a self-service profile',
    handle: async (deps, { params }) => ok(await storedObject(deps).read(await textsId(deps, params))),
  }),
  call({
    method: 'PUT',
    path: TEXTS,
    scopes: ['update:self_service_profile_custom_texts'],
    summary: 'Set the texts of a self-service profile',
    body: z.record(z.string().max(255), z.string().max(4096)),
    handle: async (deps, { params, body }) => {
      await storedObject(deps).put(await textsId(deps, params), 'self-service-text', body);
      return ok(body);
    },
  }),
];

export const storedPartCalls: Call<DocumentDependencies>[] = [...hookSecretCalls, ...selfServiceCalls];
