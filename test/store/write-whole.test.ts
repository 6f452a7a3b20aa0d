// Where commands write their output: `gatehouse export -o`, `gatehouse users export -o`.
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
    // The mode of /tmp.
    await chmod(shared, 0o1777);
    output = join(shared, 'users.json');
    target = join(root, 'target');
    await writeFile(target, 'before');
  });
  afterEach(() => rm(root, { recursive: true }));

  it("follows the user's own symbolic link and keeps it", async () => {
    await symlink(target, output);
    await writeOutput(output, ['users']);
    expect(await readFile(target, 'utf8')).to.equal('users');
    expect((await lstat(output)).isSymbolicLink()).to.equal(true);
  });

  it("is not written through another user's link or pipe in a directory like /tmp", async function () {
    // Only root can give files to another user.
    if (process.getuid?.() !== 0) this.skip();
    await symlink(target, output);
    await lchown(output, NOBODY, NOBODY);
    expect(String(await rejection(writeOutput(output, ['users'])))).to.contain('belongs to another user');
    expect(await readFile(target, 'utf8')).to.equal('before');
    const pipe = `${output}.pipe`;
    execFileSync('mkfifo', [pipe]);
    await chown(pipe, NOBODY, NOBODY);
    expect(String(await rejection(writeOutput(pipe, ['users'])))).to.contain('belongs to another user');
    // In a directory of their own, other users decide.
    await lchown(join(root, 'shared'), NOBODY, NOBODY);
    await writeOutput(output, ['users']);
    expect(await readFile(target, 'utf8')).to.equal('users');
  });
});
