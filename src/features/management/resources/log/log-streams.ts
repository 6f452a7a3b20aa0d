// `/log-streams`: the destinations of the tenant's log. Streams of the types in `SINKS` are sent
// (management/log-streams); others are only stored.
import { z } from 'zod';
import { usualMembers } from '../../../../records/tenant/documents.ts';
import { hiddenSinkMembers, streamFaults } from '../../../../records/tenant/log-streams.ts';
import type { Call } from '../../call.ts';
import { documentResourceCalls } from '../../document-calls.ts';
import type { DocumentDependencies } from '../../document-resource.ts';
import { idOf } from '../../ids.ts';
import { CATEGORIES } from '../../log-streams/categories.ts';
import { apiError } from '../../management-errors.ts';
import { notFound } from '../../resource.ts';

const object = z.record(z.string(), z.unknown());

const members = {
  name: z.string().max(255),
  sink: object,
  status: z.enum(['active', 'paused', 'suspended']),
  filters: z
    .array(z.strictObject({ type: z.literal('category'), name: z.enum(CATEGORIES as [string]) }))
    .max(CATEGORIES.length)
    .nullable(),
  isPriority: z.boolean(),
  pii_config: object,
  startFrom: z
    .string()
    .max(64)
    .refine((text) => !Number.isNaN(Date.parse(text)), 'Expected a date'),
};

const settable = z.strictObject(members).partial();

/** Refuses a stream that is to be sent but has invalid options. @throws AuthError 400 */
function refuseFaulty(stream: Readonly<Record<string, unknown>>): void {
  const [fault] = streamFaults(stream);
  if (fault === undefined) return;
  const { path, message } = fault;
  throw apiError(400, `Payload validation error: '${message}' on property ${path}.`, 'invalid_body');
}

export const logStreamCalls: Call<DocumentDependencies>[] = documentResourceCalls({
  kind: 'log-stream',
  path: '/log-streams',
  name: 'log stream',
  noun: 'log_streams',
  newId: (random) => idOf('lst', random),
  createBody: settable.extend({ type: z.string().max(64), sink: object }),
  patchBody: settable,
  validate: refuseFaulty,
  hidden: hiddenSinkMembers.map((name) => `sink.${name}`),
  defaults: usualMembers['log-stream'],
  constantMembers: { isPriority: false },
  list: { key: 'log_streams' },
  unpaged: 'bare',
  missing: notFound('Log stream not found'),
  taken: 'A log stream with the same name already exists.',
  createStatus: 200,
  hasDates: false,
  afterRemoval: async ({ store }, id) => {
    await store.collection('logStreamPositions').delete(id);
  },
});
