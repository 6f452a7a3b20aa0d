// `/prompts/rendering`: settings for rendering screens with a tenant's own code. They are stored and have no effect.
// docs/understand/decisions/management-api.md#rate-limit-policies-directory-provisionings-and-renderings-are-stored
import { z } from 'zod';
import type { DocumentRecord } from '../../../../records/tenant/documents.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { type DocumentDependencies, documentsOf } from '../../document-resource.ts';
import { arraySource, listAnswer, mapped, pageQuery } from '../../list.ts';
import { flag, selectFields } from '../../management-fields.ts';
import { checkedSegment, PROMPT } from '../../path-segments.ts';
import { merged } from '../../resource.ts';

const KIND = 'rendering';
const object = z.record(z.string(), z.unknown());
const settings = z
  .strictObject({
    rendering_mode: z.enum(['standard', 'advanced']),
    context_configuration: z.array(z.string().max(255)).max(200).nullable(),
    default_head_tags_disabled: z.boolean().nullable(),
    use_page_template: z.boolean().nullable(),
    head_tags: z.array(object).max(50).nullable(),
    filters: object.nullable(),
  })
  .partial();
const word = z.string().regex(PROMPT);

/** The response for a screen without settings. */
const DEFAULTS = { rendering_mode: 'standard', context_configuration: [], head_tags: [] };

const idOf = (prompt: string, screen: string) => `${KIND}/${prompt}/${screen}`;

function viewOf({ id, body }: { id: string; body: object }): object {
  const [, prompt, screen] = id.split('/');
  return { prompt, screen, ...DEFAULTS, ...body };
}

/** Changes the settings of one screen. @returns the settings before and after. */
async function change({ store, now }: DocumentDependencies, id: string, body: Record<string, unknown>) {
  const documents = store.collection('documents');
  const before = await documents.get(id);
  const timestamp = now();
  const after = await documents.upsert(
    id,
    (current): DocumentRecord => ({
      id,
      kind: KIND,
      body: merged((current?.body ?? {}) as Record<string, unknown>, body),
      created_at: current?.created_at ?? timestamp,
      updated_at: timestamp,
    }),
  );
  return { before: before?.body, after };
}

const call = callsWith<DocumentDependencies>();
const PATH = '/prompts/:prompt/screen/:screen/rendering';
const screenId = ({ prompt, screen }: Readonly<Record<string, string>>) =>
  idOf(checkedSegment(prompt, PROMPT, 'prompt'), checkedSegment(screen, PROMPT, 'screen'));

export const renderingCalls: Call<DocumentDependencies>[] = [
  call({
    method: 'GET',
    path: '/prompts/rendering',
    scopes: ['read:prompts'],
    summary: 'List the rendering settings of screens',
    query: z.strictObject({
      ...pageQuery,
      fields: z.string().max(1024).optional(),
      include_fields: flag.optional(),
      prompt: z.string().max(64).optional(),
      screen: z.string().max(64).optional(),
      rendering_mode: z.string().max(64).optional(),
    }),
    handle: async ({ store }, { query }) => {
      const filterNames = ['prompt', 'screen', 'rendering_mode'] as const;
      const all = (await documentsOf(store, KIND))
        .map((one) => viewOf(one) as Record<string, unknown>)
        .filter((one) => filterNames.every((name) => query[name] === undefined || one[name] === query[name]));
      const source = arraySource(all, (one) => `${one.prompt}/${one.screen}`);
      return ok(
        await listAnswer(
          query,
          mapped(source, (one) => selectFields(one, query)),
          { key: 'configs', isByCursor: false },
        ),
      );
    },
  }),
  call({
    method: 'PATCH',
    path: '/prompts/rendering',
    scopes: ['update:prompts'],
    summary: 'Set the rendering settings of several screens',
    body: z.strictObject({
      configs: z
        .array(z.strictObject({ ...settings.shape, prompt: word, screen: word }))
        .min(1)
        .max(20),
    }),
    handle: async (deps, { body }) => {
      const configs: object[] = [];
      for (const { prompt, screen, ...rest } of body.configs)
        configs.push(viewOf((await change(deps, idOf(prompt, screen), rest)).after));
      return ok({ configs }, { after: configs });
    },
  }),
  call({
    method: 'GET',
    path: PATH,
    scopes: ['read:prompts'],
    summary: 'Get the rendering settings of a screen',
    handle: async ({ store }, { params }) => {
      const id = screenId(params);
      return ok(viewOf((await store.collection('documents').get(id)) ?? { id, body: {} }));
    },
  }),
  call({
    method: 'PATCH',
    path: PATH,
    scopes: ['update:prompts'],
    summary: 'Set the rendering settings of a screen',
    body: settings,
    handle: async (deps, { params, body }) => {
      const { before, after } = await change(deps, screenId(params), body);
      return ok(viewOf(after), { before, after: after.body });
    },
  }),
];
