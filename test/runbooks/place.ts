// A server as in production, on this machine: its own process with the files of the systemd unit, behind a proxy that
// terminates TLS, with a mail server. The steps of a runbook are run as its operator would run them.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { type Agent, createAgent } from '../support/agent.ts';
import { builtProgram } from '../support/built.ts';
import { freePort } from '../support/free-port.ts';
import { environment } from '../support/process.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';
import { fillDataDir } from '../support/template.ts';
import { every, until } from '../support/wait-until.ts';
import { expectAlerts, type Phase, promtool, type Scrape, scrape } from './alerts.ts';
import { patternOf, stepsOf } from './page.ts';

/** The header in which a test says which address a request comes from; the proxy passes it on. */
export const CLIENT_ADDRESS = 'x-client-address';

export interface Place {
  /** The public address. */
  url: string;
  ca: string;
  /** The directory that stands for `/`. */
  root: string;
  mail: TestMailServer;
  agent(): Agent;
  /** Runs the step of the page with this name, and checks that it says what the page shows. @returns the output. */
  step(name: string): Promise<string>;
  /** The log so far. */
  log(): string;
  /** Waits for a line of the log. */
  logged(text: string): Promise<void>;
  ready(): Promise<void>;
  scrape(): Promise<Scrape>;
  /** Returns what is measured while work is done. */
  during(minutes: number, firing: readonly string[], work: () => Promise<unknown>): Promise<Phase>;
  /** Judges the phases by the alerts, where promtool is installed. @returns whether it is. */
  expectAlerts(phases: readonly Phase[]): boolean;
  /** The process, if it runs. */
  child(): ChildProcess | undefined;
  /** Kills the process, as a crash would; nobody starts it again. */
  kill(): Promise<void>;
  /** Starts it, as the machine does after a crash. It may end. */
  start(): void;
  /** Stops it, starts it, and waits until it is ready and its metrics can be read. */
  restart(): Promise<void>;
  /** Runs a command line of the operator. @returns its output. */
  command(line: string): Promise<string>;
  /** Checks that each step of the page was run, so that none is on the page untried. */
  expectAllRun(): void;
  stop(): Promise<void>;
}

interface PlaceOptions {
  /** The name of the page in docs/do/runbooks. */
  page: string;
  tenant: object;
  env?: Record<string, string>;
  /** Variables that stand for what only the operator knows, such as an address; and paths of programs. */
  words?: Record<string, string>;
  /** Programs of the operator's machine, by name: scripts for sh. */
  programs?: Record<string, string>;
}

