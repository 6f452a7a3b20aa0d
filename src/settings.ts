// The process's settings, read once from the environment (README "Settings").
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import type { SmsSettings } from './delivery/sms.ts';
import { isAddressRange } from './http/addresses.ts';
import { isLoopback } from './http/loopback.ts';
import { isGuessable, parseKey } from './store/sealing/key.ts';
import type { TlsSettings } from './tls/options.ts';

export interface Settings {
  /** 0: any free port; the base URL then has the actual one. */
  port: number;
  host: string;
  /** The public origin, without a slash at its end. */
  baseUrl: string;
  /** The issuer: the public origin with a slash at its end. */
  issuer: string;
  tenantFile: string;
  dataDir: string;
  /** What the secrets in the store are sealed with; a key in the data directory without it. */
  secretsKey?: KeyObject;
  /** What they were sealed with before: for `gatehouse keys reseal`. */
  secretsKeyBefore?: KeyObject;
  tls: TlsSettings;
  /** Real mail; the development outbox without it. */
  mail?: { smtpUrl: string; from: string | undefined };
  /** Real SMS; the development outbox without it. */
  sms?: SmsSettings;
  production: boolean;
  logLevel: string;
}

/** Invalid settings: all faults, one a line. */
export class SettingsFault {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    this.faults = faults;
  }
}

/** Default tenant file. */
export const TENANT_FILE = 'config/tenant.yaml';

/** Never the value. */
const secretsKey = z.string().transform((text, context) => {
  const key = parseKey(text);
  if (key !== undefined) return key;
  context.addIssue({
    code: 'custom',
    message: 'must be 32 random bytes, in base64 or in hexadecimal digits',
  });
  return z.NEVER;
});

const environment = z.object({
  PORT: z
    .string()
    .refine((text) => /^\d{1,5}$/.test(text) && Number(text) <= 65535, 'must be a port number, 0 to 65535')
    .transform(Number)
    .default(3000)
    .meta({ description: 'where it listens; 0 takes a free port' }),
  HOST: z.string().min(1).default('127.0.0.1').meta({ description: 'the address that it listens on' }),
  BASE_URL: z.string().optional().meta({
    description: 'the public origin, such as `https://login.example.com`; the issuer is it plus `/`',
    fallback: '`https://localhost:$PORT`',
  }),
  TENANT_FILE: z.string().min(1).default(TENANT_FILE).meta({ description: 'the tenant' }),
  DATA_DIR: z.string().min(1).default('./data').meta({ description: 'the embedded store, keys, local TLS' }),
  SECRETS_KEY: secretsKey.optional().meta({
    description:
      'what secrets in the store are sealed with: 32 random bytes in base64 or hex (`openssl rand -base64 32`)',
    fallback: 'a key file, `$DATA_DIR/keys/secrets.key`',
  }),
  SECRETS_KEY_BEFORE: secretsKey
    .optional()
    .meta({ description: 'the key of before, while it is changed (see below)' }),
  TLS: z.enum(['auto', 'files', 'proxy']).default('auto').meta({
    description:
      '`auto`: a local CA and certificate in `$DATA_DIR/tls`; `files`: `TLS_CERT` and `TLS_KEY`; `proxy`: plain HTTP behind a TLS proxy',
  }),
  TLS_CERT: z
    .string()
    .optional()
    .meta({ description: 'with `TLS=files`: the certificate chain, a PEM file' }),
  TLS_KEY: z.string().optional().meta({ description: 'with `TLS=files`: its key, a PEM file' }),
  TRUSTED_PROXIES: z.string().optional().meta({
    description:
      'with `TLS=proxy`: addresses and CIDR ranges whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed',
  }),
  DATABASE_URL: z.string().optional().meta({ description: 'refused: PostgreSQL is not available yet' }),
  SMTP_URL: z.string().optional().meta({
    description:
      'real mail: `smtps://user:password@host` or `smtp://user:password@host` (STARTTLS); without it mail goes to the development inbox',
  }),
  MAIL_FROM: z.string().optional().meta({ description: 'the sender of mail; required with `SMTP_URL`' }),
  TWILIO_ACCOUNT_SID: z.string().optional().meta({ description: 'real SMS, together with the next' }),
  TWILIO_AUTH_TOKEN: z.string().optional().meta({ description: 'real SMS, together with the one before' }),
  TWILIO_FROM: z.string().optional().meta({ description: 'the sender of SMS, or' }),
  TWILIO_MESSAGING_SERVICE_SID: z
    .string()
    .optional()
    .meta({ description: 'the messaging service that has one' }),
  TWILIO_API_URL: z
    .string()
    .optional()
    .meta({ description: 'points the client at another address, for tests' }),
  // A misspelt `production` must not be served with the rules of development.
  NODE_ENV: z.enum(['development', 'test', 'production']).default('development').meta({
    description: '`development`, `test` or `production`, which refuses what is for development alone',
  }),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .meta({ description: '`debug` also logs each request' }),
});

