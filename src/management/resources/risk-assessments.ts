// Risk assessments: settings that are kept for deploy tools, which write back whatever they read. Nothing here asks a
// login how risky it is.
import { z } from 'zod';
import { type Call, callsWith, ok } from '../call.ts';
import type { KeptDependencies } from '../kept.ts';

const call = callsWith<KeptDependencies>();

const PARTS = [
  {
    path: '/risk-assessments/settings',
    name: 'risk assessment settings',
    body: z.strictObject({ enabled: z.boolean() }),
    usual: { enabled: false },
  },
  {
    path: '/risk-assessments/settings/new-device',
    name: 'the risk assessment of new devices',
    /** Days. */
    body: z.strictObject({ remember_for: z.number().int().min(1).max(365) }),
    usual: { remember_for: 30 },
  },
] as const;

/** The calls. */
export const riskAssessmentCalls: Call<KeptDependencies>[] = PARTS.flatMap(({ path, name, body, usual }) => {
  const kind = path.slice(1);
  return [
    call({
      method: 'GET',
      path,
      scopes: ['read:attack_protection'],
      summary: `Get ${name}`,
      handle: async ({ store }) => ok((await store.collection('documents').get(kind))?.body ?? usual),
    }),
    call({
      method: 'PATCH',
      path,
      scopes: ['update:attack_protection'],
      summary: `Update ${name}`,
      body,
      handle: async (deps, { body: settings }) => {
        const documents = deps.store.collection('documents');
        const [before, at] = [await documents.get(kind), deps.now()];
        await documents.put({
          id: kind,
          kind,
          body: settings,
          created_at: before?.created_at ?? at,
          updated_at: at,
        });
        return ok(settings, { before: before?.body ?? usual, after: settings });
      },
    }),
  ];
});
