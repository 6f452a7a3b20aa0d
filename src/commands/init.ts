// `gatehouse init`: writes a tenant file for one application, and prints how to go on.
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { portOf, type QuickstartValues, type Snippet } from '../capabilities/quickstarts/snippet.ts';
import {
  hasLogin,
  hasSecret,
  type StarterApplication,
  starterFile,
} from '../capabilities/quickstarts/starter-file.ts';
import {
  developmentOrigin,
  STARTERS,
  type Starter,
  starterValues,
} from '../capabilities/quickstarts/starters.ts';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { fileMode } from '../runtime/files.ts';
import { OWN_COMMAND } from '../runtime/own-command.ts';
import { systemRandom } from '../runtime/secrets.ts';
import { readSettings, type Settings } from '../settings/index.ts';
import { parseTenant } from '../tenant/load.ts';
import type { CommandDeclaration } from './command.ts';

interface InitOptions {
  force?: boolean;
  name?: string;
  url?: string;
}

export const init: CommandDeclaration = {
  name: 'init [kind]',
  description: 'write a tenant file for one application, and print the code to paste into it',
  options: (command: Command) =>
    void command
      .addHelpText('after', `\nKinds: ${namesOfKinds()}`)
      .option('--force', 'replace an existing tenant file')
      .option('--name <name>', 'the name of the application, which users see')
      .option('--url <origin>', 'where the application is in development, such as http://localhost:5173'),
  run: ({ host }, kind: string | undefined, options: InitOptions) => writeTenant(host, kind, options),
};

async function writeTenant(
  host: CommandProcess,
  kind: string | undefined,
  options: InitOptions,
): Promise<void> {
  const settings = readSettings(host.env);
  if (settings.port === 0)
    throw new Error(
      'PORT: 0 is another port at each start, so no address can be printed: set the port to use',
    );
  const starter = kind === undefined ? await askForKind(host) : starterNamed(kind);
  const application = applicationOf(starter, settings, options);
  const text = starterFile(starter, application);
  // The name and the address come from the command line: what the server would refuse is not written.
  parseTenant(text, host.env);
  const { tenantFile } = settings;
  await write(tenantFile, text, options.force === true);
  const lines = report(starter, application, settings);
  for (const line of [
    `wrote ${tenantFile}: ${application.name}, client_id ${application.values.clientId}`,
    ...lines,
  ])
    print(host, line);
}

/** @throws Error naming the kinds */
function starterNamed(name: string): Starter {
  const found = STARTERS.find((one) => one.name === name);
  if (found === undefined)
    throw new Error(`'${name}' is not a kind of application; the kinds are ${namesOfKinds()}`);
  return found;
}

const namesOfKinds = () => STARTERS.map(({ name }) => name).join(', ');

/** Asks at the terminal which kind, by number or name. @throws Error where there is no terminal, or no answer */
async function askForKind({ stdin, stderr }: CommandProcess): Promise<Starter> {
  if (!isTerminal(stdin))
    throw new Error(
      `say which kind of application, such as: gatehouse init react; the kinds are ${namesOfKinds()}`,
    );
  const width = String(STARTERS.length).length;
  // The question is not the result, which standard output is for.
  for (const [index, { title, name }] of STARTERS.entries())
    stderr.write(`  ${String(index + 1).padStart(width)}  ${title} (${name})\n`);
  const terminal = createInterface({ input: stdin, output: stderr, terminal: false });
  const lines = terminal[Symbol.asyncIterator]();
  try {
    for (;;) {
      stderr.write(`Which kind of application? [1-${STARTERS.length}] `);
      const { value, done } = await lines.next();
      if (done === true) throw new Error('nothing was chosen, and nothing was written');
      const answer = String(value).trim();
      const found =
        STARTERS[Number(answer) - 1] ?? STARTERS.find(({ name }) => name === answer.toLowerCase());
      if (found !== undefined) return found;
    }
  } finally {
    terminal.close();
  }
}

const randomText = () => systemRandom(32).toString('base64url');

const isTerminal = (stream: object): boolean => (stream as { isTTY?: boolean }).isTTY === true;

