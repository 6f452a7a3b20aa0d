// Faults of the settings: those of several settings together, and those of an address in one of them.
import { isIP } from 'node:net';
import { isAddressRange } from '../http/addresses.ts';
import { isLoopback } from '../http/loopback.ts';
import { isCallable, isOutboundEntry } from '../http/outbound.ts';
import { isGuessable } from '../store/sealing/key.ts';
import type { Environment } from './settings-schema.ts';

/**
 * Returns the faults of settings that are each valid by themselves, one sentence each. Sentences do not quote secrets.
 */
export function crossFaults(variables: Environment): string[] {
  const faults: string[] = [];
  if (variables.BASE_URL !== undefined && !isOrigin(variables.BASE_URL)) {
    faults.push('BASE_URL: must be an https origin, such as https://login.example.com, without a path');
  }
  if (variables.TLS === 'files') {
    if (variables.TLS_CERT === undefined) faults.push('TLS_CERT: required with TLS=files');
    if (variables.TLS_KEY === undefined) faults.push('TLS_KEY: required with TLS=files');
  }
  if (variables.TLS === 'proxy') {
    if (list(variables.TRUSTED_PROXIES).length === 0) faults.push('TRUSTED_PROXIES: required with TLS=proxy');
    if (variables.BASE_URL === undefined) faults.push('BASE_URL: required with TLS=proxy');
  }
  if (variables.MTLS_PORT !== undefined && variables.TLS === 'proxy') {
    faults.push('MTLS_PORT: with TLS=proxy the proxy asks clients for certificates');
  }
  if (variables.MTLS_CA !== undefined && variables.MTLS_PORT === undefined) {
    faults.push('MTLS_CA: means something with MTLS_PORT alone');
  }
  if (variables.MTLS_BASE_URL !== undefined && !isOrigin(variables.MTLS_BASE_URL)) {
    faults.push('MTLS_BASE_URL: must be an https origin, such as https://mtls.example.com, without a path');
  }
  if (variables.CONSOLE_URL !== undefined && !isOrigin(variables.CONSOLE_URL)) {
    faults.push('CONSOLE_URL: must be an https origin, such as https://console.example.com, without a path');
  }
  for (const address of list(variables.TRUSTED_PROXIES)) {
    if (!isAddressRange(address)) faults.push(`TRUSTED_PROXIES: ${address} is no IP address or CIDR range`);
  }
  for (const entry of list(variables.OUTBOUND_ALLOW)) {
    if (!isOutboundEntry(entry)) {
      faults.push(`OUTBOUND_ALLOW: ${entry} is no host name, IP address or CIDR range`);
    }
  }
  for (const address of list(variables.DNS_SERVERS)) {
    if (!isServerAddress(address))
      faults.push(`DNS_SERVERS: ${address} is no IP address, with or without a port`);
  }
  if (variables.DATABASE_URL !== undefined) {
    const fault = databaseFault(variables.DATABASE_URL, variables.NODE_ENV === 'production');
    if (fault !== undefined) faults.push(`DATABASE_URL: ${fault}`);
  }
  if (variables.WORKERS !== undefined && variables.WORKERS !== 1 && variables.DATABASE_URL === undefined) {
    faults.push('WORKERS: the embedded store is for one process; several need DATABASE_URL');
  }
  if (variables.METRICS_HOST !== undefined && variables.METRICS_PORT === undefined) {
    faults.push('METRICS_HOST: means something with METRICS_PORT alone');
  }
  if (variables.METRICS_PORT !== undefined && variables.METRICS_PORT !== 0) {
    const other = (['PORT', 'MTLS_PORT'] as const).find((name) => variables[name] === variables.METRICS_PORT);
    if (other !== undefined) faults.push(`METRICS_PORT: is that of ${other}`);
  }
  faults.push(...signingFaults(variables), ...deliveryFaults(variables));
  if (variables.NODE_ENV === 'production') {
    if (variables.TLS === 'auto')
      faults.push('TLS: auto is for development; use files or proxy in production');
    if (variables.BASE_URL === undefined) faults.push('BASE_URL: required in production');
    if (variables.SECRETS_KEY !== undefined && isGuessable(variables.SECRETS_KEY)) {
      faults.push('SECRETS_KEY: must be random, as `openssl rand -base64 32` makes it');
    }
  }
  return faults;
}

/** The settings that each place of the signing keys requires, in the order in which they are reported. */
const SIGNING_NEEDS = {
  local: [],
  command: ['SIGNING_COMMAND'],
  http: ['SIGNING_URL', 'SIGNING_SECRET'],
} as const;

function signingFaults(variables: Environment): string[] {
  const missing = SIGNING_NEEDS[variables.SIGNING].filter((name) => variables[name] === undefined);
  const faults = missing.map((name) => `${name}: required with SIGNING=${variables.SIGNING}`);
  if (variables.SIGNING_URL !== undefined && !isCallable(variables.SIGNING_URL)) {
    faults.push(
      'SIGNING_URL: must be an https address without user and password, or an http one that OUTBOUND_ALLOW opens',
    );
  }
  return faults;
}

