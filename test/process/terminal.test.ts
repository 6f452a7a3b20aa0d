// The output at a terminal for people, while programs still get JSON.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { createLog } from '../../src/runtime/log.ts';
import { plainLines } from '../../src/server/terminal.ts';
import { createAgent } from '../support/agent.ts';
import { builtFaultyServer } from '../support/built.ts';
import { logIn, responseOf } from '../support/flows.ts';
import { CLI, environment, MAIN, runServer } from '../support/process.ts';
import { fillDataDir } from '../support/template.ts';

describe('at a terminal', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse terminal-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  /** Starts a server with a terminal, and waits until it says how to stop it. */
  async function start(env: Record<string, string> = {}) {
    await fillDataDir(join(cwd, env.DATA_DIR ?? 'data'), true);
    const child = spawn(process.execPath, [await builtFaultyServer(), '9000', 'terminal'], {
      cwd,
      env: environment({ PORT: '0', ...env }),
    });
    const lines: string[] = [];
    const reader = createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
    while (!lines.some((line) => line.includes('/healthz') || line.includes('ended')))
      await once(reader, 'line');
    return {
      lines,
      line: async (part: string) => {
        while (!lines.some((line) => line.includes(part))) await once(reader, 'line');
        return lines.find((line) => line.includes(part)) ?? '';
      },
      said: (name: string) => lines.find((line) => line.trimStart().startsWith(`${name} `)) ?? '',
      stop: async () => {
        const ended = once(child, 'close');
        child.kill('SIGINT');
        return (await ended)[0] as number;
      },
    };
  }

  it("the address, the inbox, the example's login and how to trust the CA are printed, and each of them works", async () => {
    const server = await start();
    const [url = ''] = /https:\S+/.exec(server.said('Address')) ?? [];
    const [, file = ''] = /import (.*) as an authority/.exec(server.said('Browsers')) ?? [];
    expect(file).to.equal(join(cwd, 'data/tls/ca.pem'));
    const agent = createAgent({ url, ca: readFileSync(file, 'utf8') });
    expect(server.said('Address')).to.contain('Try login');
    expect((await agent.get('/')).text).to.contain('Try login');
    const [inbox = ''] = /https:\S+/.exec(server.said('Inbox')) ?? [];
    expect(inbox).to.equal(`${url}/dev/inbox`);
    expect((await agent.get('/dev/inbox')).status).to.equal(200);
    const [, email = '', password = ''] =
      /(\S+@\S+) with the password (\S+)$/.exec(server.said('Log in as')) ?? [];
    const back = await logIn(
      agent,
      { url },
      {
        client_id: 'example-web',
        response_type: 'code',
        redirect_uri: 'http://localhost:3001/callback',
        state: 's',
        scope: 'openid',
      },
      { email, password },
    );
    expect(responseOf(back)).to.have.property('code');
    // With a space in the path, quoted as it must be typed.
    expect(server.said('Node.js')).to.contain(`NODE_EXTRA_CA_CERTS='${file}'`);
    expect(server.said('curl')).to.contain(`--cacert '${file}' ${url}/healthz`);
    expect(server.said('Tenant')).to.contain(join(cwd, 'config/tenant.yaml'));
    expect(server.said('Console')).to.contain(`${url}/console`).and.to.contain('example login');
    expect((await agent.get('/')).text).to.contain('admin@example.test');
    expect(await server.stop()).to.equal(0);
    for (const line of server.lines) expect(line).not.to.match(/^\s*\{/);
    expect(server.lines.join('\n')).to.contain('stopping signal=SIGINT');
  });

  it('no password is printed that does not work, nor an inbox that does not exist', async () => {
    const changed =
      "databases: [{ name: db }]\nusers: [{ email: user@example.test, password: 'Of-Their-0wn' }]";
    writeFileSync(join(cwd, 'own.yaml'), changed);
    const own = await start({ TENANT_FILE: 'own.yaml' });
    expect(own.said('Tenant')).to.contain(join(cwd, 'own.yaml'));
    expect(own.lines.join()).not.to.match(/Log in as|Gatehouse-1|Of-Their-0wn|example login/);
    await own.stop();
    const elsewhere = await start({ DATA_DIR: 'other', BASE_URL: 'https://login.example.test' });
    expect(elsewhere.said('Inbox')).to.contain(`files in ${join(cwd, 'other/outbox')}`);
    expect(elsewhere.said('Address')).not.to.contain('Try login');
    expect(await elsewhere.line('development pages')).to.match(/^\d\d:\d\d:\d\d warning: /);
    await elsewhere.stop();
  });

  it('the log is plain lines, which their contents cannot forge', () => {
    let text = '';
    const log = createLog('debug', plainLines({ write: (part) => (text += part) }));
    log.info({ event: 'f', user_name: 'a\u001b[2Jb\nc\r\u202ed', n: 5, token: 'hidden' }, 'event');
    log.warn({ err: new Error('first', { cause: new Error('second\u0007') }) }, 'it failed');
    log.error({ err: new Error('third\nerror: forged') }, 'a fault');
    const lines = text.trimEnd().split('\n');
    expect(lines[0]).to.match(
      /^\d\d:\d\d:\d\d event event=f user_name=a\\u\{1b\}\[2Jb\\u\{a\}c\\u\{d\}\\u\{202e\}d n=5 token=\[secret\]$/,
    );
    expect(lines[1]).to.match(/^\S+ warning: it failed \(first\)$/);
    expect(lines[2]).to.match(/^\S+ error: a fault \(third\\u\{a\}error: forged\)$/);
    expect(lines.slice(3).every((line) => /^ {2}\s*at /.test(line))).to.equal(true);
    expect(lines.length).to.be.above(4);
    for (const one of ['\u001b', '\u0007', '\r', '\u202e']) expect(text).not.to.contain(one);
  });

  it('and with a pipe programs get JSON, from npm start and from the command', async () => {
    for (const command of [[MAIN], [CLI], [CLI, 'start']]) {
      const server = await runServer({ cwd, command: [process.execPath, ...command] });
      await server.end('SIGKILL');
      const listening = server.lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'listening');
      expect(listening).to.include.keys('url', 'port', 'ca');
      expect(server.lines.join()).not.to.contain('Gatehouse-1');
    }
  });
});
