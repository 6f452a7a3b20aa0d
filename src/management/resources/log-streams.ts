// `/log-streams`: where a tenant's log is to be sent. Those of the type `http` are sent (management/log-streams); others
// are kept.
import { z } from 'zod';
import { usualMembers } from '../../records/documents.ts';
import type { Call } from '../call.ts';
import { apiError } from '../errors.ts';
import { idOf } from '../ids.ts';
import type { KeptDependencies } from '../kept.ts';
import { keptCalls } from '../kept-calls.ts';
import { CATEGORIES } from '../log-streams/categories.ts';
import { notFound } from '../resource.ts';

/** A header's name (RFC 9110 §5.1), and not one that is the request's own. */
const headerName = z
  .string()
  .max(255)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/)
  .refine(
    (name) => !/^(host|content-length|transfer-encoding|connection|upgrade|te|trailer|expect)$/i.test(name),
    "This header is the request's own",
  );
/** A header's value: visible characters and spaces. */
const headerValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e]*$/);

const httpSink = z.strictObject({
  httpEndpoint: z.url({ protocol: /^https?$/ }).max(2048),
  httpAuthorization: headerValue.nullish(),
  httpContentFormat: z.enum(['JSONLINES', 'JSONARRAY', 'JSONOBJECT']).nullish(),
  httpContentType: headerValue.max(255).nullish(),
  httpCustomHeaders: z
    .array(z.strictObject({ header: headerName, value: headerValue }))
    .max(20)
    .nullish(),
});

const object = z.record(z.string(), z.unknown());

/** A sink with an address is sent to, and so has to be right. */
const sink = object.superRefine((value, ctx) => {
  if (!('httpEndpoint' in value)) return;
  for (const { path, message } of httpSink.safeParse(value).error?.issues ?? [])
    ctx.addIssue({ code: 'custom', path, message });
});

const members = {
  name: z.string().max(255),
  sink,
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

/** @throws AuthError 400 for a stream that is sent and whose events were to be masked: nothing masks them. */
function refuseUnmasked(stream: Readonly<Record<string, unknown>>): void {
  const { log_fields: fields } = (stream.pii_config ?? {}) as { log_fields?: unknown };
  const isEmpty = stream.pii_config == null || (Array.isArray(fields) && fields.length === 0);
  if (stream.type === 'http' && !isEmpty)
    throw apiError(400, "Payload validation error: 'Not supported' on property pii_config.", 'invalid_body');
}

/** All calls of log streams. */
export const logStreamCalls: Call<KeptDependencies>[] = keptCalls({
  kind: 'log-stream',
  path: '/log-streams',
  name: 'log stream',
  noun: 'log_streams',
  newId: (random) => idOf('lst', random),
  createBody: settable
    .extend({ type: z.string().max(64), sink })
    .refine(({ type, sink: to }) => type !== 'http' || 'httpEndpoint' in to, {
      path: ['sink'],
      message: 'An http stream needs a httpEndpoint',
    }),
  patchBody: settable,
  judge: refuseUnmasked,
  usual: usualMembers['log-stream'],
  list: { key: 'log_streams' },
  whole: 'bare',
  missing: notFound('Log stream not found'),
  taken: 'A log stream with the same name already exists.',
  createStatus: 200,
  isRemovalStrict: true,
  hasDates: false,
  removed: async ({ store }, id) => {
    await store.collection('logStreamPositions').delete(id);
  },
});
