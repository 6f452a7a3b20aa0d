// The examples of tests: each passes, with a Gatehouse inside the process of its tests.
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { installation } from '../support/browser.ts';
import { builtPackage } from '../support/built.ts';
import { freePort } from '../support/free-port.ts';
import { environment } from '../support/process.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { rewrite } from './example.ts';
import { EXAMPLES, WORKSPACE } from './workspace.ts';

/** What each of them says about an API, in the runner's own form. */
const OF_API = [
  'keeps the notes of each user',
  'requires a token',
  'requires the scope of the route',
  'refuses tokens for others, and tokens that have expired',
];
const OF_APPLICATION = ['logs in and out', 'logs in with a new password'];

const TESTS = {
  'testing-jest': OF_API,
  'testing-mocha': OF_API,
  'testing-node': OF_API,
  'testing-playwright': OF_APPLICATION,
  'testing-vitest': OF_API,
};

/**
 * Runs the tests of an example as its README says, in a copy outside of the workspace: Jest finds no tests below
 * `node_modules`.
 * @returns what it printed.
 */
async function runTests(name: string, folder: string): Promise<string> {
  await cp(join(EXAMPLES, name), folder, { recursive: true });
  const port = String(await freePort());
  await rewrite(folder, (text) => text.replaceAll(/\b4000\b/g, port));
  await symlink(join(WORKSPACE, 'node_modules'), join(folder, 'node_modules'), 'dir');
  const { executablePath, env } = await installation();
  const { stdout, stderr } = await promisify(execFile)('npm', ['test'], {
    cwd: folder,
    env: environment({ ...env, CI: 'true', CHROMIUM_PATH: executablePath, NO_COLOR: '1' }),
  }).catch((failure: { stdout: string; stderr: string }) => {
    throw new Error(`${name} failed:\n${failure.stdout}\n${failure.stderr}`);
  });
  return stdout + stderr;
}

describe('the example', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(SCRATCH, 'gatehouse-examples-'));
    const place = join(WORKSPACE, 'node_modules/gatehouse');
    await rm(place, { recursive: true, force: true });
    await symlink(await builtPackage(), place, 'dir');
  });
  after(() => rm(directory, { recursive: true, force: true }));

  for (const [name, titles] of Object.entries(TESTS)) {
    it(`${name} passes its tests`, async () => {
      const printed = await runTests(name, join(directory, name));
      for (const title of titles) expect(printed).to.contain(title);
    });
  }
});
