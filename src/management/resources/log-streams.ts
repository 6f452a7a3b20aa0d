// `/log-streams`: where a tenant's log is to be sent. They are kept; sending is not built in yet.
import { z } from 'zod';
import { usualMembers } from '../../records/documents.ts';
import type { Call } from '../call.ts';
import { idOf } from '../ids.ts';
import { type KeptDependencies, keptCalls } from '../kept.ts';
import { notFound } from '../resource.ts';

const object = z.record(z.string(), z.unknown());
const members = {
  name: z.string().max(255),
  sink: object,
  status: z.enum(['active', 'paused', 'suspended']),
  filters: z.array(object).nullable(),
  isPriority: z.boolean(),
  pii_config: object,
  startFrom: z.string().max(64),
};

const settable = z.strictObject(members).partial();

/** All calls of log streams. */
export const logStreamCalls: Call<KeptDependencies>[] = keptCalls({
  kind: 'log-stream',
  path: '/log-streams',
  name: 'log stream',
  noun: 'log_streams',
  newId: (random) => idOf('lst', random),
  createBody: settable.extend({ type: z.string().max(64), sink: object }),
  patchBody: settable,
  usual: usualMembers['log-stream'],
  list: { key: 'log_streams' },
  whole: 'bare',
  missing: notFound('Log stream not found'),
  taken: 'A log stream with the same name already exists.',
  createStatus: 200,
  isRemovalStrict: true,
  hasDates: false,
});
