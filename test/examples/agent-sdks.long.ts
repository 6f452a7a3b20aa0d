// The hosted service's libraries for agents, and its MCP server, unmodified: `npm run test:long`. They get the token of an
// account that the user has connected, ask the user for approval, and manage a tenant.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp } from 'node:fs/promises';
import http from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import { changeRoleAsOperator } from '../../src/features/console/administrators/console-administrator-members.ts';
import { storeConnectedAccount } from '../../src/users/users-connected-accounts.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { launchBrowser } from '../support/browser.ts';
import { addAdministrators, addressOf, PASSWORD } from '../support/console.ts';
import { follow, submitLogin, tenant, token, USER } from '../support/flows.ts';
import { freePort } from '../support/free-port.ts';
import { messagesTo } from '../support/inbox.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { every, until } from '../support/wait-until.ts';
import { isThere, type Program, run } from './example.ts';

const SOURCES = fileURLToPath(new URL('agent-sdks', import.meta.url));
const FOLDER = fileURLToPath(new URL('../../node_modules/.cache/agent-sdks', import.meta.url));
const PYTHON = '.venv/bin/python';

const VAULT = 'urn:auth0:params:oauth:grant-type:token-exchange:federated-connection-access-token';
const CIBA = 'urn:openid:params:grant-type:ciba';
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
/** What the MCP server manages. */
const MANAGES = ['clients', 'resource_servers', 'client_grants', 'actions', 'forms']
  .flatMap((noun) => ['read', 'create', 'update', 'delete'].map((verb) => `${verb}:${noun}`))
  .concat('read:logs', 'read:client_keys');
const API = 'https://orders.example.test/';

const OF_NODE = {
  '@auth0/ai': 'ai.cjs',
  '@auth0/ai-vercel': 'vercel.cjs',
  '@auth0/ai-langchain': 'langchain.cjs',
};
const OF_PYTHON = {
  'auth0-ai': 'ai.py',
  'auth0-ai-langchain': 'langchain_tools.py',
  'auth0-ai-llamaindex': 'llamaindex_tools.py',
};

