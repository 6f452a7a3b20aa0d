// Does what a page of docs/learn tells its reader: writes the files that it shows, and runs its commands in a scratch
// folder. The words after the language of a block say what the block is; readers do not see them.
//
//   sh FOLDER                commands that are run in a folder, to their end
//   sh FOLDER starts         the last command goes on running
//   text output              lines that the commands of the block before have printed
//   js FILE (or html, yaml)  the content of a file
//   js FILE adds             lines for its end
//   yaml FILE edit           keys of a tenant file: lists are merged by the names of their members
//
// Blocks without such words show something, and are not tested.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import net from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parse, stringify } from 'yaml';
import { builtProgram } from './built.ts';
import { freePort } from './free-port.ts';
import { environment } from './process.ts';
import { SCRATCH } from './scratch-directory.ts';
import { fillDataDir } from './template.ts';
import { until } from './wait-until.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

interface Block {
  language: string;
  words: string[];
  content: string;
}

/** Returns the blocks of a page that say what they are. */
function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^```(\w+) (.+)\n([\s\S]*?)^```$/gm)].map(
    ([, language = '', words = '', content = '']) => {
      return { language, words: words.split(' '), content };
    },
  );
}

export interface Reader {
  /**
   * Does what a page of docs/learn says, or one section of it.
   * @throws Error with the output of a command that failed.
   */
  follow(page: string, section?: string): Promise<void>;
  /** Returns a text of a page with the addresses that stand for those of the page here. */
  here(text: string): string;
  /** The folder of the reader. */
  folder: string;
  /** Stops what was started, and removes the folder. */
  stop(): Promise<void>;
}

