// Clients of MCP that others wrote, unmodified, with the example mcp-server: `npm run test:long`. Each registers itself,
// has the user log in, calls a tool, and asks for more scopes where it can.
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { freePort } from '../support/free-port.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { every, until } from '../support/wait-until.ts';
import { type ClientDocuments, serveDocuments } from './client-documents.ts';
import { type Example, isThere, logInAs, type Program, run, startExample } from './example.ts';
import { install, WORKSPACE } from './workspace.ts';

const SOURCES = fileURLToPath(new URL('mcp-clients', import.meta.url));
const FOLDER = fileURLToPath(new URL('../../node_modules/.cache/mcp-clients', import.meta.url));
const PYTHON = '.venv/bin/python';

/** How long an access token is valid, in seconds: a client waits for its end, and another takes it as expired ten before. */
const LIFETIME = 20;

interface Run {
  url: string;
  /** The address of the document of the client, if it is to be known by one. */
  document: string | undefined;
  issuer: string;
  callbackPort: string;
}

interface Case {
  command: (run: Run) => string[];
  /** What it prints. */
  prints: RegExp;
  /** How often the user is asked for consent. */
  logins: number;
  /** Whether it knows no documents of clients. */
  onlyRegisters?: true;
}

const ADDED = /list_notes: [\s\S]*add_note: The note is added\./;

const OF_NODE: Record<string, Case> = {
  'the official SDK, first line': { command: () => ['node', 'sdk-1.js'], prints: ADDED, logins: 2 },
  // It asks for no more scopes by itself.
  'the AI SDK': {
    command: () => ['node', 'ai-sdk.js'],
    prints: /list_notes: /,
    logins: 1,
    onlyRegisters: true,
  },
  'mcp-remote': { command: () => ['node', 'mcp-remote.js'], prints: ADDED, logins: 2 },
  'MCP Inspector': {
    command: ({ url, document, callbackPort }) => [
      ...['npx', 'mcp-inspector', '--cli', url, '--transport', 'http'],
      ...['--callback-url', `http://127.0.0.1:${callbackPort}/oauth/callback`],
      ...(document === undefined ? [] : ['--client-metadata-url', document]),
      ...['--method', 'tools/call', '--tool-name', 'add_note', '--tool-arg', 'text=A note'],
    ],
    prints: /The note is added\./,
    logins: 1,
  },
};

const OF_PYTHON: Record<string, Case> = {
  'the official SDK for Python': {
    command: () => [PYTHON, 'sdk.py'],
    prints:
      /list_notes: [\s\S]*refreshed: True[\s\S]*add_note: The note is added\.\nscope: notes:read notes:write offline_access/,
    logins: 2,
  },
  FastMCP: { command: () => [PYTHON, 'fastmcp_client.py'], prints: ADDED, logins: 2 },
};

const OF_GO: Record<string, Case> = {
  'the official SDK for Go': { command: () => ['go/client'], prints: ADDED, logins: 2 },
};

