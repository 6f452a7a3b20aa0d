// Actions in the style of published examples, run by logins of @auth0/auth0-spa-js in a real browser and by machine clients.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import { bindActions, managed } from '../actions/support.ts';
import { codeOf } from '../factors/tenant.ts';
import { ADMIN } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { clientsAt, openApplication } from '../support/application.ts';
import { API, tenant as base, payload, token, USER } from '../support/flows.ts';

const NS = 'https://example.test/';
const MANAGEMENT = 'https://tenant.example.test/api/v2/';
const manifest = createRequire(import.meta.url).resolve('@auth0/auth0-spa-js/package.json');

const tenant = (origin: string) => ({
  ...base,
  clients: [
    ...clientsAt(base.clients, origin).map((client) =>
      client.client_id === 'm2m' || client.client_id === 'spa'
        ? { ...client, client_metadata: { tier: 'gold' } }
        : client,
    ),
    { ...ADMIN, name: 'Administration', app_type: 'non_interactive' },
  ],
  clientGrants: [
    ...base.clientGrants,
    { client_id: ADMIN.client_id, audience: MANAGEMENT, allow_all_scopes: true },
  ],
  roles: [{ name: 'keeper' }],
  users: [
    {
      ...USER,
      email_verified: true,
      user_metadata: { favourite_color: 'teal' },
      app_metadata: { plan: 'gold' },
    },
  ],
});

/** Returns the claims of a login of the application, or the error that it got. */
interface Ended {
  idToken: Record<string, unknown>;
  accessToken: Record<string, unknown>;
  error?: string;
  description?: string;
}

interface Example {
  name: string;
  /** Rules of an older tenant, which run before the actions. */
  rules?: string[];
  /** Bodies of functions, or whole actions. */
  code: string[];
  expects(ended: Ended): unknown;
}

const denied = (description: string) => (ended: Ended) =>
  expect(ended).to.deep.include({ error: 'access_denied', description });
const claim = (name: string, value: unknown) => (ended: Ended) =>
  expect(ended.idToken[`${NS}${name}`]).to.deep.equal(value);

