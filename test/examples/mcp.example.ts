// The examples mcp-server and agent: an agent that nobody registered logs its user in, and gets what the user allows.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { BrowserContext } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { payload } from '../support/flows.ts';
import { freePort } from '../support/free-port.ts';
import { every, until } from '../support/wait-until.ts';
import { type ClientDocuments, serveDocuments } from './client-documents.ts';
import { type Example, logInAs, type Program, run, startExample } from './example.ts';
import { WORKSPACE } from './workspace.ts';

const AGENT = join(WORKSPACE, 'agent');

/** How long an access token of this run is valid, in seconds: so short that the test can wait for its end. */
const LIFETIME = 10;

describe('the examples mcp-server and agent', () => {
  let example: Example;
  let browser: TestBrowser;
  let context: BrowserContext;
  let documents: ClientDocuments;
  const programs: Program[] = [];
  before(async () => {
    example = await startExample('mcp-server', {
      beside: ['agent'],
      adapt: ({ resourceServers: [notes] }) => {
        if (notes) notes.token_lifetime = LIFETIME;
      },
    });
    documents = await serveDocuments(example.server);
    browser = await launchBrowser(example.server.ca);
  });
  beforeEach(async () => {
    context = await browser.newContext();
    await writeFile(join(AGENT, 'agent.json'), '{}');
  });
  afterEach(async () => {
    for (const program of programs.splice(0)) await program.stop();
  });
  after(async () => {
    await browser?.close();
    documents?.stop();
    await example?.stop();
  });

  const start = (args: string[], env?: Record<string, string>) => {
    const program = run(AGENT, ['npm', 'start', '--', ...args], env);
    programs.push(program);
    return program;
  };
  const outputAtEnd = async (program: Program) => {
    await program.ended;
    return program.output();
  };
  /** Returns the address that the agent prints for its user. */
  const addressOf = async (program: Program) => {
    const address = () => /^Open (\S+)$/m.exec(program.output())?.[1];
    await until(() => address() !== undefined || program.hasEnded(), every(50));
    return address() ?? expect.fail(program.output());
  };
  const opened = async (program: Program) => {
    const page = await context.newPage();
    await page.goto(await addressOf(program));
    return page;
  };
  const kept = async () => JSON.parse(await readFile(join(AGENT, 'agent.json'), 'utf8'));
  /** The first login of an agent, with consent. */
  const logIn = async (program: Program, agent = 'Example agent') => {
    const page = await opened(program);
    await logInAs(page);
    await page.getByText(`${agent} asks for access`).waitFor();
    await page.getByText('Read your notes').waitFor();
    await page.getByRole('button', { name: 'Allow', exact: true }).click();
    await page.getByText('You can close this page.').waitFor();
  };
  /** Calls a tool without the SDK. */
  const call = (origin: string, token: string, name = 'list_notes') =>
    fetch(`${origin}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: { text: 'A note' } },
      }),
    });
  const expired = (token: string) => until(() => Date.now() / 1000 > payload(token).exp, every(200));
  const firstAudience = (token: string) => [payload(token).aud].flat()[0];

  /** The ways in which an agent becomes known, each with its name, and what it is told. */
  const ways: Record<string, () => { name: string; env: Record<string, string>; clientId: RegExp }> = {
    'registers itself': () => ({ name: 'Example agent', env: {}, clientId: /^tpc_/ }),
    'is described by a document': () => {
      const url = documents.publish('Documented agent', `${example.apiOrigin}/callback`);
      return { name: 'Documented agent', env: { CLIENT_METADATA_URL: url }, clientId: /^https:.*\.json$/ };
    },
    'was registered by hand': () => ({
      name: 'Agent of a partner',
      env: { CLIENT_ID: 'partner-agent' },
      clientId: /^partner-agent$/,
    }),
  };
  for (const [way, described] of Object.entries(ways))
    it(`an agent that ${way} logs in, refreshes, asks for more, and is refused when the user has ended it`, async () => {
      const { name, env, clientId } = described();
      const first = start([], env);
      await logIn(first, name);
      expect(await outputAtEnd(first)).to.contain('The server has list_notes, add_note.');
      const { access_token } = (await kept()).tokens;
      const { azp, scope } = payload(access_token);
      expect(azp).to.match(clientId);
      expect(firstAudience(access_token)).to.equal(`${example.origin}/mcp`);
      expect(scope).to.equal('notes:read offline_access');

      // The access token expires; the next call refreshes it, without the user.
      await expired(access_token);
      expect((await call(example.origin, access_token)).status).to.equal(401);
      const second = await outputAtEnd(start([], env));
      expect(second).to.contain('The server has list_notes').and.not.to.contain('Open ');
      expect((await kept()).tokens.access_token).not.to.equal(access_token);

      // Another tool needs more: the user is asked again, and only for consent.
      const third = start(['add_note', `A note of ${name}`], env);
      const page = await opened(third);
      await page.getByText('Write notes for you').waitFor();
      await page.getByRole('button', { name: 'Allow', exact: true }).click();
      expect(await outputAtEnd(third)).to.contain('The note is added.');
      expect(payload((await kept()).tokens.access_token).scope.split(' ')).to.have.members([
        'notes:read',
        'notes:write',
        'offline_access',
      ]);
      expect(await outputAtEnd(start([], env))).to.contain(`A note of ${name}`);

      // The user ends it; a token that was issued lives on for its few seconds.
      const account = await context.newPage();
      await account.goto(`${example.server.url}/account/applications?client_id=notes`);
      await account.getByText(name).first().waitFor();
      const itsForm = account.locator(`form:has(input[value="${azp}"])`);
      await itsForm.getByRole('button').click();
      await itsForm.waitFor({ state: 'detached' });
      await expired((await kept()).tokens.access_token);
      const refused = start([], env);
      const again = await opened(refused);
      // It has to ask again.
      await again.getByText('Read your notes').waitFor();
      await again.getByRole('button', { name: 'Decline', exact: true }).click();
      expect(await outputAtEnd(refused)).to.contain('It did not work');
      expect(await refused.ended).to.equal(1);
    });

  it('the MCP server refuses the token of another MCP server, one without the scope, and none, and says what it needs', async () => {
    // The same program for another audience, which trusts the same Gatehouse.
    const port = String(await freePort());
    const other = run(example.folder, ['npm', 'start'], { MCP_PORT: port });
    programs.push(other);
    const otherOrigin = `http://localhost:${port}`;
    const asked = async (origin: string, token: string, tool?: string) => {
      const answer = await call(origin, token, tool);
      await answer.body?.cancel();
      return [answer.status, answer.headers.get('www-authenticate') ?? ''] as const;
    };
    await until(
      () =>
        fetch(otherOrigin).then(
          () => true,
          () => other.hasEnded(),
        ),
      every(100),
    );
    const agent = start([]);
    await logIn(agent);
    await agent.ended;
    const { access_token } = (await kept()).tokens;
    expect((await asked(example.origin, access_token))[0]).to.equal(200);

    const [status, challenge] = await asked(otherOrigin, access_token);
    expect(status).to.equal(401);
    expect(challenge)
      .to.contain('error="invalid_token"')
      .and.contain(`resource_metadata="${otherOrigin}/.well-known/oauth-protected-resource/mcp"`);
    const [less, wanted] = await asked(example.origin, access_token, 'add_note');
    expect(less).to.equal(403);
    expect(wanted)
      .to.contain('error="insufficient_scope"')
      .and.contain('scope="notes:read notes:write"')
      .and.contain('resource_metadata=');
    for (const token of ['', 'x', `${access_token.slice(0, -8)}AAAAAAAA`])
      expect((await asked(example.origin, token))[0], token).to.equal(401);
  });

  it('the agent refuses an answer that another authorization server sent (RFC 9207), and one that it did not ask for', async () => {
    const agent = start([]);
    const address = new URL(await addressOf(agent));
    const { searchParams } = address;
    const answer = (more: Record<string, string>) =>
      fetch(`${searchParams.get('redirect_uri')}?${new URLSearchParams({ code: 'stolen', ...more })}`);
    expect((await answer({ state: 'another', iss: `${address.origin}/` })).status).to.equal(404);
    const state = searchParams.get('state') ?? '';
    expect((await answer({ state, iss: 'https://other.example.test/' })).status).to.equal(200);
    expect(await outputAtEnd(agent)).to.match(/It did not work: .*iss/i);
    expect(await kept()).not.to.have.property('tokens');
  });
});
