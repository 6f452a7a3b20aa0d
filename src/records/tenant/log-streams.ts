// The options of log streams: destinations and personal data. The Management API and tenant files use the same
// schemas.
import { z } from 'zod';
import { hiddenNames, secretPaths } from '../base/members.ts';
import { fileSink } from '../sinks/file.ts';
import { httpSink } from '../sinks/http.ts';
import type { Sink } from '../sinks/sink.ts';

/** The destinations that events are sent to. */
export const SINKS: readonly Sink[] = [httpSink, fileSink];

/** Returns the sink of streams of a type; undefined for streams that are only stored. */
export const sinkOf = (type: unknown): Sink | undefined => SINKS.find((one) => one.type === type);

/** Secrets of destinations that are only stored, for tools, by the hosted service's names. */
const STORED_SECRETS = [
  'datadogApiKey',
  'splunkToken',
  'sumoSourceAddress',
  'mixpanelServiceAccountPassword',
  'segmentWriteKey',
];

const members = SINKS.map((one) => one.members);

/** The members of a stream's `sink` that are stored encrypted. */
export const sinkSecrets: readonly string[] = [...new Set([...secretPaths(members), ...STORED_SECRETS])];

/** The members of a stream's `sink` that the Management API does not return. */
export const hiddenSinkMembers: readonly string[] = hiddenNames(members);

/** The personal data to mask or hash in events. */
export const piiConfigSchema = z.strictObject({
  log_fields: z.array(z.enum(['first_name', 'last_name', 'username', 'email', 'phone', 'address'])).max(6),
  method: z.enum(['mask', 'hash']).nullish(),
  algorithm: z.enum(['xxhash']).nullish(),
});

export type PiiConfig = z.output<typeof piiConfigSchema>;

interface StreamFault {
  path: string;
  message: string;
  /** The keys of the object at `path` that are not known, if that is the fault. */
  unknownKeys: readonly string[];
}

/**
 * Returns what is wrong with a stream that is to be sent, with the path of each member. Streams that are only stored
 * have no faults.
 */
export function streamFaults(stream: Readonly<Record<string, unknown>>): StreamFault[] {
  const sink = sinkOf(stream.type);
  if (sink === undefined) return [];
  const parts: [string, z.ZodType, unknown][] = [['sink', sink.schema, stream.sink]];
  if (stream.pii_config != null && Object.keys(stream.pii_config).length > 0)
    parts.push(['pii_config', piiConfigSchema, stream.pii_config]);
  return parts.flatMap(([name, schema, value]) =>
    (schema.safeParse(value).error?.issues ?? []).map((issue) => ({
      path: [name, ...issue.path].join('.'),
      message: issue.message,
      unknownKeys: issue.code === 'unrecognized_keys' ? issue.keys : [],
    })),
  );
}
