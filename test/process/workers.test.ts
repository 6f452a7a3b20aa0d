// Several processes of one server: how they start, stop, are replaced and exchanged.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { readSettings, SettingsFault } from '../../src/settings/index.ts';
import { createAgent } from '../support/agent.ts';
import { builtProgram } from '../support/built.ts';
import { tenant } from '../support/flows.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { environment, runServer, runToEnd, type ServerProcess } from '../support/process.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { every, until as waitUntil } from '../support/wait-until.ts';

const SECRETS_KEY = '0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9';
const WORKERS = 2;

describe('workers', () => {
  let cluster: Cluster;
  const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-workers-'));
  /** The server of most tests, each of which leaves it with the same number of workers. */
  let running: ServerProcess;
  before(async () => {
    cluster = await startCluster();
    running = await start();
  });
  after(async () => {
    await end();
    await cluster.stop();
    rmSync(cwd, { recursive: true, force: true });
  });

  const start = () => {
    writeFileSync(join(cwd, 'tenant.yaml'), stringify({ ...tenant, ...UNLIMITED }));
    const DATABASE_URL = cluster.url();
    const env = {
      TENANT_FILE: 'tenant.yaml',
      DATABASE_URL,
      SECRETS_KEY,
      WORKERS: String(WORKERS),
      LOG_LEVEL: 'debug',
    };
    return runServer({ cwd, env });
  };
  /** Stops a server that no test has stopped. */
  const end = async () => {
    const { exitCode, signalCode } = running.child;
    if (exitCode === null && signalCode === null) await running.end('SIGKILL');
  };
  /** Returns the processes that serve: the children of the server's process. */
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
  const isReady = async () =>
    (
      await createAgent(running)
        .get('/readyz')
        .catch(() => undefined)
    )?.status === 200;
  /** Sends a request on a connection of its own. */
  const askOnce = async (path: string) => {
    const request = https.get(`${running.url}${path}`, { ca: running.ca, agent: false });
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    answer.resume();
    await once(answer, 'end');
  };
  let probes = 0;
  /** Waits until all workers answer. Each logs its requests, and each new connection goes to the next worker. */
  const allServe = async () => {
    const path = `/probe-${++probes}`;
    const answering = () => running.lines.filter((line) => line.includes(`"${path}"`));
    await waitUntil(async () => {
      await askOnce(path).catch(() => undefined);
      return new Set(answering().map((line) => JSON.parse(line).worker)).size === WORKERS;
    }, every(20));
    return workersOf(running);
  };
  /** Waits for a line that has not been logged yet. */
  const said = (part: string) => {
    const before = running.lines.length;
    return running.line((line) => line.includes(part) && running.lines.indexOf(line) >= before);
  };

  /** Requests tokens repeatedly, from some clients with kept-alive connections. @returns a function that ends them. */
  function load({ url, ca }: ServerProcess, clients = 3) {
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
    const pause = every(5);
    const all = Promise.all(
      Array.from({ length: clients }, async () => {
        for (; !isOver; await pause()) await ask();
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

  it('are refused with the embedded store, which is for one process', async () => {
    const { code, stderr } = await runToEnd({ cwd, env: { WORKERS: '2' } });
    expect(code).to.equal(1);
    expect(stderr).to.contain('WORKERS: the embedded store is for one process; several need DATABASE_URL');
    for (const [WORKERS, fault] of [
      ['auto', 'WORKERS: the embedded store is for one process; several need DATABASE_URL'],
      ['some', 'WORKERS: '],
    ] as const) {
      expect(() => readSettings({ WORKERS }))
        .to.throw(SettingsFault)
        .with.property('faults')
        .that.satisfies((faults: string[]) => faults.some((one) => one.startsWith(fault)));
    }
  });

  it('serve at one address, and are announced once', async () => {
    expect(running.lines.filter((line) => line.includes('"msg":"listening"'))).to.have.length(1);
    expect(workersOf(running)).to.have.length(WORKERS);
    expect(await isReady()).to.equal(true);
  });

  it('are exchanged one after another on SIGHUP without a failed request', async () => {
    const before = workersOf(running);
    const users = load(running);
    await until(() => users.answered() > 50);
    const told = said('all workers were exchanged');
    running.child.kill('SIGHUP');
    await told;
    const during = users.answered();
    await until(() => users.answered() > during + 50);
    await users.end();
    expect(users.faults).to.deep.equal([]);
    const after = workersOf(running);
    expect(after).to.have.length(WORKERS);
    expect(after.filter((pid) => before.includes(pid))).to.deep.equal([]);
  });

  it('stay when new ones cannot start', async () => {
    const before = workersOf(running);
    const file = join(cwd, 'tenant.yaml');
    const whole = readFileSync(file);
    writeFileSync(file, 'clients: {');
    const told = said('the workers are not exchanged');
    running.child.kill('SIGHUP');
    await told;
    writeFileSync(file, whole);
    expect(workersOf(running)).to.deep.equal(before);
    expect((await createAgent(running).get('/readyz')).status).to.equal(200);
  });

  it('finish their requests before they end with the process that started them', async () => {
    const pids = workersOf(running);
    const users = load(running);
    await until(() => users.answered() > 50);
    const ended = once(running.child, 'exit');
    running.child.kill('SIGTERM');
    const [code] = await ended;
    await users.end();
    expect(code).to.equal(0);
    expect(pids.filter(isAlive)).to.deep.equal([]);
    // New connections fail; none that was accepted is cut off.
    expect(users.faults.filter((fault) => !fault.startsWith('not connected'))).to.deep.equal([]);
  });

  describe('that are killed', () => {
    before(async () => {
      await end();
      running = await start();
    });

    it('are replaced, and the others go on', async () => {
      const [first = 0, ...others] = workersOf(running);
      const told = said('a worker ended and is replaced');
      process.kill(first, 'SIGKILL');
      await told;
      expect((await createAgent(running).get('/readyz')).status).to.equal(200);
      const after = await allServe();
      expect(after).to.have.length(WORKERS);
      expect(after).to.include.members(others).and.not.include(first);
    });

    it('listen at the announced address again, even when all are killed at once', async () => {
      const pids = workersOf(running);
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      await waitUntil(isReady, every(50));
      expect(workersOf(running)).to.not.include.members(pids);
      await allServe();
    });

    it('leave no connection open that they had not accepted yet', async () => {
      const pids = workersOf(running);
      // Stopped workers are given connections and accept none: as many as there are workers, and more that wait.
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
        const told = said('a worker ended and is replaced');
        for (const pid of pids) process.kill(pid, 'SIGKILL');
        await told;
        await until(() => closed === sockets.length);
      } finally {
        for (const socket of sockets) socket.destroy();
        for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
      }
      await allServe();
    });

    it('finish their requests and end when the process that started them is killed, too', async () => {
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
  });

  it('end when the process that started them is killed while they start', async () => {
    const database = 'starting';
    await cluster.query(`CREATE DATABASE ${database}`);
    writeFileSync(join(cwd, 'tenant.yaml'), stringify(tenant));
    const env = {
      TENANT_FILE: 'tenant.yaml',
      DATABASE_URL: cluster.url(database),
      SECRETS_KEY,
      WORKERS: '2',
    };
    for (const moment of ['began', 'connected']) {
      const options = { cwd, stdio: 'ignore' as const, env: environment({ PORT: '0', ...env }) };
      const child = spawn(process.execPath, [await builtProgram()], options);
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
});
