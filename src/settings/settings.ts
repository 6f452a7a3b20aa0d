// The process's settings, read once from the environment (docs/operating.md "Settings").
import type { KeyObject } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { z } from 'zod';
import type { SmsSettings } from '../capabilities/delivery/sms.ts';
import type { SigningSettings } from '../capabilities/signing/place.ts';
import type { TlsSettings } from '../capabilities/tls/options.ts';
import type { MetricsSettings } from '../features/metrics/serve.ts';
import { isLoopback } from '../http/loopback.ts';
import { LOOPBACK_RANGES } from '../http/outbound.ts';
import { crossFaults, list } from './settings-faults.ts';
import { type Environment, environment, SECRET_SETTINGS } from './settings-schema.ts';

export interface Settings {
  /** 0: any free port. The base URL then has the port in use. */
  port: number;
  host: string;
  /** The most connections of this process. */
  maxConnections: number;
  /** The public origin, without a trailing slash. */
  baseUrl: string;
  /** The issuer: the public origin with a trailing slash. */
  issuer: string;
  tenantFile: string;
  dataDir: string;
  /** Address of the PostgreSQL database that holds the store; undefined for the embedded store. */
  databaseUrl?: string;
  /** How many processes serve; undefined where this one alone does. */
  workers?: number | 'auto';
  /** The key that seals the secrets in the store; undefined for the key file in the data directory. */
  secretsKey?: KeyObject;
  /** The key that sealed them before: for `gatehouse keys reseal`. */
  secretsKeyBefore?: KeyObject;
  tls: TlsSettings;
  /** Where the signing keys are. */
  signing: SigningSettings;
  /** Undefined where mail goes to the provider of the tenant, or to the development outbox. */
  mail?: { smtpUrl: string; from: string | undefined };
  /** Undefined where SMS go to the provider of the connection, or to the development outbox. */
  sms?: SmsSettings;
  /**
   * Hosts and ranges that requests to addresses which users or applications name may reach beside the public Internet;
   * see {@link outboundAllow}.
   */
  outboundAllow?: readonly string[];
  /** Where clients are asked for certificates; the port may be that of everything else. */
  mtls?: { port: number; caFile?: string };
  /** The public origin for clients with certificates; without it, the base URL at the port of `mtls`. */
  mtlsBaseUrl?: string;
  /** DNS servers that verify custom domains; undefined for those of the system. */
  dnsServers?: readonly string[];
  /** Where metrics are served; undefined where they are off. */
  metrics?: MetricsSettings;
  console: boolean;
  /** The public origin of the console, where it has a host of its own. */
  consoleUrl?: string;
  /** Whether log streams may write files. */
  logStreamFiles: boolean;
  production: boolean;
  logLevel: string;
}

/** The error for invalid settings, with one sentence for each fault. */
export class SettingsFault {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    this.faults = faults;
  }
}

/**
 * Reads the settings.
 * @param env the environment; an empty variable counts as not set.
 * @throws SettingsFault naming every fault.
 */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const set = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const result = environment.safeParse(set);
  const faults = result.success ? [] : result.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`);
  const variables = result.success ? result.data : environment.parse(withoutFaulty(set, result.error));
  faults.push(...crossFaults(variables));
  if (faults.length > 0) throw new SettingsFault(faults);
  const baseUrl = variables.BASE_URL ?? `https://localhost:${variables.PORT}`;
  return {
    port: variables.PORT,
    host: variables.HOST,
    maxConnections: variables.MAX_CONNECTIONS,
    baseUrl: new URL(baseUrl).origin,
    issuer: `${new URL(baseUrl).origin}/`,
    tenantFile: variables.TENANT_FILE,
    dataDir: variables.DATA_DIR,
    ...(variables.DATABASE_URL !== undefined && { databaseUrl: variables.DATABASE_URL }),
    ...(variables.WORKERS !== undefined && variables.WORKERS !== 1 && { workers: variables.WORKERS }),
    ...(variables.SECRETS_KEY !== undefined && { secretsKey: variables.SECRETS_KEY }),
    ...(variables.SECRETS_KEY_BEFORE !== undefined && { secretsKeyBefore: variables.SECRETS_KEY_BEFORE }),
    tls: tlsOf(variables),
    signing: signingOf(variables),
    ...deliveryOf(variables),
    ...(variables.OUTBOUND_ALLOW !== undefined && { outboundAllow: list(variables.OUTBOUND_ALLOW) }),
    ...mtlsOf(variables),
    ...(variables.DNS_SERVERS !== undefined && { dnsServers: list(variables.DNS_SERVERS) }),
    ...metricsOf(variables),
    console: variables.CONSOLE === 'on',
    ...(variables.CONSOLE_URL !== undefined && { consoleUrl: new URL(variables.CONSOLE_URL).origin }),
    logStreamFiles: variables.LOG_STREAM_FILES === 'on',
    production: variables.NODE_ENV === 'production',
    logLevel: variables.LOG_LEVEL,
  };
}

