// `gatehouse backup` and `restore`, as operators run them: with a running server, without, and with damaged files.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { lockName } from '../../src/store/lock.ts';
import { checkArchive } from '../../src/store/transfer/archive.ts';
import { writeWhole } from '../../src/store/write-whole.ts';
import { rejection } from '../store/contract.ts';
import { createAgent } from '../support/agent.ts';
import { runCommand } from '../support/command.ts';
import { CLI, runToEnd } from '../support/process.ts';
import { serveFolder } from '../support/server.ts';

const LINE_SEPARATOR = String.fromCharCode(0x2028);

describe('gatehouse backup and restore', () => {
  let cwd: string;
  before(async () => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-backup-'));
  });
  after(() => rmSync(cwd, { recursive: true, force: true }));

  const run = (args: string[], env: Record<string, string> = {}) => runCommand({ cwd, env, args });
  const users = async (env: Record<string, string> = {}) =>
    (await run(['users', 'export', '--with-hashes'], env)).stdout;
  /** Makes a data directory that only has the key of the first one. */
  const withKey = (name: string) => {
    mkdirSync(join(cwd, name, 'keys'), { recursive: true, mode: 0o700 });
    cpSync(join(cwd, 'data/keys/secrets.key'), join(cwd, name, 'keys/secrets.key'));
    return { DATA_DIR: name };
  };

  it('transfer everything from a running server to a new data directory', async () => {
    const server = await serveFolder(cwd);
    writeFileSync(
      join(cwd, 'users.json'),
      JSON.stringify([{ email: 'grace@example.test', name: `Grace${LINE_SEPARATOR}Hopper` }]),
    );
    expect((await run(['users', 'import', 'users.json'])).code).to.equal(0);
    // In a process of its own, as operators run it.
    const made = await runToEnd({ cwd, command: [process.execPath, CLI, 'backup', 'one.backup'] });
    expect(made.stderr).to.equal('');
    expect(made.code).to.equal(0);
    expect(made.stdout).to.contain('keys/secrets.key, which is not in it');
    const [before, tenant] = [await users(), (await run(['export'])).stdout];
    expect(before).to.contain('grace@example.test');
    await server.stop();
    const restored = await run(['restore', 'one.backup'], withKey('restored'));
    expect(restored.stderr).to.equal('');
    expect(restored.code).to.equal(0);
    expect(await users({ DATA_DIR: 'restored' })).to.equal(before);
    expect((await run(['export'], { DATA_DIR: 'restored' })).stdout).to.equal(tenant);
    const keysOf = async (env: Record<string, string>) => {
      const served = await serveFolder(cwd, env);
      const { keys } = (await createAgent(served).get('/.well-known/jwks.json')).json();
      await served.stop();
      return (keys as { kid: string }[]).map(({ kid }) => kid);
    };
    expect(await keysOf({ DATA_DIR: 'restored' })).to.deep.equal(await keysOf({}));
  });

  it('make the file readable by its owner only, and overwrite nothing', async () => {
    expect(statSync(join(cwd, 'one.backup')).mode & 0o777).to.equal(0o600);
    const bytes = readFileSync(join(cwd, 'one.backup'));
    const again = await run(['backup', 'one.backup']);
    expect(again.code).to.equal(1);
    expect(again.stderr).to.contain('one.backup is there already');
    expect(readFileSync(join(cwd, 'one.backup')).equals(bytes)).to.equal(true);
  });

  it('rename the file only when it is complete, so that a killed backup leaves none', async () => {
    const file = join(cwd, 'cut.backup');
    const begun = new Promise<void>((resolve) => {
      const watcher = watch(cwd, (_event, name) => {
        if (!name?.startsWith('cut.backup')) return;
        watcher.close();
        resolve();
      });
    });
    const child = spawn(process.execPath, [CLI, 'backup', file], { cwd, env: { PATH: process.env.PATH } });
    const ended = once(child, 'exit');
    await begun;
    child.kill('SIGKILL');
    await ended;
    // At whatever point it was killed.
    if (existsSync(file)) await checkArchive(file);
    rmSync(file, { force: true });
    writeFileSync(`${file}.unfinished`, readFileSync(join(cwd, 'one.backup')).subarray(0, -50));
    const used = await run(['restore', `${file}.unfinished`], withKey('cut'));
    expect(used.code).to.equal(1);
    expect(used.stderr).to.contain('damaged or not whole');
    // The next backup replaces the abandoned file.
    const again = await run(['backup', file]);
    expect(again.stderr).to.equal('');
    await checkArchive(file);
    expect(readdirSync(cwd).filter((name) => name.startsWith('cut.backup'))).to.deep.equal(['cut.backup']);
  });

  it('write no file that another command is writing, or that appeared meanwhile', async () => {
    const file = join(cwd, 'two.backup');
    const unlock = lockName(`${file}.unfinished.lock`);
    const beside = await run(['backup', file]);
    expect(beside.code).to.equal(1);
    expect(beside.stderr).to.contain('two.backup.unfinished: another command is writing it');
    unlock?.();
    const written = writeWhole(file, { replaces: false }, async (_unfinished, to) => {
      writeFileSync(file, 'of somebody else');
      to.end();
    });
    expect(String(await rejection(written))).to.contain('two.backup is there already');
    expect(readFileSync(file, 'utf8')).to.equal('of somebody else');
    expect(readdirSync(cwd).filter((name) => name.startsWith('two'))).to.deep.equal(['two.backup']);
  });

  it('refuse to back up a store that does not exist', async () => {
    const commands = [
      ['backup', 'none.backup'],
      ['export'],
      ['users', 'export'],
      ['keys', 'rotate'],
      ['admin', 'create'],
      ['migrate', '--from', 'nowhere', '--to', 'other'],
    ];
    for (const args of commands) {
      const { code, stdout, stderr } = await run(args, { DATA_DIR: 'nowhere' });
      expect([code, stdout, stderr], args[0]).to.deep.equal([1, '', 'nowhere/store: there is no store\n']);
    }
    for (const name of ['none.backup', 'nowhere/store', 'other'])
      expect(existsSync(join(cwd, name)), name).to.equal(false);
  });

  it('leave nothing behind when the disk is full', async () => {
    // A limit on the size of files, like a disk that becomes full.
    const command = ['sh', '-c', `ulimit -f 1; exec "${process.execPath}" "${CLI}" backup full.backup`];
    const server = await serveFolder(cwd);
    const { code, stderr } = await runToEnd({ cwd, command });
    await server.stop();
    expect(code).to.equal(1);
    expect(stderr).to.contain('full.backup.unfinished').and.contain('EFBIG');
    expect(readdirSync(cwd).filter((name) => name.startsWith('full'))).to.deep.equal([]);
  });

  it('refuse unknown commands, and extra arguments', async () => {
    const unknown = await run(['bakcup', 'x.backup']);
    expect([unknown.code, unknown.stderr]).to.deep.equal([
      1,
      "error: unknown command 'bakcup': see --help\n",
    ]);
    const more = await run(['backup', 'x.backup', 'y']);
    expect([more.code, more.stdout]).to.deep.equal([1, '']);
    expect(more.stderr).to.contain("too many arguments for 'backup'");
  });

  it('write no secret in clear text', () => {
    const text = gunzipSync(readFileSync(join(cwd, 'one.backup'))).toString();
    const key = readFileSync(join(cwd, 'data/keys/secrets.key'), 'utf8').trim();
    expect(text).to.contain('\\"sealed\\"').and.not.contain(key);
    // The private key of a signing key, and the example's client secret.
    expect(text).not.to.match(/\\"d\\":\\"/);
    expect(text).not.to.contain('example-web-secret');
  });

  it('refuse to fill a store that is not empty, or that a server uses', async () => {
    const full = await run(['restore', 'one.backup'], { DATA_DIR: 'restored' });
    expect(full.code).to.equal(1);
    expect(full.stderr).to.contain('the store is not empty');
    const server = await serveFolder(cwd);
    const used = await run(['restore', 'one.backup']);
    await server.stop();
    expect(used.code).to.equal(1);
    expect(used.stderr).to.contain('the store is in use');
  });

  it('refuse a wrong key, and say where the right one belongs', async () => {
    const SECRETS_KEY = Buffer.from(Array.from({ length: 32 }, (_, n) => n * 7)).toString('base64');
    for (const env of [{ DATA_DIR: 'nokey' }, { DATA_DIR: 'nokey', SECRETS_KEY }]) {
      const { code, stderr } = await run(['restore', 'one.backup'], env as Record<string, string>);
      expect(code).to.equal(1);
      expect(stderr).to.contain('nokey/keys/secrets.key').and.contain('SECRETS_KEY');
    }
    expect(existsSync(join(cwd, 'nokey/store'))).to.equal(false);
  });

  describe('of an archive', () => {
    const copy = (name: string) => {
      cpSync(join(cwd, 'one.backup'), join(cwd, name));
      return join(cwd, name);
    };
    const rewrite = (file: string, change: (text: string) => string) =>
      writeFileSync(file, gzipSync(change(gunzipSync(readFileSync(file)).toString())));
    const faults: Record<string, [spoil: (file: string) => void, words: string]> = {
      'that was cut short': [(file) => truncateSync(file, statSync(file).size - 100), 'damaged or not whole'],
      'whose last records are missing': [
        (file) =>
          rewrite(file, (text) => {
            const lines = text.trimEnd().split('\n');
            return `${[...lines.slice(0, -3), lines.at(-1)].join('\n')}\n`;
          }),
        'damaged or not whole',
      ],
      'without its last line': [
        (file) => rewrite(file, (text) => `${text.trimEnd().split('\n').slice(0, -1).join('\n')}\n`),
        'damaged or not whole',
      ],
      'with a changed byte': [
        (file) =>
          rewrite(file, (text) =>
            text.replace('ada@example.com', 'eve@example.com').replace('"users"', '"users" '),
          ),
        'damaged or not whole',
      ],
      'with records after its end': [
        (file) => rewrite(file, (text) => `${text}{"c":"users","r":"{}"}\n`),
        'damaged',
      ],
      'of a newer release': [
        (file) => rewrite(file, (text) => text.replace('"format":1', '"format":2')),
        'newer release',
      ],
      'with other content': [(file) => writeFileSync(file, gzipSync('{"some":"thing"}\n')), 'is no backup'],
      'that is no gzip': [(file) => writeFileSync(file, 'text'), 'damaged'],
      'with bytes after it': [(file) => appendFileSync(file, 'x'), 'damaged'],
    };
    for (const [what, [spoil, words]] of Object.entries(faults)) {
      it(`${what} change nothing`, async () => {
        const name = `${what.replaceAll(' ', '-')}.backup`;
        spoil(copy(name));
        const env = withKey(`into-${dirname(name)}-${name}`);
        const { code, stderr } = await run(['restore', name], env);
        expect(code).to.equal(1);
        expect(stderr).to.contain(words);
        expect(existsSync(join(cwd, env.DATA_DIR, 'store'))).to.equal(false);
      });
    }
  });
});