describe('the libraries of the hosted service for agents', () => {
  let provider: OpenIdProvider;
  let server: TestServer;
  let program: Program | undefined;
  let userId: string;
  before(async () => {
    await installed();
    provider = await startOpenIdProvider(await signingKey('k1'));
    server = await startServer({ tenant: ownTenant(provider.url) });
    userId = (await server.users.withEmail(USER.email))[0]?.id ?? '';
    const [connection] = await server.store.collection('connections').findBy('name', 'drive');
    await storeConnectedAccount(
      { store: server.store, wallClock: Date.now },
      userId,
      connection as never, // the stored record is what the function takes
      {
        upstreamId: 'ada',
        requestedScopes: ['files.read'],
        grant: {
          access_token: 'the-expired-one',
          refresh_token: 'refresh-r',
          scope: 'files.read',
          expires_at: 1,
        },
      },
    );
    provider.answer = { scope: 'files.read', id_token: undefined };
  });
  afterEach(() => program?.stop());
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  const started = async (command: string[], more: Record<string, string> = {}) => {
    program = run(FOLDER, command, {
      AUTH0_DOMAIN: new URL(server.issuer).host,
      AUTH0_CLIENT_ID: 'agent',
      AUTH0_CLIENT_SECRET: 'agent-secret',
      NODE_EXTRA_CA_CERTS: server.caFile,
      SSL_CERT_FILE: server.caFile,
      REQUESTS_CA_BUNDLE: server.caFile,
      HOME: await mkdtemp(join(SCRATCH, 'agent-sdk-')),
      PYTHONUNBUFFERED: '1',
      ...more,
    });
    return program;
  };

  /** The user opens the link of the mail, logs in and answers. */
  const answer = async (link: string, decision: string) => {
    const agent = createAgent(server);
    const page = await submitLogin(agent, server, await follow(agent, await agent.get(link), server.url));
    const { action, fields } = readForm(page, 'ticket');
    await agent.request(action, { form: { ...fields, decision } });
  };
  const links = async () => (await messagesTo(server, USER.email)).map(({ link = '' }) => link);

  const works = (name: string, command: string[]) => {
    for (const [decision, prints] of [
      ['accept', /approval: .*orders:write/],
      ['deny', /approval: [\s\S]*(ACCESS_DENIED|AccessDenied)/],
    ] as const)
      it(`${name} has the token of a connected account, and asks the user, who answers ${decision}`, async () => {
        const issued = async (more: object) => {
          const answer = await token(createAgent(server), {
            ...{ client_id: 'agent', client_secret: 'agent-secret', grant_type: 'password' },
            ...{ username: USER.email, password: USER.password, ...more },
          });
          expect(answer.status, answer.text).to.equal(200);
          return answer.json();
        };
        const before = (await links()).length;
        const running = await started(command, {
          CONNECTION: 'drive',
          SCOPE: 'files.read',
          REFRESH_TOKEN: (await issued({ scope: 'openid offline_access' })).refresh_token,
          ACCESS_TOKEN: (await issued({ audience: API, scope: 'orders:write' })).access_token,
          API_CLIENT_ID: 'orders',
          API_CLIENT_SECRET: 'orders-secret',
          USER_ID: userId,
          AUDIENCE: API,
        });
        await until(async () => running.hasEnded() || (await links()).length > before, every(200));
        const [link] = await links();
        if (!running.hasEnded() && link !== undefined) await answer(link, decision);
        expect(await running.ended, running.output()).to.equal(0);
        expect(running.output(), running.output()).to.match(/vault: renewed-\d+/);
        expect(running.output(), running.output()).to.match(/api: renewed-\d+/);
        expect(running.output()).to.match(/more: .*TOKEN_VAULT|more: .*FEDERATED_CONNECTION/);
        expect(running.output(), running.output()).to.match(prints);
      });
  };

  for (const [name, file] of Object.entries(OF_NODE)) works(name, ['node', file]);

  describe('in Python', () => {
    before(async function () {
      if (!isThere(['python3', '-m', 'venv', '--help'])) this.skip();
      await promisify(execFile)('python3', ['-m', 'venv', '.venv'], { cwd: FOLDER });
      await promisify(execFile)(PYTHON, ['-m', 'pip', 'install', '--quiet', '-r', 'requirements.txt'], {
        cwd: FOLDER,
      });
    });

    for (const [name, file] of Object.entries(OF_PYTHON)) works(name, [PYTHON, file]);
  });
});

