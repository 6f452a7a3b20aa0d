// Log streams: where they go, and what is left out of the events. Checked in calls and in tenant files alike.
import { z } from 'zod';
import { hasUserInfo } from '../http/outbound-rules.ts';

/** A header's name (RFC 9110 §5.1), and not one that is the request's own. */
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
/** A header's value: visible characters and spaces. */
const headerValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e]*$/);

/** Where a stream of the type `http` goes. */
const httpSinkSchema = z.strictObject({
  // No request can be made of one with a password in it, and the reason in the log would quote it.
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
  /** Ours: requests are signed with it. */
  httpSigningSecret: z.string().min(22).max(255).nullish(),
});

export type HttpSink = z.output<typeof httpSinkSchema>;

/** Where a stream of the type `file` goes, which is ours: a file of the data directory's `log-streams`. */
const fileSinkSchema = z.strictObject({
  path: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'Expected the name of a file, without a directory'),
});

export type FileSink = z.output<typeof fileSinkSchema>;

/** What is personal and to be left out of the events. */
export const piiConfigSchema = z.strictObject({
  log_fields: z.array(z.enum(['first_name', 'last_name', 'username', 'email', 'phone', 'address'])).max(6),
  method: z.enum(['mask', 'hash']).nullish(),
  algorithm: z.enum(['xxhash']).nullish(),
});

export type PiiConfig = z.output<typeof piiConfigSchema>;

const SINKS: Readonly<Record<string, z.ZodType>> = { http: httpSinkSchema, file: fileSinkSchema };

/** Whether streams of a type are sent; those of others are kept alone. */
export function isSentType(type: unknown): boolean {
  return typeof type === 'string' && Object.hasOwn(SINKS, type);
}

/** What is wrong with a stream that is sent; nothing with one that is kept. Each with the path of the member. */
export function streamFaults(stream: Readonly<Record<string, unknown>>): { path: string; message: string }[] {
  if (!isSentType(stream.type)) return [];
  const parts: [string, z.ZodType, unknown][] = [
    ['sink', SINKS[String(stream.type)] ?? z.never(), stream.sink],
  ];
  if (stream.pii_config != null && Object.keys(stream.pii_config).length > 0)
    parts.push(['pii_config', piiConfigSchema, stream.pii_config]);
  return parts.flatMap(([name, schema, value]) =>
    (schema.safeParse(value).error?.issues ?? []).map(({ path, message }) => ({
      path: [name, ...path].join('.'),
      message,
    })),
  );
}