/** Returns the settings with the port that the system chose. */
export function withPort(settings: Settings, port: number): Settings {
  if (settings.port !== 0 || settings.baseUrl !== 'https://localhost:0') return { ...settings, port };
  const baseUrl = `https://localhost:${port}`;
  return { ...settings, port, baseUrl, issuer: `${baseUrl}/` };
}

/**
 * Reports whether this is a development server for this machine only: not in production, and with a loopback public
 * origin. It enables the pages that show every code, and requests to local addresses, so a forgotten NODE_ENV alone
 * must not.
 */
export function isForThisMachine({ production, baseUrl }: Settings): boolean {
  return !production && isLoopback(new URL(baseUrl).hostname);
}

/** Returns how many worker processes are to serve; undefined where the started process serves by itself. */
export function workersOf({ workers }: Pick<Settings, 'workers'>): number | undefined {
  return workers === 'auto' ? availableParallelism() : workers;
}

/** Returns the directory of the packages that scripts and actions may require. */
export function packagesDirectory({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'modules', 'node_modules');
}

/**
 * Returns the ranges and hosts that requests to addresses which users or applications name may reach beside the public
 * Internet.
 */
export function outboundAllow(settings: Settings): readonly string[] {
  return settings.outboundAllow ?? (isForThisMachine(settings) ? LOOPBACK_RANGES : []);
}

/** Returns the public origin of the console: the base URL, unless the console has a host of its own. */
export function consoleOrigin({ consoleUrl, baseUrl }: Pick<Settings, 'consoleUrl' | 'baseUrl'>): string {
  return consoleUrl ?? baseUrl;
}

function withoutFaulty(set: Record<string, unknown>, error: z.ZodError): Record<string, unknown> {
  const faulty = new Set(error.issues.map(({ path }) => path[0]));
  return Object.fromEntries(Object.entries(set).filter(([name]) => !faulty.has(name)));
}

function deliveryOf(variables: Environment): Pick<Settings, 'mail' | 'sms'> {
  const { TWILIO_ACCOUNT_SID: accountSid, TWILIO_AUTH_TOKEN: authToken } = variables;
  return {
    ...(variables.SMTP_URL !== undefined && {
      mail: { smtpUrl: variables.SMTP_URL, from: variables.MAIL_FROM },
    }),
    ...(accountSid !== undefined &&
      authToken !== undefined && {
        sms: {
          accountSid,
          authToken,
          ...(variables.TWILIO_FROM !== undefined && { from: variables.TWILIO_FROM }),
          ...(variables.TWILIO_MESSAGING_SERVICE_SID !== undefined && {
            messagingServiceSid: variables.TWILIO_MESSAGING_SERVICE_SID,
          }),
          ...(variables.TWILIO_API_URL !== undefined && { apiUrl: variables.TWILIO_API_URL }),
        },
      }),
  };
}

function metricsOf({ METRICS_PORT, METRICS_HOST, METRICS_TOKEN }: Environment): Pick<Settings, 'metrics'> {
  if (METRICS_PORT === undefined && METRICS_TOKEN === undefined) return {};
  return {
    metrics: {
      host: METRICS_HOST ?? '127.0.0.1',
      ...(METRICS_PORT !== undefined && { port: METRICS_PORT }),
      ...(METRICS_TOKEN !== undefined && { token: METRICS_TOKEN }),
    },
  };
}

function mtlsOf({ MTLS_PORT, MTLS_CA, MTLS_BASE_URL }: Environment): Pick<Settings, 'mtls' | 'mtlsBaseUrl'> {
  return {
    ...(MTLS_PORT !== undefined && {
      mtls: { port: MTLS_PORT, ...(MTLS_CA !== undefined && { caFile: MTLS_CA }) },
    }),
    ...(MTLS_BASE_URL !== undefined && { mtlsBaseUrl: new URL(MTLS_BASE_URL).origin }),
  };
}

/** Returns the public origin where clients are asked for certificates; undefined where it is the base URL. */
export function mtlsOrigin({ baseUrl, port, mtls, mtlsBaseUrl }: Settings): string | undefined {
  if (mtlsBaseUrl !== undefined) return mtlsBaseUrl;
  if (mtls === undefined || mtls.port === port) return undefined;
  const origin = new URL(baseUrl);
  origin.port = String(mtls.port);
  return origin.origin;
}

function signingOf(variables: Environment): SigningSettings {
  switch (variables.SIGNING) {
    case 'local':
      return { kind: 'local' };
    case 'command':
      return {
        kind: 'command',
        command: (variables.SIGNING_COMMAND ?? '').split(' ').filter((part) => part !== ''),
        hidden: SECRET_SETTINGS,
      };
    case 'http':
      return { kind: 'http', url: variables.SIGNING_URL ?? '', secret: variables.SIGNING_SECRET ?? '' };
  }
}

function tlsOf(variables: Environment): TlsSettings {
  switch (variables.TLS) {
    case 'auto':
      return { mode: 'auto' };
    case 'files':
      return { mode: 'files', certFile: variables.TLS_CERT ?? '', keyFile: variables.TLS_KEY ?? '' };
    case 'proxy':
      return { mode: 'proxy', trustedProxies: list(variables.TRUSTED_PROXIES) };
  }
}
