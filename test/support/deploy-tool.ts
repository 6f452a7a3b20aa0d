// The hosted service's deploy tool, unmodified, in processes of their own.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const PRELOADED = ['fast-timers', 'few-languages', 'fetch-retry'].flatMap((name) => [
  '--import',
  `./test/support/${name}.ts`,
]);

/** Runs a program with the tool. @returns its output. @throws Error with its output */
async function runTool(args: readonly string[], env: Record<string, string | undefined>): Promise<string> {
  const { stdout, stderr } = await run(process.execPath, [...PRELOADED, ...args], {
    maxBuffer: 50_000_000,
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
  }).catch((thrown: { stdout?: string; stderr?: string; message: string }) => {
    throw new Error(`${thrown.message}\n${thrown.stdout}\n${thrown.stderr}`);
  });
  return stdout + stderr;
}

const RESULT = 'DEPLOY_TOOL_RESULT';

/** For the reader: writes what it read. */
export function writeAssets(all: readonly object[]): void {
  writeFileSync(String(process.env[RESULT]), JSON.stringify(all));
}

let count = 0;

/**
 * Returns what the tool reads in tenant files or folders, checked with its own schemas, up to the point where it would ask the
 * service. @param env variables, which it also takes for those of the files. @throws Error with what it refuses
 */
export async function readByTool(
  paths: readonly string[],
  env: Record<string, string> = {},
): Promise<Record<string, unknown>[]> {
  const result = join(tmpdir(), `gatehouse-tool-${process.pid}-${++count}.json`);
  try {
    await runTool(['test/support/deploy-tool-reader.ts', ...paths], { ...env, [RESULT]: result });
    return JSON.parse(await readFile(result, 'utf8')) as Record<string, unknown>[];
  } finally {
    await rm(result, { force: true });
  }
}

/** The application with which the tool comes to a server. */
interface Access {
  domain: string;
  clientId: string;
  clientSecret: string;
  caFile: string;
}

/**
 * Runs `a0deploy import` without the variables of its environment, as docs/do/moving.md says.
 * @returns its output. @throws Error with its output
 */
export async function importByTool(
  { domain, clientId, clientSecret, caFile }: Access,
  path: string,
): Promise<string> {
  const config = join(tmpdir(), `gatehouse-tool-${process.pid}-${++count}.config.json`);
  writeFileSync(
    config,
    JSON.stringify({ AUTH0_DOMAIN: domain, AUTH0_CLIENT_ID: clientId, AUTH0_CLIENT_SECRET: clientSecret }),
    { mode: 0o600 },
  );
  const args = ['import', '--config_file', config, '--input_file', path, '--env', 'false'];
  try {
    return await runTool(['node_modules/auth0-deploy-cli/lib/index.js', ...args], {
      NODE_EXTRA_CA_CERTS: caFile,
    });
  } finally {
    await rm(config, { force: true });
  }
}