const EXAMPLES: Example[] = [
  {
    name: 'puts the roles of the user into both tokens',
    code: [
      `const namespace = '${NS}';
       if (event.authorization) {
         api.idToken.setCustomClaim(namespace + 'roles', event.authorization.roles);
         api.accessToken.setCustomClaim(namespace + 'roles', event.authorization.roles);
       }`,
    ],
    expects: ({ idToken, accessToken }) => {
      expect(idToken[`${NS}roles`]).to.deep.equal(['keeper']);
      expect(accessToken[`${NS}roles`]).to.deep.equal(['keeper']);
    },
  },
  {
    name: 'lets nobody in from an unknown country',
    code: [
      `const allowed = ['DE', 'FR'];
       if (!allowed.includes(event.request.geoip.countryCode)) api.access.deny('Not from your country.');`,
    ],
    expects: denied('Not from your country.'),
  },
  {
    name: 'lets in whose address is of an allowed domain',
    code: [
      `const domain = event.user.email.split('@')[1].toLowerCase();
       if (!event.user.email_verified || !['example.test'].includes(domain)) return api.access.deny('Access denied.');
       api.idToken.setCustomClaim('${NS}domain', domain);`,
    ],
    expects: claim('domain', 'example.test'),
  },
  {
    name: 'lets nobody of another domain in',
    code: [`if (!event.user.email.endsWith('@corp.example')) api.access.deny('Access denied.');`],
    expects: denied('Access denied.'),
  },
  {
    name: 'lets an application in to users with a role only',
    code: [
      `const roles = event.authorization?.roles ?? [];
       if (event.client.name === 'Single page' && !roles.includes('captain')) api.access.deny('Only for captains.');`,
    ],
    expects: denied('Only for captains.'),
  },
  {
    name: 'notes when a user has first logged in',
    code: [
      `if (!event.user.app_metadata.first_login) {
         api.user.setAppMetadata('first_login', event.user.created_at);
         api.idToken.setCustomClaim('${NS}is_new', true);
       }`,
      `api.idToken.setCustomClaim('${NS}first_login', typeof event.user.app_metadata.first_login);`,
    ],
    expects: ({ idToken }) =>
      expect(idToken).to.include({ [`${NS}is_new`]: true, [`${NS}first_login`]: 'string' }),
  },
  {
    name: 'puts metadata of the user into the ID token',
    code: [`api.idToken.setCustomClaim('${NS}color', event.user.user_metadata.favourite_color);`],
    expects: claim('color', 'teal'),
  },
  {
    name: 'tells the connection, the protocol and the application of a login',
    code: [
      `api.idToken.setCustomClaim('${NS}by', [event.connection.name, event.connection.strategy,
         event.transaction.protocol, event.client.metadata.tier]);`,
    ],
    expects: claim('by', ['users', 'auth0', 'oidc-basic-profile', 'gold']),
  },
  {
    name: 'adds a scope for users with a plan',
    code: [`if (event.user.app_metadata.plan === 'gold') api.accessToken.addScope('write:things');`],
    expects: ({ accessToken }) =>
      expect(String(accessToken.scope).split(' ')).to.include.members(['read:things', 'write:things']),
  },
  {
    name: 'takes a scope from users without a role',
    code: [`if (!event.authorization.roles.includes('captain')) api.accessToken.removeScope('read:things');`],
    expects: ({ accessToken }) => expect(String(accessToken.scope)).not.to.contain('read:things'),
  },
  {
    name: 'asks a service for more about the user, with a secret, once for an hour',
    code: [
      `const axios = require('axios');
       let crm = api.cache.get('crm')?.value;
       if (!crm) {
         const { data } = await axios.get(event.secrets.CRM + '?email=' + encodeURIComponent(event.user.email));
         crm = data.customer;
         api.cache.set('crm', crm, { ttl: 3600000 });
       }
       api.idToken.setCustomClaim('${NS}customer', crm);`,
    ],
    expects: claim('customer', `customer of ${USER.email}`),
  },
  {
    name: 'hands on what the first action found out to the second',
    code: [
      `api.transaction.setMetadata('risk', 'low');`,
      `api.idToken.setCustomClaim('${NS}risk', event.transaction.metadata.risk);`,
    ],
    expects: claim('risk', 'low'),
  },
  {
    name: 'ends sessions of an application within the hour',
    code: [
      `api.session.setExpiresAt(Date.now() + 3600000);
       api.session.setMetadata('kind', 'short');
       api.idToken.setCustomClaim('${NS}session', typeof event.session.id);`,
    ],
    expects: claim('session', 'string'),
  },
  {
    name: 'sends the user to a form and goes on with its answer',
    code: [
      `exports.onExecutePostLogin = async (event, api) => {
         if (event.user.app_metadata.terms) return;
         const session_token = api.redirect.encodeToken({
           secret: event.secrets.SHARED,
           expiresInSeconds: 60,
           payload: { continue_uri: 'https://' + event.request.hostname + '/continue' },
         });
         api.redirect.sendUserTo(event.secrets.CRM + '/form', { query: { session_token, back: event.secrets.BACK } });
       };
       exports.onContinuePostLogin = async (event, api) => {
         const answer = api.redirect.validateToken({ secret: event.secrets.SHARED, tokenParameterName: 'answer' });
         api.user.setAppMetadata('terms', answer.terms);
         api.authentication.recordMethod('https://forms.example.test/terms');
         api.idToken.setCustomClaim('${NS}terms', answer.terms);
       };`,
    ],
    expects: claim('terms', 'accepted'),
  },
  {
    name: 'asks for a second factor in one application, which this one is not',
    code: [
      `if (event.client.client_id === 'web') api.multifactor.enable('any', { allowRememberBrowser: false });
       api.idToken.setCustomClaim('${NS}rule', api.rules.wasExecuted('rul_1'));`,
    ],
    expects: claim('rule', false),
  },
];