describe('the MCP server of the hosted service', () => {
  const hasKeychain = () =>
    isThere(['sh', '-c', 'command -v dbus-run-session && command -v gnome-keyring-daemon']);
  const unlockedThen = (command: string) =>
    `echo | gnome-keyring-daemon --unlock --components=secrets > /dev/null && ${command}`;
  let server: TestServer | undefined;
  let program: Program | undefined;
  before(async function () {
    await installed();
    // It keeps what it knows in the desktop's keychain, whose library it loads in any case.
    if (!isThere(['node', '-e', `require('${FOLDER}/node_modules/@github/keytar')`])) this.skip();
  });
  afterEach(async () => {
    await program?.stop();
    await server?.stop();
    server = undefined;
  });

  const started = async (command: string[], more: Record<string, string>) => {
    program = run(FOLDER, command, {
      HOME: await mkdtemp(join(SCRATCH, 'agent-sdk-')),
      AUTH0_MCP_ANALYTICS: 'false',
      ...more,
    });
    return program;
  };
  /** It takes a domain without a dot for the name of a tenant of the hosted service. */
  const startDotted = async () => {
    const port = await freePort();
    const BASE_URL = `https://127.0.0.1:${port}`;
    return startServer({ tenant: ownTenant(), env: { PORT: String(port), BASE_URL } });
  };
  const managed =
    /auth0_create_application: [\s\S]*auth0_deploy_action: [\s\S]*auth0_list_logs: [\s\S]*auth0_list_forms: /;

  it('manages a tenant with a token from its environment', async () => {
    server = await startDotted();
    const answered = await token(createAgent(server), {
      ...{ client_id: 'manager', client_secret: 'manager-secret' },
      ...{ grant_type: 'client_credentials', audience: `${server.issuer}api/v2/` },
    });
    const running = await started(['node', 'manage.mjs'], {
      AUTH0_DOMAIN: new URL(server.issuer).host,
      AUTH0_TOKEN: answered.json().access_token,
      NODE_EXTRA_CA_CERTS: server.caFile,
    });
    expect(await running.ended, running.output()).to.equal(0);
    expect(running.output()).not.to.contain('ERROR');
    expect(running.output()).to.match(managed);
  });

  it('logs in with the credentials of an application, keeps the token in the keychain, manages the tenant, and logs out', async function () {
    if (!hasKeychain()) this.skip();
    server = await startDotted();
    const running = await started(['dbus-run-session', '--', 'sh', '-c', unlockedThen('node keychain.mjs')], {
      AUTH0_DOMAIN: new URL(server.issuer).host,
      AUTH0_CLIENT_ID: 'manager',
      AUTH0_CLIENT_SECRET: 'manager-secret',
      NODE_EXTRA_CA_CERTS: server.caFile,
    });
    expect(await running.ended, running.output()).to.equal(0);
    const output = running.output();
    expect(output).to.match(/init ended with 0: [\s\S]*Successfully authenticated to 127\.0\.0\.1/);
    expect(output).to.match(/session ended with 0: [\s\S]*Active authentication session/);
    expect(output).to.match(managed).and.not.to.contain('ERROR');
    expect(output).to.match(/logout ended with 0: [\s\S]*No active authentication session found/);
  });

  it('logs an administrator in by the device flow, manages the tenant within their role, and logs out', async function () {
    if (!hasKeychain()) this.skip();
    // Its `dist/auth/device-auth-flow.js` has the name of the hosted service's own tenant, client and audience in it.
    const name = 'auth0.auth0.com';
    const port = await freePort();
    server = await startServer({
      tenant: ownTenant(),
      env: { PORT: String(port), BASE_URL: `https://${name}` },
    });
    await addAdministrators(server);
    const { proxyUrl, asked, closeProxy } = await leadingTo(name, port);
    const { administrators, store } = server;
    const next = http.createServer(async (_request, response) => {
      const [editor] = await administrators.withEmail(addressOf('editor'));
      await changeRoleAsOperator({ store }, editor?.id ?? '', 'viewer');
      response.end();
    });
    await once(next.listen(0, '127.0.0.1'), 'listening');
    const browser = await launchBrowser(server.ca);
    try {
      const running = await started(['dbus-run-session', '--', 'sh', '-c', unlockedThen('node device.mjs')], {
        NODE_USE_ENV_PROXY: '1',
        HTTPS_PROXY: proxyUrl,
        NODE_EXTRA_CA_CERTS: server.caFile,
        NEXT: `http://127.0.0.1:${(next.address() as AddressInfo).port}`,
      });
      const codeIn = () => /device code is: \W*([A-Z]{4}-[A-Z]{4})/.exec(plain(running.output()))?.[1];
      await until(async () => running.hasEnded() || codeIn() !== undefined, every(200));
      const userCode = codeIn() ?? '';
      expect(userCode, running.output()).to.match(/^[A-Z]{4}-[A-Z]{4}$/);
      const context = await browser.newContext({ proxy: { server: proxyUrl } });
      const page = await context.newPage();
      await page.goto(`https://${name}/activate?user_code=${userCode}`);
      await page.locator('input[name="username"]').fill(addressOf('editor'));
      await page.locator('input[name="password"]').fill(PASSWORD);
      await page.locator('form button[type="submit"]').first().click();
      await page.waitForURL((url) => url.pathname === '/console/device');
      expect(await page.locator('.device-code').textContent()).to.contain(userCode);
      expect(await page.locator('main').textContent())
        .to.contain('create:clients')
        .and.to.contain('MCP server');
      await page.locator('button[value="approve"]').click();
      await page.waitForURL((url) => url.pathname === '/console/agents/programs');
      expect(await running.ended, running.output()).to.equal(0);
      const [before = '', after = ''] = plain(running.output()).split('AFTER');
      expect(before)
        .to.match(/init ended with 0/)
        .and.to.match(/Active authentication session[\s\S]*auth0\.auth0\.com/);
      expect(before).to.match(managed).and.not.to.contain('ERROR');
      expect(after).to.match(/auth0_create_application: ERROR/);
      expect(after)
        .to.match(/auth0_list_applications: (?!ERROR)/)
        .and.to.match(/auth0_list_logs: (?!ERROR)/);
      expect(after).to.match(/logout ended with 0[\s\S]*No active authentication session found/);
      expect([...new Set(asked)]).to.deep.equal([`${name}:443`]);
      await page.goto(`https://${name}/console/agents/programs`);
      await page.locator('main table form button').click();
      await page.waitForURL((url) => url.searchParams.get('said')?.endsWith('ended') === true);
    } finally {
      next.close();
      await browser.close();
      closeProxy();
    }
  });
});

