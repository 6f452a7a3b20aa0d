// Several processes of one server: how they start, stop, are replaced and exchanged.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { createAgent } from '../support/agent.ts';
import { tenant } from '../support/flows.ts';
import { every, until as waitUntil } from '../support/patience.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { MAIN, runServer, runToEnd, type ServerProcess } from '../support/process.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const SECRETS_KEY = '0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9';
const WORKERS = 2;

describe('workers', () => {
  let cluster: Cluster;
  let cwd: string;
  let server: ServerProcess | undefined;
  let databases = 0;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.stop());
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-workers-'));
  });
  afterEach(async () => {
    if (server !== undefined && server.child.exitCode === null && server.child.signalCode === null)
      await server.end('SIGKILL');
    server = undefined;
    rmSync(cwd, { recursive: true, force: true });
  });

  const start = async (file: object = { ...tenant, ...UNLIMITED }) => {
    const database = `workers_${++databases}`;
    await cluster.query(`CREATE DATABASE ${database}`);
    writeFileSync(join(cwd, 'tenant.yaml'), stringify(file));
    const DATABASE_URL = cluster.url(database);
    const env = { TENANT_FILE: 'tenant.yaml', DATABASE_URL, SECRETS_KEY, WORKERS: String(WORKERS) };
    server = await runServer({ cwd, env });
    return server;
  };
  /** The processes that serve: the server's own children. */
  const workersOf = ({ child }: ServerProcess) =>
    readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number);
  const isAlive = (pid: number) => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  };
  const until = (is: () => boolean) => waitUntil(is, every(20));

  /** Asks for tokens again and again, by some clients that keep their connections. @returns what ends them. */
  function load({ url, ca }: ServerProcess, clients = 6) {
    const body = JSON.stringify({
      grant_type: 'client_credentials',
      client_id: 'web',
      client_secret: 'web-secret',
      audience: 'https://api.example.test/',
    });
    const faults: string[] = [];
    let answered = 0;
    let isOver = false;
    const agent = new https.Agent({ keepAlive: true, ca, maxSockets: clients });
    const ask = () =>
      new Promise<void>((resolve) => {
        const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
        const request = https.request(`${url}/oauth/token`, { method: 'POST', agent, headers }, (answer) => {
          answer.resume();
          answer.once('end', () => {
            answered++;
            if (answer.statusCode !== 200) faults.push(`status ${answer.statusCode}`);
            resolve();
          });
          answer.once('error', (error) => {
            faults.push(error.message);
            resolve();
          });
        });
        let isConnected = false;
        request.once('socket', (socket) => {
          isConnected = request.reusedSocket;
          if (isConnected) return;
          socket.once('secureConnect', () => {
            isConnected = true;
          });
        });
        request.once('error', (error) => {
          faults.push(isConnected ? error.message : `not connected: ${error.message}`);
          resolve();
        });
        request.end(body);
      });
    const all = Promise.all(
      Array.from({ length: clients }, async () => {
        while (!isOver) await ask();
      }),
    );
    return {
      faults,
      answered: () => answered,
      end: async () => {
        isOver = true;
        await all;
        agent.destroy();
      },
    };
  }

  it('are refused where the embedded store is for one process', async () => {
    for (const count of ['2', 'auto']) {
      const { code, stderr } = await runToEnd({ cwd, env: { WORKERS: count } });
      expect(code).to.equal(1);
      expect(stderr).to.contain('WORKERS: the embedded store is for one process; several need DATABASE_URL');
    }
    expect((await runToEnd({ cwd, env: { WORKERS: 'some' } })).stderr).to.contain('WORKERS: ');
  });

  it('serve at one address, are announced once, and end with the process that started them', async () => {
    const running = await start();
    expect(running.lines.filter((line) => line.includes('"msg":"listening"'))).to.have.length(1);
    const pids = workersOf(running);
    expect(pids).to.have.length(WORKERS);
    expect((await createAgent(running).get('/readyz')).status).to.equal(200);
    expect(await running.end('SIGTERM')).to.equal(0);
    expect(pids.filter(isAlive)).to.deep.equal([]);
  });

  it('finish what they are at, and end, when the process that started them is killed', async () => {
    const running = await start();
    const pids = workersOf(running);
    const body = JSON.stringify({
      grant_type: 'client_credentials',
      client_id: 'web',
      client_secret: 'web-secret',
      audience: 'https://api.example.test/',
    });
    const request = https.request(`${running.url}/oauth/token`, {
      method: 'POST',
      ca: running.ca,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        expect: '100-continue',
      },
    });
    const answered = once(request, 'response');
    request.flushHeaders();
    await once(request, 'continue');
    await running.end('SIGKILL');
    request.end(body);
    const [answer] = await answered;
    answer.resume();
    expect(answer.statusCode).to.equal(200);
    await until(() => !pids.some(isAlive));
  });

  it('end when the process that started them is killed while they start', async () => {
    const database = `workers_${++databases}`;
    await cluster.query(`CREATE DATABASE ${database}`);
    writeFileSync(join(cwd, 'tenant.yaml'), stringify(tenant));
    const env = {
      TENANT_FILE: 'tenant.yaml',
      DATABASE_URL: cluster.url(database),
      SECRETS_KEY,
      WORKERS: '2',
    };
    for (const moment of ['began', 'connected']) {
      const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
      const options = {
        cwd,
        stdio: 'ignore' as const,
        env: { PATH, HOME, NODE_COMPILE_CACHE, PORT: '0', ...env },
      };
      const child = spawn(process.execPath, [MAIN], options);
      const started = () => workersOf({ child } as ServerProcess).filter((pid) => pid > 0);
      await until(() => started().length > 0);
      const [pid = 0] = started();
      if (moment === 'connected') {
        const used = `SELECT 1 FROM pg_stat_activity WHERE datname = '${database}'`;
        await waitUntil(async () => ((await cluster.query(used)).rowCount ?? 0) > 0, every(20));
      }
      child.kill('SIGKILL');
      await until(() => !isAlive(pid));
    }
  });

  it('finish what they are at before they end', async () => {
    const running = await start();
    const users = load(running);
    await until(() => users.answered() > 50);
    const ended = once(running.child, 'exit');
    running.child.kill('SIGTERM');
    const [code] = await ended;
    await users.end();
    expect(code).to.equal(0);
    // New connections find nobody; none that was taken is cut off.
    expect(users.faults.filter((fault) => !fault.startsWith('not connected'))).to.deep.equal([]);
  });

  it('are replaced when one is killed, and the others go on', async () => {
    const running = await start();
    const [first = 0, ...others] = workersOf(running);
    process.kill(first, 'SIGKILL');
    await running.line((line) => line.includes('a worker ended and is replaced'));
    expect((await createAgent(running).get('/readyz')).status).to.equal(200);
    await until(() => workersOf(running).length === WORKERS);
    expect(workersOf(running)).to.include.members(others).and.not.include(first);
  });

  it('are found where they were announced after all of them were killed at once', async () => {
    const running = await start();
    const pids = workersOf(running);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await waitUntil(
      async () =>
        (
          await createAgent(running)
            .get('/readyz')
            .catch(() => undefined)
        )?.status === 200,
      every(50),
    );
    expect(workersOf(running)).to.not.include.members(pids);
  });

  it('that are killed leave no connection open that they had not taken yet', async () => {
    const running = await start();
    const pids = workersOf(running);
    // Stopped ones are given connections and take none: as many as there are, and more that wait.
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    const { hostname, port } = new URL(running.url);
    const sockets = Array.from({ length: 2 * WORKERS }, () => net.connect(Number(port), hostname));
    let closed = 0;
    for (const socket of sockets) {
      socket.on('error', () => undefined).on('close', () => closed++);
      socket.resume();
    }
    try {
      await Promise.all(sockets.map((socket) => once(socket, 'connect')));
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      await running.line((line) => line.includes('a worker ended and is replaced'));
      await until(() => closed === sockets.length);
    } finally {
      for (const socket of sockets) socket.destroy();
      for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    }
    // With those that are on their way in their place.
    await running.end('SIGTERM');
  });

  it('are exchanged one after another on SIGHUP with not one failed request', async () => {
    const running = await start();
    const before = workersOf(running);
    const users = load(running);
    await until(() => users.answered() > 50);
    running.child.kill('SIGHUP');
    await running.line((line) => line.includes('all workers were exchanged'));
    const during = users.answered();
    await until(() => users.answered() > during + 50);
    await users.end();
    expect(users.faults).to.deep.equal([]);
    const after = workersOf(running);
    expect(after).to.have.length(WORKERS);
    expect(after.filter((pid) => before.includes(pid))).to.deep.equal([]);
  });

  it('stay when new ones cannot start', async () => {
    const running = await start();
    const before = workersOf(running);
    writeFileSync(join(cwd, 'tenant.yaml'), 'clients: {');
    running.child.kill('SIGHUP');
    await running.line((line) => line.includes('the workers are not exchanged'));
    expect(workersOf(running)).to.deep.equal(before);
    expect((await createAgent(running).get('/readyz')).status).to.equal(200);
  });
});
