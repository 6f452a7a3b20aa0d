// The options of log streams: destinations and personal data. The Management API and tenant files use the same
// schemas.
import { z } from 'zod';
import { hasUserInfo } from '../http/outbound.ts';

/** A header name (RFC 9110 §5.1) that the request does not set itself. */
const headerName = z
  .string()
  .max(255)
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/)
  .refine(
    (name) =>
      !/^(host|content-length|transfer-encoding|connection|upgrade|te|trailer|expect|gatehouse-signature)$/i.test(
        name,
      ),
    "This header is the request's own",
  );
/** A header value: visible characters and spaces. */
const headerValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e]*$/);

/** The destination of a stream of type `http`. */
const httpSinkSchema = z.strictObject({
  // `fetch` refuses a URL with a password, and its message, which is logged, would contain the URL.
  httpEndpoint: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .refine((url) => !hasUserInfo(url), 'must hold no user and password: they go into httpAuthorization'),
  httpAuthorization: headerValue.nullish(),
  httpContentFormat: z.enum(['JSONLINES', 'JSONARRAY', 'JSONOBJECT']).nullish(),
  httpContentType: headerValue.max(255).nullish(),
  httpCustomHeaders: z
    .array(z.strictObject({ header: headerName, value: headerValue }))
    .max(20)
    .nullish(),
  /** An extension of the hosted API: the key that requests are signed with. */
  httpSigningSecret: z.string().min(22).max(255).nullish(),
});

export type HttpSink = z.output<typeof httpSinkSchema>;

/**
 * The destination of a stream of type `file`, an extension of the hosted API: a file in `log-streams` of the data
 * directory.
 */
const fileSinkSchema = z.strictObject({
  path: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'Expected the name of a file, without a directory'),
});

export type FileSink = z.output<typeof fileSinkSchema>;

/** The personal data to mask or hash in events. */
export const piiConfigSchema = z.strictObject({
  log_fields: z.array(z.enum(['first_name', 'last_name', 'username', 'email', 'phone', 'address'])).max(6),
  method: z.enum(['mask', 'hash']).nullish(),
  algorithm: z.enum(['xxhash']).nullish(),
});

export type PiiConfig = z.output<typeof piiConfigSchema>;

const SINKS: Readonly<Record<string, z.ZodType>> = { http: httpSinkSchema, file: fileSinkSchema };

/** Whether streams of a type are sent. Streams of other types are only stored. */
export function isSentType(type: unknown): boolean {
  return typeof type === 'string' && Object.hasOwn(SINKS, type);
}

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
  if (!isSentType(stream.type)) return [];
  const parts: [string, z.ZodType, unknown][] = [
    ['sink', SINKS[String(stream.type)] ?? z.never(), stream.sink],
  ];
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
