// Where what a command puts out is written: `gatehouse export -o`, `gatehouse users export -o`.
import { execFileSync } from 'node:child_process';
import {
  chmod,
  chown,
  lchown,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { writeOutput } from '../../src/store/write-whole.ts';
import { rejection } from './contract.ts';

const NOBODY = 65_534;

describe('the output of a command', () => {
  let root: string;
  let output: string;
  let target: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'gatehouse-output-'));
    const shared = join(root, 'shared');
    await mkdir(shared);
    // As /tmp is.
    await chmod(shared, 0o1777);
    output = join(shared, 'users.json');
    target = join(root, 'target');
    await writeFile(target, 'before');
  });
  afterEach(() => rm(root, { recursive: true }));

  it('goes where an own link leads, which stays one', async () => {
    await symlink(target, output);
    await writeOutput(output, ['users']);
    expect(await readFile(target, 'utf8')).to.equal('users');
    expect((await lstat(output)).isSymbolicLink()).to.equal(true);
  });

  it("goes by no link or pipe of somebody else's in a directory of all", async function () {
    // Nobody else can give files away.
    if (process.getuid?.() !== 0) this.skip();
    await symlink(target, output);
    await lchown(output, NOBODY, NOBODY);
    expect(String(await rejection(writeOutput(output, ['users'])))).to.contain('belongs to another user');
    expect(await readFile(target, 'utf8')).to.equal('before');
    const pipe = `${output}.pipe`;
    execFileSync('mkfifo', [pipe]);
    await chown(pipe, NOBODY, NOBODY);
    expect(String(await rejection(writeOutput(pipe, ['users'])))).to.contain('belongs to another user');
    // What they put in a directory of their own is theirs to decide.
    await lchown(join(root, 'shared'), NOBODY, NOBODY);
    await writeOutput(output, ['users']);
    expect(await readFile(target, 'utf8')).to.equal('users');
  });
});