/** Returns what a terminal shows, without its colours. */
const plain = (text: string) => stripVTControlCharacters(text);

/** Starts a proxy that leads a name to a port of this machine, and nothing anywhere else. */
async function leadingTo(name: string, port: number) {
  const asked: string[] = [];
  const proxy = http.createServer().on('connect', (request, socket: Socket) => {
    asked.push(request.url ?? '');
    if (request.url !== `${name}:443`) return socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    const upstream = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
    for (const one of [socket, upstream]) one.on('error', () => socket.destroy());
    socket.pipe(upstream).pipe(socket);
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  return {
    asked,
    proxyUrl: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    closeProxy: () => {
      proxy.close();
      proxy.closeAllConnections();
    },
  };
}

/** Installs the libraries for Node.js. */
async function installed(): Promise<void> {
  await cp(SOURCES, FOLDER, { recursive: true });
  const flags = ['--no-audit', '--no-fund', '--prefer-offline'];
  await promisify(execFile)('npm', ['install', ...flags], { cwd: FOLDER });
}

/** @param provider where accounts to connect are */
function ownTenant(provider = 'https://provider.example.test') {
  const agent = {
    client_id: 'agent',
    name: 'Agent',
    client_secret: 'agent-secret',
    app_type: 'regular_web',
    grant_types: ['password', 'refresh_token', VAULT, CIBA, DEVICE],
    async_approval_notification_channels: ['email'],
  };
  const manager = {
    client_id: 'manager',
    name: 'Manager',
    client_secret: 'manager-secret',
    app_type: 'non_interactive',
    grant_types: ['client_credentials'],
  };
  const orders = {
    client_id: 'orders',
    name: 'Orders',
    client_secret: 'orders-secret',
    app_type: 'resource_server',
    resource_server_identifier: API,
    grant_types: [VAULT],
  };
  const drive = {
    name: 'drive',
    strategy: 'oidc',
    enabled_clients: ['agent', 'orders'],
    connected_accounts: { active: true },
    options: {
      type: 'back_channel',
      client_id: 'gatehouse',
      client_secret: 'upstream-secret',
      discovery_url: `${provider}/.well-known/openid-configuration`,
    },
  };
  // The application that the hosted service has for its MCP server.
  const builtIn = {
    client_id: '2lhnuYMRQ8IpR5hNsOhDFQqrGQUQMRm5',
    name: 'MCP server',
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: [DEVICE],
  };
  return {
    ...tenant,
    clients: [...tenant.clients, agent, manager, orders, builtIn],
    databases: tenant.databases.map((one) =>
      one.name === 'users' ? { ...one, enabled_clients: [...(one.enabled_clients ?? []), 'agent'] } : one,
    ),
    connections: [drive],
    clientGrants: [
      ...tenant.clientGrants,
      { client_id: 'manager', audience: 'https://any/api/v2/', scope: MANAGES, subject_type: 'client' },
      { client_id: builtIn.client_id, audience: 'https://any/api/v2/', scope: MANAGES, subject_type: 'user' },
    ],
    resourceServers: [
      ...tenant.resourceServers,
      { name: 'Orders', identifier: API, scopes: [{ value: 'orders:write' }] },
    ],
  };
}