/** @param ports those that the pages name; free ones take their places. */
export async function createReader(ports: readonly number[]): Promise<Reader> {
  const folder = mkdtempSync(join(SCRATCH, 'gatehouse-reader-'));
  const free = new Map<number, number>();
  for (const port of ports) free.set(port, await freePort());
  const here = (text: string) =>
    text.replaceAll(/\b(localhost:|127\.0\.0\.1:|PORT=|listen\()(\d{4})\b/g, (whole, before, port) => {
      const other = free.get(Number(port));
      if (other === undefined) throw new Error(`${whole} is no port of the test`);
      return `${before}${other}`;
    });
  const example = readFileSync(join(ROOT, 'config/tenant.yaml'), 'utf8').replaceAll(
    '5173',
    String(free.get(5173)),
  );
  const programs = await writePrograms(join(folder, 'programs'));
  // The example that a first start writes, for the ports of this test; keys and certificates are ready-made.
  await writeFileIn(folder, 'gatehouse/config/tenant.yaml', example);
  await fillDataDir(join(folder, 'gatehouse/data'), true);
  const running = new Map<string, ChildProcess>();

  const environmentIn = (where: string) =>
    environment({
      PATH: `${programs}${delimiter}${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
      ...(where === 'gatehouse' && { PORT: String(free.get(3000)) }),
    });

  const run = async (where: string, script: string): Promise<string> => {
    const child = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
      cwd: join(folder, where),
      env: environmentIn(where),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += String(chunk);
      });
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`in ${where}, ended with ${code}:\n${script}\n${output}`);
    return output;
  };

  const start = async (where: string, script: string): Promise<void> => {
    await end(running.get(where));
    const child = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
      cwd: join(folder, where),
      env: environmentIn(where),
      detached: true,
      // The input stays open, as a terminal's does: esbuild ends with it.
      stdio: 'pipe',
    });
    running.set(where, child);
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output += String(chunk);
      });
    const port = free.get(PORTS_OF[where] ?? 0) ?? 0;
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`in ${where}, ended:\n${script}\n${output}`);
      return await answers(port);
    });
  };

  return {
    folder,
    here,
    follow: async (page, section) => {
      let printed = '';
      const text = readFileSync(join(ROOT, 'docs/learn', page), 'utf8');
      const part = section === undefined ? text : text.split(/^## /m).find((one) => one.startsWith(section));
      if (part === undefined) throw new Error(`${page} has no section ${section}`);
      for (const { language, words, content } of blocksOf(part)) {
        const [first = '', what = ''] = words;
        const shown = here(content);
        if (language === 'text' && first === 'output') expectLines(printed, shown);
        else if (language === 'sh') {
          mkdirSync(join(folder, first), { recursive: true });
          if (what === 'starts') await start(first, shown);
          else printed = await run(first, shown);
        } else if (what === 'adds') appendFileSync(join(folder, first), `\n${shown}`);
        else if (what === 'edit') editTenant(join(folder, first), shown);
        else await writeFileIn(folder, first, shown);
      }
    },
    stop: async () => {
      for (const child of running.values()) await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Where the servers of the pages listen, by their folders. */
const PORTS_OF: Readonly<Record<string, number>> = { gatehouse: 3000, harbour: 3100, api: 4000, app: 5173 };

async function writeFileIn(folder: string, file: string, content: string): Promise<void> {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), content);
}

function expectLines(printed: string, lines: string): void {
  for (const line of lines.trim().split('\n'))
    if (!printed.includes(line)) throw new Error(`"${line}" is not in the output:\n${printed}`);
}

type Named = Record<string, unknown>;

function editTenant(file: string, text: string): void {
  const tenant = parse(readFileSync(file, 'utf8')) as Named;
  for (const [key, value] of Object.entries(parse(text) as Named)) tenant[key] = merged(tenant[key], value);
  writeFileSync(file, stringify(tenant));
}

function merged(old: unknown, value: unknown): unknown {
  if (!Array.isArray(value)) return { ...(old as Named | undefined), ...(value as Named) };
  const all = [...((old as Named[] | undefined) ?? [])];
  const nameOf = ({ client_id: id, name }: Named) => id ?? name;
  for (const one of value as Named[]) {
    const place = all.findIndex((other) => nameOf(other) === nameOf(one));
    if (place < 0) all.push(one);
    else all[place] = { ...all[place], ...one };
  }
  return all;
}

/**
 * Writes an `npm` and an `npx` that need no registry: they take packages from this checkout, and the command of Gatehouse
 * from its sources.
 */
async function writePrograms(directory: string): Promise<string> {
  const modules = join(ROOT, 'node_modules');
  const testing = pathToFileURL(join(ROOT, 'src/testing/index.ts')).href;
  const programs = {
    npm: `
case "$1" in
  init) [ -f package.json ] || echo '{}' > package.json ;;
  install)
    mkdir -p node_modules
    for name in "\${@:2}"; do
      case "$name" in
        -*) ;;
        */gatehouse-*.tgz)
          mkdir node_modules/gatehouse
          echo '{ "type": "module", "exports": { "./testing": "./testing.js" } }' > node_modules/gatehouse/package.json
          echo "export * from '${testing}'" > node_modules/gatehouse/testing.js ;;
        *)
          mkdir -p "$(dirname "node_modules/$name")"
          [ -d "${modules}/$name" ]
          ln -sfn "${modules}/$name" "node_modules/$name" ;;
      esac
    done ;;
  *) exit 1 ;;
esac`,
    npx: `
if [ "$1" = gatehouse ]; then exec '${process.execPath}' '${await builtProgram()}' "\${@:2}"; fi
exec "${modules}/.bin/$1" "\${@:2}"`,
  };
  mkdirSync(directory, { recursive: true });
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(directory, name), `#!/usr/bin/env bash\nset -euo pipefail${script}\n`);
    chmodSync(join(directory, name), 0o755);
  }
  return directory;
}

/** Whether something listens at a port of this machine. */
async function answers(port: number): Promise<boolean> {
  for (const host of ['127.0.0.1', '::1']) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = net.connect(port, host);
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (isOpen) return true;
  }
  return false;
}

/** Ends a process with those that it has started. */
async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'close');
  process.kill(-Number(child.pid), 'SIGTERM');
  await ended;
}