describe('clients of MCP', () => {
  let example: Example;
  let browser: TestBrowser;
  let program: Program | undefined;
  let documents: ClientDocuments;
  /** Where an MCP server in Python is. */
  let pythonUrl: string;
  before(async () => {
    install();
    await cp(SOURCES, FOLDER, { recursive: true });
    await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline'], {
      cwd: FOLDER,
    });
    pythonUrl = `http://localhost:${await freePort()}/mcp`;
    example = await startExample('mcp-server', {
      beside: ['agent'],
      adapt: ({ resourceServers, clientGrants }) => {
        const [notes] = resourceServers;
        const [grant] = clientGrants;
        if (notes === undefined || grant === undefined) throw new Error('the example has another tenant');
        notes.token_lifetime = LIFETIME;
        resourceServers.push({ ...notes, identifier: pythonUrl, token_lifetime: 300 });
        clientGrants.push({ ...grant, audience: pythonUrl });
      },
    });
    documents = await serveDocuments(example.server);
    browser = await launchBrowser(example.server.ca);
  });
  afterEach(() => program?.stop());
  after(async () => {
    await browser?.close();
    documents?.stop();
    await example?.stop();
  });

  const started = async (command: (run: Run) => string[], hasDocument = false) => {
    const callbackPort = String(await freePort());
    const document = hasDocument
      ? documents.publish(
          'Documented client',
          ...['localhost', '127.0.0.1'].flatMap((host) =>
            ['/callback', '/oauth/callback'].map((path) => `http://${host}:${callbackPort}${path}`),
          ),
        )
      : undefined;
    const url = `${example.origin}/mcp`;
    const { caFile } = example.server;
    program = run(FOLDER, command({ url, document, issuer: example.server.issuer, callbackPort }), {
      MCP_URL: url,
      CALLBACK_PORT: callbackPort,
      ...(document !== undefined && { CLIENT_METADATA_URL: document }),
      NODE_EXTRA_CA_CERTS: caFile,
      SSL_CERT_FILE: caFile,
      // What they keep for the next time is in a directory of this run, and the browser is the test's.
      HOME: await mkdtemp(join(SCRATCH, 'mcp-client-')),
      BROWSER: 'true',
      MCP_AUTO_OPEN_ENABLED: 'true',
      // So that no address is printed in pieces.
      COLUMNS: '2000',
      PYTHONUNBUFFERED: '1',
    });
    return program;
  };

  /** Logs in and agrees, wherever a program sends its user, until it ends. @returns the addresses */
  const served = async (running: Program) => {
    const context = await browser.newContext();
    const address = () =>
      [...running.output().matchAll(/https:\/\/localhost:\d+\/authorize\?\S+/g)]
        .map(([one]) => one)
        .find((one) => !seen.has(one));
    const seen = new Set<string>();
    for (;;) {
      await until(() => running.hasEnded() || address() !== undefined, every(50));
      const next = address();
      if (next === undefined) return [...seen];
      seen.add(next);
      const page = await context.newPage();
      await page.goto(next);
      if (seen.size === 1) await logInAs(page);
      await page.getByRole('button', { name: 'Allow', exact: true }).click();
      await page.waitForURL((url) => url.origin !== example.server.url);
    }
  };

  /** Has the example agent use an MCP server. @returns its access token */
  const tokenOfAgent = async (url: string, prints: string) => {
    const folder = join(WORKSPACE, 'agent');
    const kept = join(folder, 'agent.json');
    await rm(kept, { force: true });
    program = run(folder, ['node', '--env-file=.env', 'agent.js'], {
      MCP_URL: url,
      NODE_EXTRA_CA_CERTS: example.server.caFile,
    });
    await served(program);
    expect(program.output()).to.contain(prints);
    return JSON.parse(await readFile(kept, 'utf8')).tokens.access_token;
  };
  const statusWith = async (url: string, token: string) => {
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 'test', version: '1.0.0' },
        },
      }),
    });
    await answer.body?.cancel();
    return answer.status;
  };

  const works = (name: string, { command, prints, logins, onlyRegisters }: Case) => {
    for (const hasDocument of onlyRegisters ? [false] : [false, true])
      it(`${name} is known by ${hasDocument ? 'its document' : 'its registration'}, logs its user in and calls a tool`, async () => {
        const running = await started(command, hasDocument);
        const addresses = await served(running);
        expect(addresses, running.output()).to.have.lengthOf(logins);
        for (const address of addresses)
          expect(new URL(address).searchParams.get('client_id')).to.match(
            hasDocument ? /^https:.*\.json$/ : /^tpc_/,
          );
        expect(running.output()).to.match(prints);
        expect(await running.ended).to.equal(0);
      });
  };

  for (const [name, one] of Object.entries(OF_NODE)) works(name, one);

  it('the conformance tests of MCP for authorization servers have no failure', async () => {
    const callback = await freePort();
    const { client_id } = (
      await createAgent(example.server).request('/oidc/register', {
        json: {
          redirect_uris: [`http://127.0.0.1:${callback}/callback`],
          token_endpoint_auth_method: 'none',
        },
      })
    ).json();
    const running = await started(({ url, issuer }) => [
      ...['npx', 'conformance', 'authorization', '--url', issuer, '--client-id', client_id],
      ...['--resource', url, '--port', String(callback)],
    ]);
    await served(running);
    // Three checks of two scenarios.
    expect(running.output()).to.match(/Total: 3 passed, 0 failed/);
    expect(await running.ended).to.equal(0);
  });

  describe('in Go', () => {
    before(async function () {
      if (!isThere(['go', 'version'])) this.skip();
      await promisify(execFile)('go', ['build', '-o', 'client', '.'], { cwd: join(FOLDER, 'go') });
    });

    for (const [name, one] of Object.entries(OF_GO)) works(name, one);
  });

  describe('in Python', () => {
    before(async function () {
      if (!isThere(['python3', '-m', 'venv', '--help'])) this.skip();
      await promisify(execFile)('python3', ['-m', 'venv', '.venv'], { cwd: FOLDER });
      await promisify(execFile)(PYTHON, ['-m', 'pip', 'install', '--quiet', '-r', 'requirements.txt'], {
        cwd: FOLDER,
      });
    });

    for (const [name, one] of Object.entries(OF_PYTHON)) works(name, one);

    it('an MCP server in Python accepts the tokens that are for it, and no others', async () => {
      const server = run(FOLDER, [PYTHON, 'server.py'], {
        MCP_PORT: new URL(pythonUrl).port,
        AUTH0_DOMAIN: new URL(example.server.issuer).host,
        SSL_CERT_FILE: example.server.caFile,
      });
      try {
        const answers = () =>
          fetch(pythonUrl).then(
            () => true,
            () => server.hasEnded(),
          );
        await until(answers, every(100));
        const ofPython = await tokenOfAgent(pythonUrl, 'There are no notes in Python.');
        const ofExample = await tokenOfAgent(`${example.origin}/mcp`, 'The server has list_notes, add_note.');
        expect(await statusWith(pythonUrl, ofPython), server.output()).to.equal(200);
        expect(await statusWith(pythonUrl, ofExample)).to.equal(401);
        expect(await statusWith(pythonUrl, 'x')).to.equal(401);
        expect(await statusWith(`${example.origin}/mcp`, ofPython)).to.equal(401);
      } finally {
        await server.stop();
      }
    });
  });
});