type Environment = z.output<typeof environment>;

/** The variables, each with its default and its meaning, for the documents. */
export const SETTINGS: readonly { name: string; fallback: string; meaning: string }[] = Object.entries(
  environment.shape,
).map(([name, schema]) => {
  const { description = '', fallback } = schema.meta() ?? {};
  const given = schema instanceof z.ZodDefault ? `\`${schema.parse(undefined)}\`` : 'none';
  return { name, fallback: typeof fallback === 'string' ? fallback : given, meaning: description };
});

/**
 * Reads the settings.
 * @param env the environment; an empty variable counts as not set.
 * @throws SettingsFault naming everything that is wrong.
 */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const result = environment.safeParse(given);
  const faults = result.success ? [] : result.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`);
  const read = result.success ? result.data : environment.parse(withoutFaulty(given, result.error));
  faults.push(...crossFaults(read));
  if (faults.length > 0) throw new SettingsFault(faults);
  const baseUrl = read.BASE_URL ?? `https://localhost:${read.PORT}`;
  return {
    port: read.PORT,
    host: read.HOST,
    baseUrl: new URL(baseUrl).origin,
    issuer: `${new URL(baseUrl).origin}/`,
    tenantFile: read.TENANT_FILE,
    dataDir: read.DATA_DIR,
    ...(read.SECRETS_KEY !== undefined && { secretsKey: read.SECRETS_KEY }),
    ...(read.SECRETS_KEY_BEFORE !== undefined && { secretsKeyBefore: read.SECRETS_KEY_BEFORE }),
    tls: tlsOf(read),
    ...deliveryOf(read),
    production: read.NODE_ENV === 'production',
    logLevel: read.LOG_LEVEL,
  };
}

/** The settings of a server whose port was chosen by the system. */
export function withPort(settings: Settings, port: number): Settings {
  if (settings.port !== 0 || settings.baseUrl !== 'https://localhost:0') return { ...settings, port };
  const baseUrl = `https://localhost:${port}`;
  return { ...settings, port, baseUrl, issuer: `${baseUrl}/` };
}

/**
 * Whether this is a development server for this machine only: not in production, and with a loopback public origin.
 * Enables the pages that show every code and calls to local addresses, so a forgotten NODE_ENV alone must not.
 */
export function isForThisMachine({ production, baseUrl }: Settings): boolean {
  return !production && isLoopback(new URL(baseUrl).hostname);
}

function withoutFaulty(given: Record<string, unknown>, error: z.ZodError): Record<string, unknown> {
  const faulty = new Set(error.issues.map(({ path }) => path[0]));
  return Object.fromEntries(Object.entries(given).filter(([name]) => !faulty.has(name)));
}

function crossFaults(read: Environment): string[] {
  const faults: string[] = [];
  if (read.BASE_URL !== undefined && !isOrigin(read.BASE_URL)) {
    faults.push('BASE_URL: must be an https origin, such as https://login.example.com, without a path');
  }
  if (read.TLS === 'files') {
    if (read.TLS_CERT === undefined) faults.push('TLS_CERT: required with TLS=files');
    if (read.TLS_KEY === undefined) faults.push('TLS_KEY: required with TLS=files');
  }
  if (read.TLS === 'proxy') {
    if (list(read.TRUSTED_PROXIES).length === 0) faults.push('TRUSTED_PROXIES: required with TLS=proxy');
    if (read.BASE_URL === undefined) faults.push('BASE_URL: required with TLS=proxy');
  }
  for (const address of list(read.TRUSTED_PROXIES)) {
    if (!isAddressRange(address)) faults.push(`TRUSTED_PROXIES: ${address} is no IP address or CIDR range`);
  }
  if (read.DATABASE_URL !== undefined) {
    faults.push('DATABASE_URL: PostgreSQL is not available yet; without it the embedded store is used');
  }
  faults.push(...deliveryFaults(read));
  if (read.NODE_ENV === 'production') {
    if (read.TLS === 'auto') faults.push('TLS: auto is for development; use files or proxy in production');
    if (read.BASE_URL === undefined) faults.push('BASE_URL: required in production');
    if (read.SECRETS_KEY !== undefined && isGuessable(read.SECRETS_KEY)) {
      faults.push('SECRETS_KEY: must be random, as `openssl rand -base64 32` makes it');
    }
  }
  return faults;
}

