// Output for a person at a terminal: the address, first steps, and the log as plain lines. A program gets JSON.
// docs/understand/decisions/operating.md#at-a-terminal-the-log-is-plain-text-for-people
import { resolve } from 'node:path';
import type { DestinationStream, Logger } from 'pino';
import { consoleOrigin } from '../features/console/console-settings.ts';
import { createLog } from '../runtime/log.ts';
import { isForThisMachine } from '../settings/server.ts';
import type { Running } from './start.ts';

/** Standard output. */
export interface Output {
  isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** @param level a level of pino. @param mixin returns fields to add to each line. */
export function logTo(output: Output, level: string | undefined, mixin?: () => object): Logger {
  return createLog(level, output.isTTY === true ? plainLines(output) : undefined, mixin);
}

/** Returns a stream that rewrites the log's JSON lines as plain text. */
export function plainLines(output: Output): DestinationStream {
  return { write: (line) => void output.write(`${plainLine(JSON.parse(line))}\n`) };
}

/** Prefixes of pino's levels. */
const LEVELS: Record<number, string> = { 40: 'warning: ', 50: 'error: ', 60: 'fatal: ' };

function plainLine({ time, level, msg, err, ...fields }: Record<string, unknown>): string {
  const clock = new Date(Number(time)).toLocaleTimeString('en-GB');
  const members = Object.entries(fields).map(([key, value]) => `${key}=${textOf(value)}`);
  const [cause, ...stack] = causesOf(err);
  const first = [
    `${clock} ${LEVELS[Number(level)] ?? ''}${msg}`,
    ...(cause === undefined ? [] : [`(${cause})`]),
  ];
  const line = [...first, ...members].map(escaped).join(' ');
  // Only errors of the server have a stack trace.
  const rest = Number(level) >= 50 ? stack : [];
  return [line, ...rest.map((one) => `  ${escaped(one)}`)].join('\n');
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Returns an error's message, then its stack and those of its causes. */
function causesOf(err: unknown): string[] {
  if (typeof err === 'string') return [err];
  if (typeof err !== 'object' || err === null) return [];
  const { message, stack, cause } = err as Record<string, unknown>;
  const frames = String(stack ?? '').split('\n');
  const deeper = causesOf(cause).map((line, index) => (index === 0 ? `because: ${line}` : line));
  return [String(message), ...frames.filter((line) => line.trimStart().startsWith('at ')), ...deeper];
}

/** Escapes control characters: log lines may quote what a client sent, which must not forge or hide other lines. */
function escaped(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`,
  );
}

/** A user who can log in. */
interface Person {
  email: string;
  password: string;
}

/**
 * Returns the first steps for a person who started the server, in lines.
 * @param example the example tenant's user, if it still exists.
 */
export function welcome({ settings, caFile }: Running, example: Person | undefined): string[] {
  const { baseUrl, tenantFile, dataDir, mail, sms } = settings;
  const hasPages = isForThisMachine(settings);
  const outbox = mail === undefined || sms === undefined;
  const inbox = hasPages ? `${baseUrl}/dev/inbox` : `files in ${resolve(dataDir, 'outbox')}`;
  const administration =
    example !== undefined && hasPages
      ? 'for administrators; the page at the address above shows an example login'
      : 'for administrators';
  const facts: [string, string][] = [
    ['Address', hasPages ? `${baseUrl}   open it and press "Try login"` : baseUrl],
    ...(outbox
      ? [['Inbox', `${inbox}   e-mails and text messages: none leaves this machine`] as [string, string]]
      : []),
    ...(example
      ? [['Log in as', `${example.email} with the password ${example.password}`] as [string, string]]
      : []),
    ...(settings.console
      ? [['Console', `${consoleOrigin(settings)}/console   ${administration}`] as [string, string]]
      : []),
    ['Tenant', `${resolve(tenantFile)}   your applications, connections and users`],
    ['Stop it', 'Ctrl+C'],
  ];
  return ['', 'Gatehouse is running.', '', ...columns(facts), ...trust(baseUrl, caFile), ''];
}

function trust(baseUrl: string, caFile: string | undefined): string[] {
  if (caFile === undefined) return [];
  const path = resolve(caFile);
  const quoted = /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
  return [
    '',
    'Its certificate was issued by a certificate authority (CA) that was created for this machine only. To trust it:',
    '',
    ...columns([
      ['Browsers', `import ${path} as an authority, or accept the warning once`],
      ['Node.js', `NODE_EXTRA_CA_CERTS=${quoted} node app.js`],
      ['curl', `curl --cacert ${quoted} ${baseUrl}/healthz`],
    ]),
  ];
}

function columns(rows: readonly [string, string][]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}   ${text}`);
}