const RULES: Example[] = [
  {
    name: 'puts roles and the connection of the user into the tokens',
    rules: [
      `function addRoles(user, context, callback) {
         const roles = (context.authorization || {}).roles;
         context.idToken['${NS}roles'] = roles;
         context.accessToken['${NS}roles'] = roles;
         callback(null, user, context);
       }`,
      `function (user, context, callback) {
         context.idToken['${NS}from'] = context.connection + ' of ' + configuration.COMPANY;
         return callback(null, user, context);
       }`,
    ],
    code: [`api.idToken.setCustomClaim('${NS}after', event.user.email);`],
    expects: ({ idToken, accessToken }) => {
      expect(accessToken[`${NS}roles`]).to.deep.equal(['keeper']);
      expect(idToken).to.deep.include({
        [`${NS}roles`]: ['keeper'],
        [`${NS}from`]: 'users of Acme',
        [`${NS}after`]: USER.email,
      });
    },
  },
  {
    name: 'lets in whose address was verified and is on a list only',
    rules: [
      `function (user, context, callback) {
         const whitelist = ['somebody@example.test'];
         if (!user.email || !user.email_verified) return callback(new UnauthorizedError('Access denied.'));
         if (whitelist.some((email) => email === user.email)) return callback(null, user, context);
         callback(new UnauthorizedError('You are not on the list.'));
       }`,
    ],
    code: [],
    expects: (ended) =>
      expect(ended).to.deep.include({ error: 'unauthorized', description: 'You are not on the list.' }),
  },
];