function applicationOf(
  starter: Starter,
  { baseUrl, issuer }: Settings,
  { name, url }: InitOptions,
): StarterApplication {
  const { shape } = starter;
  // A terminal would obey it.
  if (/\p{Cc}/u.test(name ?? '')) throw new Error('--name: must have no control characters');
  const origin = url === undefined ? developmentOrigin(starter, baseUrl) : originOf(url, baseUrl);
  // The application of an API is one that calls it.
  const clientId = shape === 'api' ? 'my-api-client' : `my-${starter.name}`;
  return {
    name: name ?? `My ${starter.name} application`,
    secret: hasSecret(shape) ? randomText() : undefined,
    values: starterValues(starter, { origin, clientId, issuer }),
  };
}

/** @throws Error if it is no origin of http or https, or the server's own */
function originOf(text: string, baseUrl: string): string {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || `${url.origin}/` !== url.href)
    throw new Error(`--url: ${text} must be an address without a path, such as http://localhost:5173`);
  if (url.host === new URL(baseUrl).host)
    throw new Error(`--url: Gatehouse itself is at ${url.host}: give the application another port`);
  return url.origin;
}

/** Writes the file for its owner alone, because it may contain a secret. @throws Error if it is there already */
async function write(path: string, text: string, isForced: boolean): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const create = (file: string) => writeFile(file, text, { mode: fileMode, flag: 'wx' });
  if (isForced) {
    // The mode is that of a file that is created: one that is written over would keep its own.
    await rm(`${path}.new`, { force: true });
    await create(`${path}.new`);
    return rename(`${path}.new`, path);
  }
  try {
    await create(path);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
    throw new Error(`${path} is there already: nothing was written; --force replaces it`);
  }
}

/** Returns how to go on, in lines. */
function report(starter: Starter, { secret, values }: StarterApplication, settings: Settings): string[] {
  const { shape, programs } = starter;
  const { baseUrl } = settings;
  const snippets = programs.map((program) => program(values));
  const [first] = snippets;
  const steps = [
    `1. Start the server, and leave it running: it is at ${baseUrl}`,
    '',
    `   ${OWN_COMMAND} start`,
    ...(hasLogin(shape) ? ['', '   Log in as user@example.test with the password Gatehouse-1.'] : []),
    '',
    `2. ${first?.install === undefined ? 'Paste this' : 'Install what the program needs, and paste it'}${
      hasLogin(shape) && shape !== 'device' ? `; the application is expected at ${values.afterLogout}` : ''
    }`,
    ...snippets.flatMap(programLines),
    ...secretLines(secret, snippets),
    ...trustLines(starter, values, settings),
  ];
  return ['', ...steps];
}

function programLines({ title, install, code }: Snippet): string[] {
  return ['', `   ${title}:`, '', ...(install === undefined ? [] : [`   ${install}`, '']), code.trimEnd()];
}

/** Returns the variables that the programs read, with values. */
function secretLines(secret: string | undefined, snippets: readonly Snippet[]): string[] {
  const code = snippets.map((one) => one.code).join('\n');
  const names = new Set([...code.matchAll(/\b[A-Z0-9_]+_SECRET\b/g)].map(([name]) => name));
  if (names.size === 0) return [];
  const lines = [...names].map((name) => {
    const value = name === 'CLIENT_SECRET' && secret !== undefined ? secret : randomText();
    return `   ${name}=${value}`;
  });
  return ['', '   It reads its secrets from the environment. In development:', '', ...lines];
}

/** Returns how the application comes to trust the certificate, if this server makes its own. */
function trustLines(
  { shape, trust, run }: Starter,
  { callback }: QuickstartValues,
  { tls, dataDir, baseUrl }: Settings,
): string[] {
  const command = run(portOf(callback));
  if (tls.mode !== 'auto') return ['', '3. Start the application:', '', `   ${command}`];
  const file = resolve(join(dataDir, 'tls/ca.pem'));
  const browser = `   Browsers: import ${file} as an authority, or open ${baseUrl} and accept the warning once.`;
  return [
    '',
    '3. Start the application. It has to trust the certificate authority (CA) that the first start of the server makes:',
    '',
    `   ${trust === undefined ? command : trust(`'${file.replaceAll("'", `'\\''`)}'`, command)}`,
    ...(hasLogin(shape) ? ['', browser] : []),
  ];
}
