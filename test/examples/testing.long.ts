// The examples of tests in other languages: each passes, with a Gatehouse in a process of its own. Their packages come
// from PyPI and the Go module proxy.
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { builtProgram } from '../support/built.ts';
import { environment } from '../support/process.ts';
import { isThere } from './example.ts';
import { EXAMPLES } from './workspace.ts';

interface Language {
  /** A command that shows whether its tools are there. */
  needs: string[];
  /** The commands of its README. */
  commands: string[][];
  /** What the last of them prints of each test that passes. */
  passed: string[];
}

const LANGUAGES: Record<string, Language> = {
  'testing-pytest': {
    needs: ['python3', '-m', 'venv', '--help'],
    commands: [
      ['python3', '-m', 'venv', '.venv'],
      ['.venv/bin/pip', 'install', '--quiet', '-r', 'requirements.txt'],
      ['.venv/bin/pytest', '-v'],
    ],
    passed: [
      'test_keeps_the_notes_of_each_user PASSED',
      'test_requires_a_token PASSED',
      'test_requires_the_scope_of_the_route PASSED',
    ],
  },
  'testing-go': {
    needs: ['go', 'version'],
    commands: [['go', 'test', '-v', './...']],
    passed: [
      'PASS: TestKeepsTheNotesOfEachUser',
      'PASS: TestRequiresAToken',
      'PASS: TestRequiresTheScopeOfTheRoute',
    ],
  },
};

describe('the example', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-examples-'));
  });
  after(() => rm(directory, { recursive: true, force: true }));

  for (const [name, { needs, commands, passed }] of Object.entries(LANGUAGES)) {
    if (!isThere(needs)) {
      it.skip(`${name}: \`${needs.join(' ')}\` fails here`);
      continue;
    }
    it(`${name} passes its tests`, async () => {
      const folder = join(directory, name);
      await cp(join(EXAMPLES, name), folder, { recursive: true });
      const env = environment({ GATEHOUSE: `${process.execPath} ${await builtProgram()}` });
      let printed = '';
      for (const [file = '', ...args] of commands) {
        const { stdout } = await promisify(execFile)(file, args, { cwd: folder, env }).catch(
          (failure: { stdout: string; stderr: string }) => {
            throw new Error(`${name}: ${file} failed:\n${failure.stdout}\n${failure.stderr}`);
          },
        );
        printed = stdout;
      }
      for (const line of passed) expect(printed).to.contain(line);
    });
  }
});