describe('actions in the style of published examples', () => {
  const opened = openApplication({
    script: () => readFileSync(join(dirname(manifest), 'dist/auth0-spa-js.production.js')),
    tenant,
  });
  let service: http.Server;
  let secrets: Record<string, string>;

  before(async () => {
    service = http.createServer(async (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
      if (pathname !== '/form')
        return response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify({ customer: `customer of ${searchParams.get('email')}` }));
      response.setHeader('content-type', 'text/html').end(await form(searchParams));
    });
    await new Promise<void>((resolve) => service.listen(0, 'localhost', resolve));
  });
  after(() => service.close());
  beforeEach(async () => {
    const { server } = opened();
    setDefaultCACertificates([...getCACertificates('default'), server.ca]);
    const { port } = service.address() as AddressInfo;
    secrets = { CRM: `http://localhost:${port}`, SHARED: 'what-the-form-signs-with', BACK: server.url };
    const [user] = (await managed(server, 'GET', `/users-by-email?email=${USER.email}`)).body;
    const [role] = (await managed(server, 'GET', '/roles')).body;
    await managed(server, 'POST', `/users/${encodeURIComponent(user.user_id)}/roles`, { roles: [role.id] });
  });

  /** A page that posts its response back, as a form does. */
  async function form(query: URLSearchParams): Promise<string> {
    const jose = await import('jose');
    const told = payload(query.get('session_token') ?? '');
    const answer = await new jose.SignJWT({ terms: 'accepted', state: query.get('state') })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setIssuer('forms')
      .setSubject(String(told.sub))
      .setIssuedAt()
      .setExpirationTime('1m')
      .sign(new TextEncoder().encode('what-the-form-signs-with'));
    return `<!doctype html><title>Form</title><form method="post" action="${query.get('back')}/continue?state=${query.get('state')}">
      <input type="hidden" name="answer" value="${answer}"><button>Accept</button></form>`;
  }

  const bind = (code: readonly string[]) =>
    bindActions(
      opened().server,
      'post-login',
      ...code.map((body) => ({
        secrets,
        code: body.includes('exports.')
          ? body
          : `exports.onExecutePostLogin = async (event, api) => {\n${body}\n};`,
      })),
    );

  /** Logs the user in as the application does. */
  const logIn = async (more: () => Promise<void> = async () => {}): Promise<Ended> => {
    const { server, origin, page } = opened();
    const createClient = () =>
      page.evaluate(
        async ([domain, redirect_uri, audience]) => {
          const sdk = (globalThis as any).auth0; // any: the published script's own global
          (globalThis as any).client = await sdk.createAuth0Client({
            domain,
            clientId: 'spa',
            authorizationParams: { redirect_uri, audience, scope: 'openid profile email read:things' },
          });
        },
        [new URL(server.url).host, `${origin}/callback`, API] as const,
      );
    await createClient();
    await Promise.all([
      page.waitForURL(/\/u\//),
      page.evaluate(() => (globalThis as any).client.loginWithRedirect()), // any: as above
    ]);
    await page.getByLabel('Email address').fill(USER.email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await page.getByRole('button', { name: 'Continue' }).click();
    await more();
    await page.waitForURL((url) => url.origin === origin || url.pathname === '/form');
    if (new URL(page.url()).pathname === '/form') {
      await page.getByRole('button', { name: 'Accept' }).click();
      await page.waitForURL((url) => url.origin === origin);
    }
    await createClient();
    const ended = await page.evaluate(async () => {
      const { client } = globalThis as any; // any: as above
      try {
        await client.handleRedirectCallback();
        const { __raw } = await client.getIdTokenClaims();
        return { id: __raw as string, access: (await client.getTokenSilently()) as string };
      } catch (error) {
        const { error: name, error_description: description } = error as Record<string, string>;
        return { error: name ?? String(error), description };
      }
    });
    if (!('id' in ended)) return { idToken: {}, accessToken: {}, ...ended } as Ended;
    return { idToken: payload(ended.id ?? ''), accessToken: payload(ended.access ?? '') };
  };

  for (const { name, code, expects } of EXAMPLES) {
    it(`an action that ${name} works`, async () => {
      await bind(code);
      await expects(await logIn());
    });
  }

  for (const { name, rules = [], code, expects } of RULES) {
    it(`a rule that ${name} works`, async () => {
      const { server } = opened();
      await managed(server, 'PUT', '/rules-configs/COMPANY', { value: 'Acme' });
      await bind(code);
      const ids: string[] = [];
      for (const [order, script] of rules.entries())
        ids.push((await managed(server, 'POST', '/rules', { name: `rule ${order}`, script, order })).body.id);
      const ended = await logIn();
      for (const id of ids) await managed(server, 'DELETE', `/rules/${id}`);
      await expects(ended);
    });
  }

  it('an action requires a second factor for one application, and the user gives it there', async () => {
    const { server, page } = opened();
    await bind([
      `if (event.client.name === 'Single page') api.multifactor.enable('any', { allowRememberBrowser: false });
       api.idToken.setCustomClaim('${NS}methods', event.authentication.methods.map(({ name }) => name));`,
    ]);
    await managed(server, 'PUT', '/guardian/factors/otp', { enabled: true });
    const { idToken } = await logIn(async () => {
      await page.waitForURL(/\/mfa\//);
      const text = await page.locator('.secret').textContent();
      const [secret = ''] = /[A-Z2-7]{32}/.exec((text ?? '').replace(/\s/g, '')) ?? [];
      await page.getByRole('textbox', { name: 'Code' }).fill(codeOf(secret));
      await page.getByRole('button', { name: 'Continue' }).click();
    });
    await managed(server, 'PUT', '/guardian/factors/otp', { enabled: false });
    expect(idToken[`${NS}methods`]).to.include('mfa');
    expect(idToken.amr).to.deep.equal(['mfa']);
  });

  const machine = async (body: string) => {
    const { server } = opened();
    const code = `exports.onExecuteCredentialsExchange = async (event, api) => {\n${body}\n};`;
    await bindActions(server, 'credentials-exchange', { code, secrets });
    const answer = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    });
    await managed(server, 'PATCH', '/actions/triggers/credentials-exchange/bindings', { bindings: [] });
    return { status: answer.status, body: answer.json() };
  };

  it('an action adds a claim of the application to tokens of machines', async () => {
    const { body } = await machine(
      `api.accessToken.setCustomClaim('${NS}tier', event.client.metadata.tier);`,
    );
    expect(payload(body.access_token)).to.include({ [`${NS}tier`]: 'gold' });
  });

  it('an action asks a service whether a machine may get a token', async () => {
    const { body } = await machine(
      `const response = await fetch(event.secrets.CRM + '?email=' + event.client.client_id);
       const { customer } = await response.json();
       api.accessToken.setCustomClaim('${NS}customer', customer);`,
    );
    expect(payload(body.access_token)).to.include({ [`${NS}customer`]: 'customer of m2m' });
  });

  it('an action denies machines an API', async () => {
    const { status, body } = await machine(
      `if (event.resource_server.identifier === '${API}' && event.client.metadata.tier !== 'platinum')
         api.access.deny('invalid_scope', 'Not for this application.');`,
    );
    expect({ status, ...body }).to.deep.equal({
      status,
      error: 'invalid_scope',
      error_description: 'Not for this application.',
    });
    expect(status).to.be.within(400, 403);
  });
});