export async function startPlace({
  page,
  tenant,
  env = {},
  words = {},
  programs = {},
}: PlaceOptions): Promise<Place> {
  const root = mkdtempSync(join(SCRATCH, 'gatehouse-runbook-'));
  const under = (path: string) => join(root, path);
  for (const path of ['etc/gatehouse', 'var/backups', 'bin', 'opt/gatehouse/node_modules/.bin'])
    mkdirSync(under(path), { recursive: true });
  await fillDataDir(under('var/lib/gatehouse'), true);
  const tls = (name: string) => readFileSync(under(`var/lib/gatehouse/tls/${name}`), 'utf8');
  const ca = tls('ca.pem');
  const mail = await startMailServer();
  const proxy = await startProxy({ cert: tls('cert.pem'), key: tls('key.pem') });
  const metricsPort = await freePort();
  proxy.target = await freePort();

  writeFileSync(under('etc/gatehouse/tenant.yaml'), stringify(tenant));
  const settings: Record<string, string> = {
    NODE_ENV: 'production',
    BASE_URL: proxy.url,
    TLS: 'proxy',
    TRUSTED_PROXIES: '127.0.0.1',
    PORT: String(proxy.target),
    DATA_DIR: under('var/lib/gatehouse'),
    TENANT_FILE: under('etc/gatehouse/tenant.yaml'),
    SMTP_URL: mail.url,
    MAIL_FROM: 'login@example.test',
    METRICS_PORT: String(metricsPort),
    ...env,
  };
  const settingsFile = under('etc/gatehouse/environment');
  writeFileSync(
    settingsFile,
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );

  const install = (path: string, script: string) => {
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  };
  install(
    under('opt/gatehouse/node_modules/.bin/gatehouse'),
    `exec '${process.execPath}' '${await builtProgram()}' "$@"`,
  );
  install(under('bin/gatehouse'), `exec '${under('opt/gatehouse/node_modules/.bin/gatehouse')}' "$@"`);

  // systemd: starts and stops the server as the unit says.
  const logFile = under('log');
  writeFileSync(logFile, '');
  let child: ChildProcess | undefined;
  const start = () => {
    if (child !== undefined) return;
    const script = `set -a; . '${settingsFile}'; set +a; exec '${under('opt/gatehouse/node_modules/.bin/gatehouse')}'`;
    const started = spawn('sh', ['-c', script], { cwd: root, env: environment() });
    child = started;
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', (data) => appendFileSync(logFile, data));
    started.once('exit', () => {
      if (child === started) child = undefined;
    });
  };
  const end = async (signal: NodeJS.Signals) => {
    const running = child;
    if (running === undefined) return;
    const ended = once(running, 'exit');
    running.kill(signal);
    await ended;
  };
  const orders: Record<string, () => Promise<void> | void> = {
    start,
    stop: () => end('SIGTERM'),
    restart: async () => {
      await end('SIGTERM');
      start();
    },
    'is-active': () => {
      if (child === undefined) throw new Error('failed');
    },
  };
  const systemd = http.createServer(async (request, response) => {
    try {
      await orders[String(request.url).slice(1)]?.();
      response.end(request.url === '/is-active' ? 'active\n' : '');
    } catch (thrown) {
      response.writeHead(500).end(`${(thrown as Error).message}\n`);
    }
  });
  systemd.listen(0, '127.0.0.1');
  await once(systemd, 'listening');
  const { port } = systemd.address() as AddressInfo;
  install(under('bin/systemctl'), `exec curl -s --fail-with-body -X POST "http://127.0.0.1:${port}/$1"`);
  install(under('bin/journalctl'), `exec cat '${logFile}'`);
  for (const [name, script] of Object.entries(programs)) install(under(`bin/${name}`), script);

  const steps = stepsOf(page);
  const run = new Set<string>();
  // What the page writes, and what stands for it here.
  const places: [string, string][] = [
    ['/etc/gatehouse', under('etc/gatehouse')],
    ['/var/lib/gatehouse', under('var/lib/gatehouse')],
    ['/var/backups', under('var/backups')],
    ['/opt/gatehouse', under('opt/gatehouse')],
    ['https://login.example.com', proxy.url],
    ['127.0.0.1:9464', `127.0.0.1:${metricsPort}`],
    ...Object.entries(words),
  ];

  /** Runs what an operator types, with the server's settings. @returns what is shown, in the words of the page. */
  async function inShell(typed: string): Promise<{ code: number | null; shown: string }> {
    const script = places.reduce((text, [written, here]) => text.replaceAll(written, here), typed);
    const shell = spawn('bash', ['--norc', '-ec', `set -a; . '${settingsFile}'; set +a\n${script}`], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...environment(),
        PATH: `${under('bin')}:${process.env.PATH}`,
        CURL_CA_BUNDLE: under('var/ca.pem'),
      },
    });
    let output = '';
    for (const stream of [shell.stdout, shell.stderr])
      stream.on('data', (data) => {
        output += String(data);
      });
    const [code] = await once(shell, 'close');
    return { code, shown: places.reduce((text, [written, here]) => text.replaceAll(here, written), output) };
  }

  const log = () => readFileSync(logFile, 'utf8');
  const agent = () => createAgent({ url: proxy.url, ca });
  const metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
  const place: Place = {
    url: proxy.url,
    ca,
    root,
    mail,
    agent,
    log,
    child: () => child,
    kill: () => end('SIGKILL'),
    start,
    restart: async () => {
      await orders.restart?.();
      await place.ready();
      // Its metrics have a port of their own, and a connection that was kept leads to the process before.
      await until(async () => (await place.scrape()).values !== undefined, every(100));
    },
    command: async (line) => {
      const { code, shown } = await inShell(line);
      expect(code, `${line} ended with ${code}:\n${shown}`).to.equal(0);
      return shown;
    },
    logged: (text) => until(() => log().includes(text), every(50)),
    ready: () =>
      until(
        async () =>
          (
            await agent()
              .get('/readyz')
              .catch(() => undefined)
          )?.status === 200,
        every(100),
      ),
    scrape: () => scrape(metricsUrl),
    during: async (minutes, firing, work) => {
      const from = await scrape(metricsUrl);
      await work();
      return { minutes, firing, from, to: await scrape(metricsUrl) };
    },
    expectAlerts: (phases) => {
      const program = promtool();
      if (program !== undefined) expectAlerts(program, phases);
      return program !== undefined;
    },
    step: async (name) => {
      const step = steps.get(name);
      if (step === undefined) throw new Error(`the page ${page} has no step ${name}`);
      run.add(name);
      const { code, shown } = await inShell(step.script);
      expect(code, `step ${name} ended with ${code}:\n${shown}`).to.equal(0);
      const isAsShown = step.output === undefined || patternOf(step.output).test(shown.replace(/\n*$/, '\n'));
      expect(isAsShown, `step ${name} does not say what the page shows, but:\n${shown}`).to.equal(true);
      return shown;
    },
    expectAllRun: () => expect([...steps.keys()].filter((name) => !run.has(name))).to.deep.equal([]),
    stop: async () => {
      await end('SIGKILL');
      systemd.close();
      proxy.stop();
      await mail.stop();
      rmSync(root, { recursive: true, force: true });
    },
  };
  writeFileSync(under('var/ca.pem'), ca);
  start();
  await until(async () => {
    if (child === undefined) throw new Error(`the server ended:\n${log()}`);
    return existsSync(logFile) && log().includes('"msg":"listening"');
  }, every(50)).catch(async (thrown) => {
    await place.stop();
    throw thrown;
  });
  return place;
}

/** A proxy that terminates TLS, as in front of a server with `TLS=proxy`. */
async function startProxy(tls: { cert: string; key: string }) {
  const inner = new http.Agent({ keepAlive: true });
  const server = https.createServer(tls, (request, response) => {
    const address = String(request.headers[CLIENT_ADDRESS] ?? request.socket.remoteAddress);
    const headers = { ...request.headers, 'x-forwarded-proto': 'https', 'x-forwarded-for': address };
    const { method, url } = request;
    const passed = http.request(
      { agent: inner, port: proxy.target, host: '127.0.0.1', method, path: url, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      },
    );
    passed.once('error', () => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
    request.pipe(passed);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    /** The port of the server. */
    target: 0,
    stop: () => {
      inner.destroy();
      server.close();
      server.closeAllConnections();
    },
  };
  return proxy;
}
