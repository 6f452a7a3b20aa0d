// Clients of MCP that others wrote, unmodified, with the example mcp-server: `npm run test:long`. Each registers itself,
// has the user log in, calls a tool, and asks for more scopes where it can. The official SDKs go all the way, until the
// user ends the access.
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { payload, token } from '../support/flows.ts';
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

/** The ways in which a client becomes known to the authorization server, each with the identifier that it has then. */
const WAYS = {
  'its registration': /^tpc_/,
  'its document': /^https:.*\.json$/,
  'an entry of the operator': /^partner-agent$/,
};
type Way = keyof typeof WAYS;

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

  const started = async (command: (run: Run) => string[], way: Way = 'its registration') => {
    // That of the operator's entry is at `localhost`, whose port is not the program's to choose (RFC 8252 §7.3).
    const callbackPort =
      way === 'an entry of the operator' ? new URL(example.apiOrigin).port : String(await freePort());
    const document =
      way === 'its document'
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
      ...(way === 'an entry of the operator' && { CLIENT_ID: 'partner-agent' }),
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

  /**
   * Waits until a program sends its user to another address than those seen.
   * @returns the address, which is added to those seen; undefined when the program has ended
   */
  const nextAddress = async (running: Program, seen: Set<string>) => {
    const address = () =>
      [...running.output().matchAll(/https:\/\/localhost:\d+\/authorize\?\S+/g)]
        .map(([one]) => one)
        .find((one) => !seen.has(one));
    await until(() => running.hasEnded() || address() !== undefined, every(50));
    const next = address();
    if (next !== undefined) seen.add(next);
    return next;
  };
  const allow = async (page: Page) => {
    await page.getByRole('button', { name: 'Allow', exact: true }).click();
    await page.waitForURL((url) => url.origin !== example.server.url);
  };

  /** Logs in and agrees, wherever a program sends its user, until it ends. @returns the addresses */
  const served = async (running: Program) => {
    const context = await browser.newContext();
    const seen = new Set<string>();
    for (;;) {
      const next = await nextAddress(running, seen);
      if (next === undefined) return [...seen];
      const page = await context.newPage();
      await page.goto(next);
      if (seen.size === 1) await logInAs(page);
      await allow(page);
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
    const ways: Way[] = onlyRegisters ? ['its registration'] : ['its registration', 'its document'];
    for (const way of ways)
      it(`${name} is known by ${way}, logs its user in and calls a tool`, async () => {
        const running = await started(command, way);
        const addresses = await served(running);
        expect(addresses, running.output()).to.have.lengthOf(logins);
        for (const address of addresses)
          expect(new URL(address).searchParams.get('client_id')).to.match(WAYS[way]);
        expect(running.output()).to.match(prints);
        expect(await running.ended).to.equal(0);
      });
  };

  /** What a program of {@link goesAllTheWay} had after each call of a tool. */
  const tokensIn = (running: Program) =>
    [...running.output().matchAll(/^tokens: (.*)$/gm)].map(([, json = '']) => JSON.parse(json));

  /** All that a client of the specification can meet. The program is told the URL of the MCP server, and finds the rest. */
  const goesAllTheWay = (name: string, command: string[]) => {
    for (const way of Object.keys(WAYS) as Way[])
      it(`${name} is known by ${way}, logs in, refreshes, asks for more, and is refused when the user has ended it`, async () => {
        const running = await started(() => command, way);
        const context = await browser.newContext();
        const seen = new Set<string>();
        const opened = async () => {
          const address = (await nextAddress(running, seen)) ?? expect.fail(running.output());
          const page = await context.newPage();
          await page.goto(address);
          return page;
        };
        const called = async (times: number) => {
          await until(() => running.hasEnded() || tokensIn(running).length >= times, every(50));
          return tokensIn(running)[times - 1] ?? expect.fail(running.output());
        };
        const url = `${example.origin}/mcp`;

        const login = await opened();
        await logInAs(login);
        await login.getByText('Read your notes').waitFor();
        await allow(login);
        const first = await called(1);
        const { aud, azp, scope } = payload(first.access_token);
        expect([aud].flat()[0]).to.equal(url);
        expect(azp).to.match(WAYS[way]);
        expect(scope).to.equal('notes:read offline_access');
        expect(await statusWith(url, first.access_token)).to.equal(200);

        // The access token expires; the next call refreshes it, without the user.
        const second = await called(2);
        expect(second.access_token).not.to.equal(first.access_token);
        expect(await statusWith(url, first.access_token)).to.equal(401);
        expect(payload(second.access_token)).to.include({ azp, scope });

        // Another tool needs more: the user is asked again, and only for consent.
        const more = await opened();
        await more.getByText('Write notes for you').waitFor();
        await allow(more);
        const third = await called(3);
        expect(running.output()).to.contain('add_note: The note is added.');
        expect(payload(third.access_token).scope.split(' ')).to.have.members([
          ...['notes:read', 'notes:write', 'offline_access'],
        ]);
        expect([...seen], running.output()).to.have.lengthOf(2);

        // The user ends it.
        const account = await context.newPage();
        await account.goto(`${example.server.url}/account/applications?client_id=notes`);
        const itsForm = account.locator(`form:has(input[value="${azp}"])`);
        await itsForm.getByRole('button').click();
        await itsForm.waitFor({ state: 'detached' });
        const refused = await token(createAgent(example.server), {
          grant_type: 'refresh_token',
          client_id: azp,
          refresh_token: third.refresh_token,
        });
        expect([refused.status, refused.json().error]).to.deep.equal([400, 'invalid_grant']);
        running.tell('ended');
        // It has to ask again when its access token has expired.
        const again = await opened();
        expect(await statusWith(url, third.access_token)).to.equal(401);
        await again.getByText('Read your notes').waitFor();
        await again.getByRole('button', { name: 'Decline', exact: true }).click();
        expect(await running.ended, running.output()).to.equal(0);
        expect(running.output()).to.match(/^refused: .*access_denied/m);
        expect(tokensIn(running)).to.have.lengthOf(3);
      });
  };

  for (const [name, one] of Object.entries(OF_NODE)) works(name, one);
  goesAllTheWay('the official SDK, first line,', ['node', 'sdk-1.js']);
  goesAllTheWay('the official SDK, second line,', ['node', 'sdk-2.js']);

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
    goesAllTheWay('the official SDK for Python', [PYTHON, 'sdk.py']);

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
