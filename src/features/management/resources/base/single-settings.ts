// Single settings. Risk assessments and supplemental signals are stored for deploy tools and have no effect; the
// variables of rules are used.

import { z } from 'zod';
import { RULE_VARIABLE_KEY } from '../../../../records/tenant/rule-sections.ts';
import { RULE_VARIABLE, ruleVariableId, ruleVariableKey } from '../../../../records/tenant/rules.ts';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import { type DocumentDependencies, documentsOf } from '../../document-resource.ts';
import { pageQuery } from '../../list.ts';
import { checkedSegment } from '../../path-segments.ts';

const call = callsWith<DocumentDependencies>();

const PARTS: readonly {
  path: string;
  name: string;
  noun: string;
  body: z.ZodType<Record<string, unknown>>;
  defaults: object;
}[] = [
  {
    path: '/risk-assessments/settings',
    name: 'risk assessment settings',
    noun: 'attack_protection',
    body: z.strictObject({ enabled: z.boolean() }),
    defaults: { enabled: false },
  },
  {
    path: '/risk-assessments/settings/new-device',
    name: 'the risk assessment of new devices',
    noun: 'attack_protection',
    /** In days. */
    body: z.strictObject({ remember_for: z.number().int().min(1).max(365) }),
    defaults: { remember_for: 30 },
  },
  {
    path: '/supplemental-signals',
    name: 'supplemental signals',
    noun: 'attack_protection',
    body: z.strictObject({ akamai_enabled: z.boolean() }).partial(),
    defaults: {},
  },
];

const settingCalls: Call<DocumentDependencies>[] = PARTS.flatMap(({ path, name, noun, body, defaults }) => {
  const kind = path.slice(1);
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `Get ${name}`,
      handle: async ({ store }) => ok((await store.collection('documents').get(kind))?.body ?? defaults),
    }),
    call({
      method: 'PATCH',
      path,
      scopes: [`update:${noun}`],
      summary: `Update ${name}`,
      body,
      handle: async (deps, { body: settings }) => {
        const documents = deps.store.collection('documents');
        const [before, at] = [await documents.get(kind), deps.now()];
        const created_at = before?.created_at ?? at;
        await documents.put({ id: kind, kind, body: settings, created_at, updated_at: at });
        return ok(settings, { before: before?.body ?? defaults, after: settings });
      },
    }),
  ];
});

/** The values of variables are secret; responses only have their names. */
const variableCalls: Call<DocumentDependencies>[] = [
  call({
    method: 'GET',
    path: '/rules-configs',
    scopes: ['read:rules_configs'],
    summary: 'List the variables of rules',
    query: z.strictObject(pageQuery),
    handle: async ({ store }) =>
      ok((await documentsOf(store, RULE_VARIABLE)).map(({ id }) => ({ key: ruleVariableKey(id) }))),
  }),
  call({
    method: 'PUT',
    path: '/rules-configs/:key',
    scopes: ['update:rules_configs'],
    summary: 'Set a variable of rules',
    isBodySecret: true,
    body: z.strictObject({ value: z.string().max(10_000) }),
    handle: async (deps, { params: { key = '' }, body }) => {
      const id = ruleVariableId(checkedSegment(key, RULE_VARIABLE_KEY, 'key'));
      const at = deps.now();
      await deps.store.collection('documents').upsert(id, (current) => ({
        id,
        kind: RULE_VARIABLE,
        body,
        created_at: current?.created_at ?? at,
        updated_at: at,
      }));
      return ok({ key, value: body.value }, { after: { key } });
    },
  }),
  call({
    method: 'DELETE',
    path: '/rules-configs/:key',
    scopes: ['delete:rules_configs'],
    summary: 'Delete a variable of rules',
    handle: async ({ store }, { params }) => {
      await store.collection('documents').delete(ruleVariableId(params.key ?? ''));
      return noContent({ before: { key: params.key } });
    },
  }),
];

export const singleSettingCalls: Call<DocumentDependencies>[] = [...settingCalls, ...variableCalls];
