// Texts of pages: `/prompts/{prompt}/custom-text/{language}` and `/prompts/{prompt}/partials`.
import { z } from 'zod';
import type { DocumentRecord } from '../../records/documents.ts';
import { type Call, callsWith, ok } from '../call.ts';
import { apiError } from '../errors.ts';
import type { KeptDependencies } from '../kept.ts';
import { pageQuery } from '../list.ts';

/** Prompts are words; they are part of a path and of a record's id. */
const PROMPT = /^[a-z][a-z0-9-]{0,63}$/;
const LANGUAGE = /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}$/;

const texts = z.record(z.string().max(255), z.record(z.string().max(255), z.string().max(4096).nullable()));
const partials = z.record(z.string().max(255), z.unknown());

/** What is kept under a key: an object as it was put. */
function keptObject({ store, now }: KeptDependencies) {
  const documents = store.collection('documents');
  return {
    read: async (id: string): Promise<object> => (await documents.get(id))?.body ?? {},
    put: async (id: string, kind: string, body: object): Promise<void> => {
      if (Object.keys(body).length === 0) {
        await documents.delete(id);
        return;
      }
      const at = now();
      await documents.upsert(
        id,
        (current): DocumentRecord => ({
          id,
          kind,
          body: body as Record<string, unknown>,
          created_at: current?.created_at ?? at,
          updated_at: at,
        }),
      );
    },
  };
}

function checked(value: string | undefined, pattern: RegExp, name: string): string {
  if (value !== undefined && pattern.test(value)) return value;
  throw apiError(
    400,
    `Path validation error: 'String does not match pattern ${pattern.source}' on property ${name}.`,
    'invalid_uri',
  );
}

/** The id of a prompt's texts in a language. */
export const customTextId = (prompt: string, language: string): string => `custom-text/${prompt}/${language}`;

const call = callsWith<KeptDependencies>();

function calls(): Call<KeptDependencies>[] {
  const textId = ({ prompt, language }: Readonly<Record<string, string>>) =>
    customTextId(checked(prompt, PROMPT, 'prompt'), checked(language, LANGUAGE, 'language'));
  const partialsId = ({ prompt }: Readonly<Record<string, string>>) =>
    `partials/${checked(prompt, PROMPT, 'prompt')}`;
  return [
    call({
      method: 'GET',
      path: '/prompts/:prompt/custom-text/:language',
      scopes: ['read:prompts'],
      summary: 'Get the custom text of a prompt',
      handle: async (deps, { params }) => ok(await keptObject(deps).read(textId(params))),
    }),
    call({
      method: 'PUT',
      path: '/prompts/:prompt/custom-text/:language',
      scopes: ['update:prompts'],
      summary: 'Set the custom text of a prompt',
      body: texts,
      handle: async (deps, { params, body }) => {
        const id = textId(params);
        const before = await keptObject(deps).read(id);
        await keptObject(deps).put(id, 'custom-text', body);
        return ok(body, { before, after: body });
      },
    }),
    call({
      method: 'GET',
      path: '/prompts/:prompt/partials',
      scopes: ['read:prompts'],
      summary: 'Get the partials of a prompt',
      handle: async (deps, { params }) => ok(await keptObject(deps).read(partialsId(params))),
    }),
    call({
      method: 'PUT',
      path: '/prompts/:prompt/partials',
      scopes: ['update:prompts'],
      summary: 'Set the partials of a prompt',
      body: partials,
      handle: async (deps, { params, body }) => {
        const id = partialsId(params);
        const before = await keptObject(deps).read(id);
        await keptObject(deps).put(id, 'partials', body);
        return ok(body, { before, after: body });
      },
    }),
    call({
      method: 'GET',
      path: '/prompts/rendering',
      scopes: ['read:prompts'],
      summary: 'List rendering settings: there are none',
      query: z.strictObject({
        ...pageQuery,
        fields: z.string().optional(),
        include_fields: z.string().optional(),
        prompt: z.string().optional(),
        screen: z.string().optional(),
        rendering_mode: z.string().optional(),
      }),
      handle: async (_deps, { query }) =>
        ok(
          query.include_totals === true
            ? { start: 0, limit: query.per_page ?? 50, total: 0, configs: [] }
            : [],
        ),
    }),
  ];
}

/** All calls of prompts' texts. */
export const promptTextCalls = calls();