/** Returns the faults of mail and SMS settings. They never quote the value: an SMTP URL holds a password. */
function deliveryFaults(variables: Environment): string[] {
  const faults: string[] = [];
  if (variables.SMTP_URL !== undefined) {
    const cause = smtpFault(variables.SMTP_URL);
    if (cause !== undefined) faults.push(`SMTP_URL: ${cause}`);
  }
  if (variables.SMTP_URL !== undefined && variables.MAIL_FROM === undefined) {
    faults.push('MAIL_FROM: required with SMTP_URL, such as "Example <login@example.com>"');
  }
  if (variables.MAIL_FROM !== undefined && !/^[^\r\n]*[^\s@<>]@[^\s@<>]+>?$/.test(variables.MAIL_FROM)) {
    faults.push('MAIL_FROM: must be an e-mail address, with or without a name: Example <login@example.com>');
  }
  const { TWILIO_ACCOUNT_SID: sid, TWILIO_AUTH_TOKEN: token } = variables;
  if ((sid === undefined) !== (token === undefined)) {
    faults.push('TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN: one does not work without the other');
  }
  if (sid !== undefined && !sid.startsWith('AC')) faults.push('TWILIO_ACCOUNT_SID: must start with AC');
  const senders = [variables.TWILIO_FROM, variables.TWILIO_MESSAGING_SERVICE_SID].filter(
    (one) => one !== undefined,
  );
  if (sid !== undefined && senders.length !== 1) {
    faults.push('TWILIO_FROM, TWILIO_MESSAGING_SERVICE_SID: exactly one of them is required');
  }
  if (variables.TWILIO_API_URL !== undefined && !isCallable(variables.TWILIO_API_URL)) {
    faults.push('TWILIO_API_URL: must be an http or https address without user and password');
  }
  return faults;
}

const SMTP_FORM =
  'must be smtps://user:password@host:465 or smtp://user:password@host:587 (in user and password write / as %2F, ? as %3F, # as %23, @ as %40)';

/** Returns the fault of an SMTP URL, without quoting it; undefined where it has none. */
function smtpFault(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^smtps?:$/.test(url.protocol)) return SMTP_FORM;
  if (url.hostname === '') return `${SMTP_FORM}: it names no host`;
  if (url.port === '0') return `${SMTP_FORM}: its port is 0`;
  // Query options would be ignored silently. An unescaped `#` in a password ends up here, too.
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

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' && url.href === `${url.origin}/`;
}

/**
 * Reports whether a text is the address of a DNS server: `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or
 * `[2001:db8::1]:5353`. One with a zone (`fe80::1%eth0`) is none: Node's resolver drops the zone, and then reaches
 * nothing.
 */
function isServerAddress(text: string): boolean {
  const [, inBrackets, plain = '', port = '53'] =
    /^(?:\[([^\]]+)\]|([\d.]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (text.includes('%')) return false;
  const isPort = Number(port) >= 1 && Number(port) <= 65_535;
  return (isIP(inBrackets ?? plain) !== 0 && isPort) || isIP(text) === 6;
}

/** Returns the parts of a list that is separated by commas. */
export function list(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/**
 * Returns the fault of a database address, without quoting it, because it may hold a password; undefined where it has
 * none.
 */
function databaseFault(text: string, production: boolean): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length < 2) {
    return 'must be postgres://user:password@host:port/database';
  }
  const mode = url.searchParams.get('sslmode');
  const modes = ['disable', 'require', 'verify-ca', 'verify-full'];
  if (mode !== null && !modes.includes(mode)) return `sslmode must be one of ${modes.join(', ')}`;
  const isNear = url.searchParams.has('host') || url.hostname === '' || isLoopback(url.hostname);
  if (production && mode === null && !isNear) {
    return 'needs sslmode=verify-full in production; sslmode=disable says that the network between is to be trusted';
  }
  return databaseNumbersFault(url.searchParams);
}

/**
 * The numeric parameters of a database address, with their least and greatest values: milliseconds, and connections of
 * each process.
 */
const DATABASE_NUMBERS = {
  statement_timeout: [1, 600_000],
  lock_timeout: [1, 600_000],
  idle_in_transaction_session_timeout: [1, 600_000],
  connections: [2, 200],
} as const;

function databaseNumbersFault(parameters: URLSearchParams): string | undefined {
  for (const [name, [min, max]] of Object.entries(DATABASE_NUMBERS)) {
    const value = parameters.get(name);
    if (value === null) continue;
    const isRight = /^\d{1,7}$/.test(value) && Number(value) >= min && Number(value) <= max;
    if (!isRight) return `${name} must be a number from ${min} to ${max}`;
  }
  return undefined;
}