/** Faults never quote the value: an SMTP URL holds a password. */
function deliveryFaults(read: Environment): string[] {
  const faults: string[] = [];
  if (read.SMTP_URL !== undefined) {
    const cause = smtpFault(read.SMTP_URL);
    if (cause !== undefined) faults.push(`SMTP_URL: ${cause}`);
  }
  if (read.SMTP_URL !== undefined && read.MAIL_FROM === undefined) {
    faults.push('MAIL_FROM: required with SMTP_URL, such as "Example <login@example.com>"');
  }
  if (read.MAIL_FROM !== undefined && !/^[^\r\n]*[^\s@<>]+@[^\s@<>]+>?$/.test(read.MAIL_FROM)) {
    faults.push('MAIL_FROM: must be an e-mail address, with or without a name: Example <login@example.com>');
  }
  const { TWILIO_ACCOUNT_SID: sid, TWILIO_AUTH_TOKEN: token } = read;
  if ((sid === undefined) !== (token === undefined)) {
    faults.push('TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN: one does not work without the other');
  }
  if (sid !== undefined && !sid.startsWith('AC')) faults.push('TWILIO_ACCOUNT_SID: must start with AC');
  const senders = [read.TWILIO_FROM, read.TWILIO_MESSAGING_SERVICE_SID].filter((one) => one !== undefined);
  if (sid !== undefined && senders.length !== 1) {
    faults.push('TWILIO_FROM, TWILIO_MESSAGING_SERVICE_SID: exactly one of them is required');
  }
  if (
    read.TWILIO_API_URL !== undefined &&
    !/^https?:$/.test(URL.parse(read.TWILIO_API_URL)?.protocol ?? '')
  ) {
    faults.push('TWILIO_API_URL: must be an http or https address');
  }
  return faults;
}

const SMTP_FORM =
  'must be smtps://user:password@host:465 or smtp://user:password@host:587 (in user and password write / as %2F, ? as %3F, # as %23, @ as %40)';

/** What is wrong with an SMTP URL, without quoting it. */
function smtpFault(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^smtps?:$/.test(url.protocol)) return SMTP_FORM;
  if (url.hostname === '') return `${SMTP_FORM}: it names no host`;
  if (url.port === '0') return `${SMTP_FORM}: its port is 0`;
  // Query options would be ignored silently; an unescaped `#` in a password ends up here, too.
  if (/[?#]/.test(text) || !['', '/'].includes(url.pathname)) {
    return `${SMTP_FORM}: it has more after the host`;
  }
  if (url.username === '' && url.password !== '') return `${SMTP_FORM}: it has a password and no user`;
  if (url.hostname.includes('%')) return `${SMTP_FORM}: its host has a %`;
  try {
    decodeURIComponent(url.username + url.password);
    return undefined;
  } catch {
    return 'its user or password has a % that stands for no character (write % as %25)';
  }
}

function deliveryOf(read: Environment): Pick<Settings, 'mail' | 'sms'> {
  const { TWILIO_ACCOUNT_SID: accountSid, TWILIO_AUTH_TOKEN: authToken } = read;
  return {
    ...(read.SMTP_URL !== undefined && { mail: { smtpUrl: read.SMTP_URL, from: read.MAIL_FROM } }),
    ...(accountSid !== undefined &&
      authToken !== undefined && {
        sms: {
          accountSid,
          authToken,
          ...(read.TWILIO_FROM !== undefined && { from: read.TWILIO_FROM }),
          ...(read.TWILIO_MESSAGING_SERVICE_SID !== undefined && {
            messagingServiceSid: read.TWILIO_MESSAGING_SERVICE_SID,
          }),
          ...(read.TWILIO_API_URL !== undefined && { apiUrl: read.TWILIO_API_URL }),
        },
      }),
  };
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' && url.href === `${url.origin}/`;
}

function list(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function tlsOf(read: Environment): TlsSettings {
  switch (read.TLS) {
    case 'auto':
      return { mode: 'auto' };
    case 'files':
      return { mode: 'files', certFile: read.TLS_CERT ?? '', keyFile: read.TLS_KEY ?? '' };
    case 'proxy':
      return { mode: 'proxy', trustedProxies: list(read.TRUSTED_PROXIES) };
  }
}
