// What a person at a terminal sees instead of JSON lines: where the server is and how to get in, then its log in
// plain lines. Everything that is not a terminal gets the JSON of log.ts.
import { resolve } from 'node:path';
import type { DestinationStream, Logger } from 'pino';
import { createLog } from './runtime/log.ts';
import { isForThisMachine } from './settings.ts';
import type { Running } from './start.ts';

/** Standard output, as far as it matters here. */
export interface Output {
  /** Whether it is a terminal. */
  isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** The log of a process that writes to `output`. @param level one of pino's. */
export function logTo(output: Output, level: string | undefined): Logger {
  return output.isTTY === true ? createLog(level, plainLines(output)) : createLog(level);
}

/** Writes a log's JSON lines as lines that a person can read. */
export function plainLines(output: Output): DestinationStream {
  return { write: (line) => void output.write(`${plainLine(JSON.parse(line))}\n`) };
}

/** pino's levels that are said; the others are what is expected. */
const LEVELS: Record<number, string> = { 40: 'warning: ', 50: 'error: ', 60: 'fatal: ' };

function plainLine({ time, level, msg, err, ...fields }: Record<string, unknown>): string {
  const clock = new Date(Number(time)).toLocaleTimeString('en-GB');
  const told = Object.entries(fields).map(([key, value]) => `${key}=${textOf(value)}`);
  const [cause, ...stack] = causesOf(err);
  const first = [
    `${clock} ${LEVELS[Number(level)] ?? ''}${msg}`,
    ...(cause === undefined ? [] : [`(${cause})`]),
  ];
  const line = [...first, ...told].map(harmless).join(' ');
  // Where it came from helps with faults of the server's own alone.
  const rest = Number(level) >= 50 ? stack : [];
  return [line, ...rest.map((one) => `  ${harmless(one)}`)].join('\n');
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** The message of an error as log.ts describes it, then the lines of its stack and of its causes. */
function causesOf(err: unknown): string[] {
  if (typeof err === 'string') return [err];
  if (typeof err !== 'object' || err === null) return [];
  const { message, stack, cause } = err as Record<string, unknown>;
  const frames = String(stack ?? '').split('\n');
  const deeper = causesOf(cause).map((line, index) => (index === 0 ? `because: ${line}` : line));
  return [String(message), ...frames.filter((line) => line.trimStart().startsWith('at ')), ...deeper];
}

/** What strangers send is in some lines: nothing of it moves the cursor, or a line's end to the front. */
function harmless(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`,
  );
}

/** Somebody who can log in. */
export interface Person {
  email: string;
  password: string;
}

/**
 * What the person who started the server needs next, in lines.
 * @param example the user of the example tenant, where there is one.
 */
export function welcome({ settings, caFile }: Running, example: Person | undefined): string[] {
  const { baseUrl, tenantFile, dataDir, mail, sms } = settings;
  const hasPages = isForThisMachine(settings);
  const outbox = mail === undefined || sms === undefined;
  const inbox = hasPages ? `${baseUrl}/dev/inbox` : `files in ${resolve(dataDir, 'outbox')}`;
  const facts: [string, string][] = [
    ['Address', hasPages ? `${baseUrl}   open it and press "Try login"` : baseUrl],
    ...(outbox ? [['Inbox', `${inbox}   what would be mailed or texted to people`] as [string, string]] : []),
    ...(example
      ? [['Log in as', `${example.email} with the password ${example.password}`] as [string, string]]
      : []),
    ['Tenant', `${resolve(tenantFile)}   your applications, connections and users`],
    ['Stop it', 'Ctrl+C'],
  ];
  return ['', 'Gatehouse is running.', '', ...columns(facts), ...trust(baseUrl, caFile), ''];
}

/** How to trust the CA of development. */
function trust(baseUrl: string, caFile: string | undefined): string[] {
  if (caFile === undefined) return [];
  const path = resolve(caFile);
  const quoted = /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
  return [
    '',
    'Its certificate is of a CA that was made here, for this machine alone. To trust it:',
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
