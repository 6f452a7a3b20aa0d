// The environment variables that are settings: form, default and meaning of each, and which are secret.
import { z } from 'zod';
import { parseKey } from '../store/sealing/key.ts';

/** Path of the tenant file where TENANT_FILE is not set. */
export const TENANT_FILE = 'config/tenant.yaml';

/** A key of 32 bytes. Its fault does not quote the value. */
const secretsKey = z.string().transform((text, context) => {
  const key = parseKey(text);
  if (key !== undefined) return key;
  context.addIssue({
    code: 'custom',
    message: 'must be 32 random bytes, in base64 or in hexadecimal digits',
  });
  return z.NEVER;
});

const port = z
  .string()
  .refine((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65535, 'must be a port number, 0 to 65535')
  .transform(Number);

/** The schema of the variables, each by itself. {@link crossFaults} checks them together. */
export const environment = z.object({
  PORT: port.default(3000).meta({ description: 'the port that the server listens on; 0 takes a free port' }),
  HOST: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .meta({ description: 'the address that the server listens on' }),
  MAX_CONNECTIONS: z
    .string()
    .regex(/^[1-9]\d{0,5}$/, 'must be a number from 1 to 999999')
    .transform(Number)
    .default(10_000)
    .meta({ description: 'the most connections of one process, see [Limits](#limits)' }),
  BASE_URL: z.string().optional().meta({
    description: 'the public origin, such as `https://login.example.com`; the issuer is this origin plus `/`',
    fallback: '`https://localhost:$PORT`',
  }),
  TENANT_FILE: z.string().min(1).default(TENANT_FILE).meta({ description: 'path of the tenant file' }),
  DATA_DIR: z
    .string()
    .min(1)
    .default('./data')
    .meta({ description: 'directory of the embedded store, the keys and the local TLS files' }),
  SECRETS_KEY: secretsKey.optional().meta({
    isSecret: true,
    description:
      'the key that encrypts secrets in the store: 32 random bytes in base64 or hex (`openssl rand -base64 32`)',
    fallback: 'a key file, `$DATA_DIR/keys/secrets.key`',
  }),
  SECRETS_KEY_BEFORE: secretsKey
    .optional()
    .meta({ isSecret: true, description: 'the previous key, while you change the key (see below)' }),
  TLS: z.enum(['auto', 'files', 'proxy']).default('auto').meta({
    description:
      '`auto`: a local CA and certificate in `$DATA_DIR/tls`; `files`: `TLS_CERT` and `TLS_KEY`; `proxy`: plain HTTP behind a TLS proxy',
  }),
  TLS_CERT: z
    .string()
    .optional()
    .meta({ description: 'with `TLS=files`: the certificate chain, a PEM file' }),
  TLS_KEY: z
    .string()
    .optional()
    .meta({ description: 'with `TLS=files`: the private key of the certificate, a PEM file' }),
  TRUSTED_PROXIES: z.string().optional().meta({
    description:
      'with `TLS=proxy`: addresses and CIDR ranges of the proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are used',
  }),
  MTLS_PORT: port.optional().meta({
    description:
      'the port where clients are asked for certificates (mutual TLS); if it equals `PORT`, everybody is asked',
  }),
  MTLS_CA: z.string().optional().meta({
    description: 'with `MTLS_PORT`: the authorities that sign client certificates, a PEM file',
  }),
  MTLS_BASE_URL: z.string().optional().meta({
    description: 'the public origin where clients are asked for certificates, which discovery shows',
    fallback: "`BASE_URL`'s host at `MTLS_PORT`",
  }),
  OUTBOUND_ALLOW: z.string().optional().meta({
    description:
      'comma-separated hosts, addresses and CIDR ranges that the server may call in addition to the public Internet, by http too (see below)',
    fallback: 'loopback in development, none in production',
  }),
  DNS_SERVERS: z.string().optional().meta({
    description: 'comma-separated addresses of the DNS servers that verify the ownership of custom domains',
    fallback: "the system's servers",
  }),
  SIGNING: z.enum(['local', 'command', 'http']).default('local').meta({
    description:
      'where the signing keys are: `local` in the store, the others outside it; see [keys.md](keys.md)',
  }),
  SIGNING_COMMAND: z.string().optional().meta({
    description: 'with `SIGNING=command`: the program and its first arguments, separated by spaces',
  }),
  SIGNING_URL: z
    .string()
    .optional()
    .meta({ description: 'with `SIGNING=http`: the address of the signing service' }),
  SIGNING_SECRET: z.string().min(22).optional().meta({
    isSecret: true,
    description: 'with `SIGNING=http`: the bearer token for the service, at least 22 characters',
  }),
  DATABASE_URL: z.string().optional().meta({
    isSecret: true,
    description:
      'stores everything in PostgreSQL, for any number of processes: `postgres://user:password@host/database?sslmode=verify-full` (see below)',
    fallback: 'the embedded store',
  }),
  WORKERS: z
    .union(
      [z.literal('auto'), z.coerce.number().int().min(1).max(256)],
      'must be a number from 1 to 256, or `auto`',
    )
    .optional()
    .meta({
      description:
        'with `DATABASE_URL`: the number of processes that serve, or `auto` for one per processor; see [scaling.md](scaling.md)',
      fallback: 'this process serves',
    }),
  SMTP_URL: z.string().optional().meta({
    isSecret: true,
    description:
      'the mail server: `smtps://user:password@host` or `smtp://user:password@host` (STARTTLS); without it, and without a provider in the tenant file, mail goes to the development inbox',
  }),
  MAIL_FROM: z.string().optional().meta({ description: 'the sender of mail; required with `SMTP_URL`' }),
  TWILIO_ACCOUNT_SID: z
    .string()
    .optional()
    .meta({ description: 'the Twilio account for SMS; required with `TWILIO_AUTH_TOKEN`' }),
  TWILIO_AUTH_TOKEN: z
    .string()
    .optional()
    .meta({ isSecret: true, description: 'the token of the Twilio account' }),
  TWILIO_FROM: z
    .string()
    .optional()
    .meta({ description: 'the sender of SMS; set this or `TWILIO_MESSAGING_SERVICE_SID`' }),
  TWILIO_MESSAGING_SERVICE_SID: z
    .string()
    .optional()
    .meta({ description: 'the Twilio messaging service that sends SMS' }),
  TWILIO_API_URL: z.string().optional().meta({ description: 'another address of the Twilio API, for tests' }),
  METRICS_PORT: port.optional().meta({
    description: 'a separate port for metrics, by plain HTTP at `/metrics`; 0 takes a free port',
  }),
  METRICS_HOST: z.string().min(1).optional().meta({
    description: 'with `METRICS_PORT`: the address that this port listens on',
    fallback: '`127.0.0.1`',
  }),
  METRICS_TOKEN: z.string().min(22).optional().meta({
    isSecret: true,
    description:
      'the bearer token that reads metrics (`Authorization: Bearer …`), at least 22 characters; without `METRICS_PORT` they are at `/metrics` of `BASE_URL`',
  }),
  CONSOLE: z.enum(['on', 'off']).default('on').meta({
    description: '`off`: `/console` does not exist, and nobody can log in to it',
  }),
  CONSOLE_URL: z.string().optional().meta({
    description:
      'the public origin of the console if it has a host of its own, such as `https://console.example.com`: the console is then served only there, and nothing else is',
    fallback: '`BASE_URL`',
  }),
  LOG_STREAM_FILES: z.enum(['on', 'off']).default('off').meta({
    description: '`on`: log streams of the type `file` are written to `$DATA_DIR/log-streams`',
  }),
  // A misspelt `production` must not be served with the rules of development.
  NODE_ENV: z.enum(['development', 'test', 'production']).default('development').meta({
    description: '`development`, `test` or `production`; `production` refuses what is only for development',
  }),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .meta({ description: '`debug` also logs each request' }),
});

/** The variables after validation. */
export type Environment = z.output<typeof environment>;

/** The variables that are, or may contain, a secret. No other program gets them. */
export const SECRET_SETTINGS: readonly string[] = Object.entries(environment.shape)
  .filter(([, schema]) => schema.meta()?.isSecret === true)
  .map(([name]) => name);

/** Returns the variables, each with its default and its meaning, for the documents. */
export function describedSettings(): { name: string; fallback: string; meaning: string }[] {
  return Object.entries(environment.shape).map(([name, schema]) => {
    const { description = '', fallback } = schema.meta() ?? {};
    const defaultText = schema instanceof z.ZodDefault ? `\`${schema.parse(undefined)}\`` : 'none';
    return { name, fallback: typeof fallback === 'string' ? fallback : defaultText, meaning: description };
  });
}
