// The end of the process: in time and with 0, whatever hangs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { STOP_BUDGET } from '../../src/server/stop.ts';
import { tenant } from '../connections/passwordless/tenant.ts';
import { logoutTenant, v2 } from '../logout/support.ts';
import { createAgent } from '../support/agent.ts';
import { builtFaultyServer } from '../support/built.ts';
import { API, logIn, tenant as machines, webRequest } from '../support/flows.ts';
import { runServer, type ServerProcess } from '../support/process.ts';
import { actionsAt } from '../support/tenant.ts';
import { took } from '../support/timing.ts';

const HELD_UP = fileURLToPath(new URL('./processes/held-up.ts', import.meta.url));
/** A budget in which each part can show that it ends in time, and that keeps the tests short. */
const BUDGET = 2_000;
/** How much longer than its budget a stop may take on a busy machine. */
const SLACK = 1_500;

describe('the end of the process', () => {
  let cwd: string;
  const closers: (() => void)[] = [];
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-stop-'));
  });
  afterEach(() => {
    for (const close of closers.splice(0)) close();
    rmSync(cwd, { recursive: true, force: true });
  });

  const run = async (env: Record<string, string> = {}, budget = BUDGET, file: object = tenant) => {
    writeFileSync(join(cwd, 'tenant.yaml'), stringify(file));
    const server = await runServer({
      cwd,
      env: { TENANT_FILE: 'tenant.yaml', ...env },
      command: [process.execPath, await builtFaultyServer(), String(budget)],
    });
    closers.push(() => server.child.kill('SIGKILL'));
    return server;
  };
  /** Stops a server. @returns its exit code, and how long that took, milliseconds. */
  const end = async (server: ServerProcess) => {
    let code: number | string = '';
    const ms = await took(async () => {
      code = await server.end('SIGTERM');
    }, Number(server.child.pid));
    return { code, ms };
  };
  const portOf = ({ url }: ServerProcess) => Number(new URL(url).port);

  /** Starts a server that accepts connections and never answers. @returns its port. */
  async function silence(): Promise<number> {
    const sockets = new Set<net.Socket>();
    const server = net.createServer((socket) => sockets.add(socket.on('error', () => {})));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    return (server.address() as AddressInfo).port;
  }

  /** Opens a connection whose TLS handshake stops after its first bytes. */
  async function unfinishedHandshake(server: ServerProcess): Promise<void> {
    const socket = net.connect(portOf(server), '127.0.0.1').on('error', () => {});
    closers.push(() => socket.destroy());
    await once(socket, 'connect');
    // The header of a TLS record with a ClientHello (RFC 8446 §5.1), of which no more comes.
    socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]));
  }

  /** Opens a connection with a finished TLS handshake and no request. */
  async function silentConnection(server: ServerProcess): Promise<void> {
    const options = { host: '127.0.0.1', port: portOf(server), servername: 'localhost', ca: server.ca };
    const socket = tls.connect(options).on('error', () => {});
    closers.push(() => socket.destroy());
    await once(socket, 'secureConnect');
  }

  /** Sends a request whose body never ends. */
  async function trickle(server: ServerProcess): Promise<void> {
    const request = https.request(`${server.url}/oauth/token`, {
      method: 'POST',
      ca: server.ca,
      agent: false,
      headers: { 'content-type': 'application/json', 'content-length': 5_000, expect: '100-continue' },
    });
    request.on('error', () => {});
    request.flushHeaders();
    await once(request, 'continue');
    const timer = setInterval(() => request.write(' '), 100);
    closers.push(() => {
      clearInterval(timer);
      request.destroy();
    });
  }

  const mailTo = (port: number) => ({
    SMTP_URL: `smtp://127.0.0.1:${port}`,
    MAIL_FROM: 'login@example.test',
  });
  /** Requests a code by mail, and a mail that is sent in the background; neither can be sent. */
  async function askForMail(server: ServerProcess): Promise<void> {
    const agent = createAgent(server);
    const email = { client_id: 'spa', connection: 'email', email: 'someone@example.test', send: 'code' };
    agent.request('/passwordless/start', { json: email }).catch(() => {});
    const answer = await agent.request('/dbconnections/change_password', {
      json: { client_id: 'spa', connection: 'users', email: 'ada@example.test' },
    });
    expect(answer.status, answer.text).to.equal(200);
  }

  it('does not wait for an unfinished TLS handshake, nor for a connection without a request', async () => {
    const server = await run({}, 9_000);
    await unfinishedHandshake(server);
    await silentConnection(server);
    const { code, ms } = await end(server);
    expect(code).to.equal(0);
    expect(ms).to.be.below(3_000);
  });

  it('is in time when a request never ends', async () => {
    const server = await run();
    await trickle(server);
    const { code, ms } = await end(server);
    expect(code).to.equal(0);
    expect(ms).to.be.below(BUDGET + SLACK);
    expect(server.lines.join('\n')).to.contain('requests that did not end were cut off');
  });

  it('is in time when the mail server never answers', async () => {
    const server = await run(mailTo(await silence()));
    await askForMail(server);
    const { code, ms } = await end(server);
    expect(code).to.equal(0);
    expect(ms).to.be.below(BUDGET + SLACK);
  });

  it('is in time when an application never answers a logout token', async () => {
    const backchannel_logout_urls = [`http://127.0.0.1:${await silence()}/logout`];
    const server = await run({}, BUDGET, logoutTenant({ web: { oidc_logout: { backchannel_logout_urls } } }));
    const browser = createAgent(server);
    await logIn(browser, server, webRequest());
    expect((await v2(browser)).status).to.equal(302);
    const { code, ms } = await end(server);
    expect(code).to.equal(0);
    expect(ms).to.be.below(BUDGET + SLACK);
  });

  it('is in time, with 0, when all of them hang at once: within ten seconds', async () => {
    expect(STOP_BUDGET).to.be.at.most(10_000 - 500);
    const server = await run(mailTo(await silence()));
    await unfinishedHandshake(server);
    await silentConnection(server);
    await trickle(server);
    await askForMail(server);
    const { code, ms } = await end(server);
    expect(code).to.equal(0);
    expect(ms).to.be.below(BUDGET + SLACK);
  });

  it('is in time while actions have the host compute, one call after the other', async () => {
    const code = `exports.onExecuteCredentialsExchange = async (event) => {
      const { pbkdf2Sync } = require('crypto');
      while (event.request.body.long) pbkdf2Sync('a', 'b', 1000000, 64, 'sha512');
    };`;
    const server = await run({}, BUDGET, {
      ...machines,
      ...actionsAt('credentials-exchange', { Compute: code }),
    });
    const ask = (more: object) =>
      createAgent(server).request('/oauth/token', {
        json: {
          grant_type: 'client_credentials',
          client_id: 'm2m',
          client_secret: 'm2m-secret',
          audience: API,
          ...more,
        },
      });
    expect((await ask({})).status).to.equal(200);
    for (let count = 0; count < 3; count++) ask({ long: 'yes' }).catch(() => {});
    // Those before it have begun.
    expect((await ask({})).status).to.equal(200);
    const { code: exitCode, ms } = await end(server);
    expect(exitCode).to.equal(0);
    expect(ms).to.be.below(BUDGET + SLACK);
  });

  it('does not wait for a thread that nothing can interrupt', async () => {
    const child = spawn(process.execPath, [HELD_UP], { stdio: ['ignore', 'pipe', 'inherit'] });
    closers.push(() => child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    const ms = await took(async () => {
      child.kill('SIGTERM');
      expect(await once(child, 'exit')).to.deep.equal([3, null]);
    }, Number(child.pid));
    expect(ms).to.be.below(SLACK);
  });

  it('is not caused by an unhandled rejection, which is logged', async () => {
    const server = await run();
    server.child.stdin?.write('reject\n');
    await server.line((line) => line.includes('a bug that rejects'));
    expect((await createAgent(server).get('/healthz')).status).to.equal(200);
    expect((await end(server)).code).to.equal(0);
    const said = server.lines.find((line) => line.includes('a bug that rejects'));
    expect(JSON.parse(said ?? '{}')).to.include({ level: 50, msg: 'a failure that nothing handled' });
  });

  it('is orderly, with 1, after an uncaught exception', async () => {
    const server = await run();
    const agent = createAgent(server);
    const outcome = agent
      .request('/dbconnections/signup', {
        json: { client_id: 'spa', connection: 'users', email: 'late@example.test', password: 'Of-Their-0wn' },
      })
      .then(
        ({ status }) => status,
        ({ code }) => code,
      );
    const ended = once(server.child, 'exit');
    server.child.stdin?.write('throw\n');
    expect(await ended).to.deep.equal([1, null]);
    expect(server.lines.join('\n')).to.contain('a bug that throws');
    // It was either finished or refused, and never left halfway.
    expect(await outcome).to.be.oneOf([200, 'ECONNRESET', 'ECONNREFUSED']);
  });

  it('is immediate at the second signal', async () => {
    const server = await run(mailTo(await silence()), 9_000);
    await askForMail(server);
    const ended = once(server.child, 'exit');
    server.child.kill('SIGTERM');
    await server.line((line) => line.includes('"stopping"'));
    server.child.kill('SIGTERM');
    expect(await ended).to.deep.equal([1, null]);
  });
});
