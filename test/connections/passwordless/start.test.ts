// POST /passwordless/start: what it accepts, what it sends, and what it does not reveal.
import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { type Agent, createAgent } from '../../support/agent.ts';
import { WEB_CALLBACK } from '../../support/flows.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { OTP_GRANT, secrets, tenant } from './tenant.ts';

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });

const startTenant = {
  ...tenant,
  clients: [
    ...tenant.clients,
    {
      client_id: 'key-client',
      name: 'Private key',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', OTP_GRANT],
      client_authentication_methods: {
        private_key_jwt: {
          credentials: [{ alg: 'RS256', pem: keys.publicKey.export({ type: 'spki', format: 'pem' }) }],
        },
      },
    },
    {
      client_id: 'no-callback',
      name: 'No callback',
      client_secret: 'no-callback-secret',
      grant_types: [OTP_GRANT],
    },
  ],
  connections: tenant.connections.map((connection) => ({
    ...connection,
    enabled_clients: [...connection.enabled_clients, 'key-client', 'no-callback'],
  })),
};

describe('POST /passwordless/start', () => {
  let server: TestServer;
  let agent: Agent;
  before(async () => {
    server = await startServer({ tenant: startTenant });
    agent = createAgent(server);
  });
  after(() => server.stop());

  const start = (fields: Record<string, unknown>, headers: Record<string, string> = {}) =>
    agent.request('/passwordless/start', {
      json: { client_id: 'web', client_secret: 'web-secret', connection: 'email', ...fields },
      headers,
    });

  it('sends a code of six digits to an e-mail address', async () => {
    const answer = await start({ email: 'New.Person@Example.test', send: 'code' });
    expect(answer.status).to.equal(200);
    expect(answer.headers['content-type']).to.match(/^application\/json/);
    const body = answer.json();
    expect(body).to.have.all.keys('_id', 'email', 'email_verified');
    expect(body).to.include({ email: 'new.person@example.test', email_verified: false });
    expect(body._id).to.match(/^[0-9a-f]{24}$/);
    const [message] = await messagesTo(server, 'new.person@example.test');
    expect(message?.code).to.match(/^\d{6}$/);
    expect(message?.link).to.equal(undefined);
  });

  it('sends a code by SMS, of the length that the connection says, whatever `send` is', async () => {
    const answer = await start(
      { connection: 'sms', phone_number: '+16505551234', send: 'link' },
      { 'x-request-language': 'de' },
    );
    expect(answer.status).to.equal(200);
    expect(answer.json()).to.include({
      phone_number: '+16505551234',
      phone_verified: false,
      request_language: 'de',
    });
    const [message] = await messagesTo(server, '+16505551234');
    expect(message).to.include({ channel: 'sms' });
    expect(message?.code).to.match(/^\d{8}$/);
  });

  for (const send of [undefined, null, 'link', 'link_ios', 'link_android']) {
    it(`sends a link if \`send\` is ${JSON.stringify(send)}`, async () => {
      const email = `link-${send}@example.test`;
      expect((await start({ email, send })).status).to.equal(200);
      const [message] = await messagesTo(server, email);
      const url = new URL(message?.link ?? '');
      expect(url.origin + url.pathname).to.equal(`${server.url}/passwordless/verify_redirect`);
      expect(url.searchParams.get('redirect_uri')).to.equal(WEB_CALLBACK);
      expect(url.searchParams.get('response_type')).to.equal('code');
      expect(url.searchParams.get('verification_code')).to.match(/^[\w-]{43}$/);
      expect(message?.code).to.equal(undefined);
    });
  }

  it('adds authParams to the link, except those reserved for it', async () => {
    const email = 'params@example.test';
    const authParams = {
      scope: 'openid offline_access',
      redirect_uri: WEB_CALLBACK,
      response_type: 'code',
      response_mode: 'query',
      state: 'the state&',
      nonce: 'the-nonce',
      audience: 'https://api.example.test/',
      client_id: 'other',
      verification_code: '1',
      login_ticket: 'x',
      prompt: 'none',
    };
    expect((await start({ email, send: 'link', authParams })).status).to.equal(200);
    const { searchParams } = new URL((await messagesTo(server, email))[0]?.link ?? '');
    const { client_id, verification_code, login_ticket, prompt, ...others } = authParams;
    expect(Object.fromEntries(searchParams)).to.include({ ...others, client_id: 'web', email });
    expect(searchParams.has('login_ticket')).to.equal(false);
    expect(searchParams.has('prompt')).to.equal(false);
    expect(searchParams.get('verification_code')).not.to.equal('1');
  });

  it("makes the link from the configured base URL, whatever the request's host", async () => {
    const email = 'host@example.test';
    const poisoned = {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      forwarded: 'host=evil.example',
    };
    await start({ email, send: 'link' }, poisoned);
    const [message] = await messagesTo(server, email);
    expect(new URL(message?.link ?? '').origin).to.equal(server.url);
    expect(JSON.stringify(message)).not.to.contain('evil.example');
  });

  it('takes a form as well', async () => {
    const answer = await agent.request('/passwordless/start', {
      form: {
        client_id: 'web',
        client_secret: 'web-secret',
        connection: 'email',
        email: 'form@example.test',
        send: 'link',
        authParams: JSON.stringify({ state: 'from-a-form' }),
      },
    });
    expect(answer.status).to.equal(200);
    const [message] = await messagesTo(server, 'form@example.test');
    expect(new URL(message?.link ?? '').searchParams.get('state')).to.equal('from-a-form');
  });

  it('answers a browser application of its own origin, without a secret', async () => {
    const origin = 'http://localhost:5173';
    const preflight = await agent.request('/passwordless/start', {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-request-language',
      },
    });
    expect(preflight.headers['access-control-allow-origin']).to.equal(origin);
    expect(preflight.headers['access-control-allow-headers']).to.contain('x-request-language');
    const answer = await agent.request('/passwordless/start', {
      json: { client_id: 'spa', connection: 'email', email: 'spa@example.test', send: 'code' },
      headers: { origin },
    });
    expect(answer.status).to.equal(200);
    expect(answer.headers['access-control-allow-origin']).to.equal(origin);
  });

  describe('authenticates the application', () => {
    it('by private_key_jwt', async () => {
      const assertion = () =>
        new SignJWT({})
          .setProtectedHeader({ alg: 'RS256' })
          .setIssuer('key-client')
          .setSubject('key-client')
          .setAudience(server.issuer)
          .setJti(`${Math.random()}`)
          .setIssuedAt(Math.floor(Date.now() / 1000))
          .setExpirationTime(Math.floor(Date.now() / 1000) + 60)
          .sign(keys.privateKey);
      const fields = {
        client_id: 'key-client',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: await assertion(),
        connection: 'email',
        email: 'jwt@example.test',
        send: 'code',
      };
      const post = (json: unknown) => agent.request('/passwordless/start', { json });
      expect((await post(fields)).status).to.equal(200);
      expect((await post(fields)).status, 'the same assertion again').to.equal(401);
      expect(await messagesTo(server, 'jwt@example.test')).to.have.length(1);
    });

    it('by Basic', async () => {
      const basic = Buffer.from('code-only:code-secret').toString('base64');
      const answer = await agent.request('/passwordless/start', {
        json: { connection: 'email', email: 'basic@example.test', send: 'code' },
        headers: { authorization: `Basic ${basic}` },
      });
      // The error shows that the application was authenticated; it does not have the connection.
      expect(answer.status).to.equal(400);
      expect(answer.json().error).to.equal('bad.connection');
    });

    for (const [how, fields] of [
      ['a wrong secret', { client_secret: 'wrong' }],
      ['a missing secret', { client_secret: undefined }],
      ['an unknown client_id', { client_id: 'nobody' }],
    ] as const) {
      it(`and rejects ${how}, sending nothing`, async () => {
        const email = `${how.replaceAll(' ', '-')}@example.test`;
        const answer = await start({ email, send: 'code', ...fields });
        expect(answer.status).to.equal(401);
        expect(answer.json().error).to.equal('invalid_client');
        expect(await messagesTo(server, email)).to.deep.equal([]);
      });
    }
  });

  describe('says what is wrong', () => {
    const email = 'wrong@example.test';
    const cases: [string, Record<string, unknown>, string, string | RegExp][] = [
      [
        'no connection',
        { connection: undefined, email },
        'bad.connection',
        'Missing required property: connection',
      ],
      ['an unknown connection', { connection: 'nope', email }, 'bad.connection', 'Connection does not exist'],
      [
        'a database connection',
        { connection: 'users', email },
        'bad.connection',
        /^Invalid connection strategy/,
      ],
      ['no address', {}, 'bad.email', 'Missing required property: email'],
      [
        'an invalid e-mail address',
        { email: 'a b' },
        'bad.email',
        /^error in email - email format validation failed: a b/,
      ],
      ['an e-mail address with a line break', { email: 'a@b.c\r\nbcc: d@e.f' }, 'bad.email', /format/],
      ['two addresses', { email: 'a@b.test,c@d.test' }, 'bad.email', /format/],
      ['an address that is not a string', { email: ['a@b.c'] }, 'bad.email', /expected string/],
      [
        'no phone number',
        { connection: 'sms' },
        'bad.phone_number',
        'Missing required property: phone_number',
      ],
      [
        'a local phone number',
        { connection: 'sms', phone_number: '6505551234' },
        'bad.phone_number',
        /pattern/,
      ],
      [
        'a phone number that is too long',
        { connection: 'sms', phone_number: '+12345678901234567' },
        'bad.phone_number',
        /pattern/,
      ],
      [
        'a phone number with letters',
        { connection: 'sms', phone_number: '+1650CALLME' },
        'bad.phone_number',
        /pattern/,
      ],
      ['an unknown way to send', { email, send: 'pigeon' }, 'bad.send', /link or code/],
      [
        'authParams as a string',
        { email, authParams: 'scope' },
        'bad.authParams',
        'error in authParams - invalid type: string (expected object)',
      ],
      ['authParams as a list', { email, authParams: [] }, 'bad.authParams', /array/],
      ['a parameter that is not a string', { email, authParams: { state: 1 } }, 'bad.authParams', /state/],
      [
        'an unlisted redirect_uri',
        { email, authParams: { redirect_uri: 'https://evil.example/' } },
        'bad.authParams',
        /not registered/,
      ],
      [
        'a redirect_uri that only starts with a registered one',
        { email, authParams: { redirect_uri: `${WEB_CALLBACK}.evil` } },
        'bad.authParams',
        /not registered/,
      ],
      [
        'an unlisted redirect_uri for a code',
        { email, send: 'code', authParams: { redirect_uri: 'https://evil.example/' } },
        'bad.authParams',
        /not registered/,
      ],
      [
        'an unknown property',
        { email, colour: 'red' },
        'bad.request',
        'the following properties are not allowed: colour',
      ],
    ];
    for (const [what, fields, error, description] of cases) {
      it(`returns the error for ${what}`, async () => {
        const answer = await start(fields);
        expect(answer.status).to.equal(400);
        const body = answer.json();
        expect(body.error).to.equal(error);
        if (typeof description === 'string') expect(body.error_description).to.equal(description);
        else expect(body.error_description).to.match(description);
      });
    }

    it("returns the error for a connection that is not the application's", async () => {
      const answer = await agent.request('/passwordless/start', {
        json: {
          client_id: 'leeway',
          client_secret: secrets.leeway,
          connection: 'sms',
          phone_number: '+16505551234',
        },
      });
      expect(answer.status).to.equal(400);
      expect(answer.json()).to.deep.equal({
        error: 'bad.connection',
        error_description: 'Connection is disabled',
      });
    });

    it('returns the error for no client_id', async () => {
      const answer = await agent.request('/passwordless/start', { json: { connection: 'email', email } });
      expect(answer.status).to.equal(400);
      expect(answer.json()).to.deep.equal({
        error: 'bad.client_id',
        error_description: 'Missing required property: client_id',
      });
    });

    it('returns the error for a link for an application without a callback', async () => {
      const answer = await start({
        client_id: 'no-callback',
        client_secret: 'no-callback-secret',
        email,
        send: 'link',
      });
      expect(answer.json().error).to.equal('bad.authParams');
      const code = await start({
        client_id: 'no-callback',
        client_secret: 'no-callback-secret',
        email,
        send: 'code',
      });
      expect(code.status).to.equal(200);
    });

    for (const body of ['[]', '"text"', '{', 'null']) {
      it(`returns an error for the body ${body}`, async () => {
        const answer = await agent.request('/passwordless/start', {
          body,
          method: 'POST',
          headers: { 'content-type': 'application/json' },
        });
        expect(answer.status).to.equal(400);
        expect(answer.json().error).to.be.a('string');
      });
    }
  });

  describe('of a connection without sign-up', () => {
    before(async () => {
      await server.users.whoProved({
        connection: 'members',
        provider: 'email',
        kind: 'email',
        mayCreate: true,
        address: 'member@example.test',
      });
    });

    it('sends nothing to an unknown address, and answers as for a user', async () => {
      const ask = (email: string) => start({ connection: 'members', email, send: 'code' });
      const [member, stranger] = [await ask('member@example.test'), await ask('stranger@example.test')];
      expect(stranger.status).to.equal(member.status);
      expect(stranger.json()).to.have.all.keys(Object.keys(member.json()));
      expect(stranger.json().email_verified).to.equal(member.json().email_verified);
      expect(Object.keys(stranger.headers)).to.deep.equal(Object.keys(member.headers));
      const message = await nextMessageTo(server, 'member@example.test');
      expect(message.code).to.match(/^\d{6}$/);
      expect(await messagesTo(server, 'stranger@example.test')).to.deep.equal([]);
    });

    it('returns the same id for an address each time, known or not, and it is no user id', async () => {
      for (const email of ['member@example.test', 'stranger@example.test']) {
        const ids = await Promise.all(
          [1, 2].map(async () => (await start({ connection: 'members', email })).json()._id),
        );
        expect(ids[0]).to.equal(ids[1]);
        const user = await server.users.findByAddress({
          connection: 'members',
          kind: 'email',
          address: email,
        });
        expect(user?.id ?? '').not.to.contain(ids[0]);
      }
    });
  });

  it('stores no code and no link in readable form, in the store or in the log', async () => {
    await start({ email: 'hash@example.test', send: 'code' });
    await start({ email: 'hash2@example.test', send: 'link' });
    const [{ code } = {}] = await messagesTo(server, 'hash@example.test');
    const [{ link } = {}] = await messagesTo(server, 'hash2@example.test');
    const secret = new URL(link ?? '').searchParams.get('verification_code');
    const records = JSON.stringify(
      (await server.store.collection('challenges').list({ limit: 1000 })).records,
    );
    expect(records).not.to.match(new RegExp(`"${code}"`));
    expect(records).not.to.contain(secret);
    expect(server.logged()).not.to.contain(secret);
    expect(server.logged()).not.to.match(new RegExp(`\\b${code}\\b`));
  });
});

describe('the limits of POST /passwordless/start', () => {
  const limited = async (rateLimits: object, run: (server: TestServer) => Promise<void>) => {
    const server = await startServer({ tenant: { ...tenant, attackProtection: { rateLimits } } });
    try {
      await run(server);
    } finally {
      await server.stop();
    }
  };
  const start = (server: TestServer, phone_number: string) =>
    createAgent(server).request('/passwordless/start', {
      json: { client_id: 'spa', connection: 'sms', phone_number },
    });

  it('reject an IP address after 50 requests, with the headers of the limit', async () => {
    await limited({}, async (server) => {
      const answers = [];
      for (let i = 0; i < 51; i++) answers.push(await start(server, `+1650555${1000 + i}`));
      expect(answers.slice(0, 50).every(({ status }) => status === 200)).to.equal(true);
      const refused = answers[50];
      expect(refused?.status).to.equal(429);
      expect(refused?.json().error).to.equal('too_many_requests');
      expect(Number(refused?.headers['retry-after'])).to.be.within(1, 72);
      expect(refused?.headers['x-ratelimit-limit']).to.equal('50');
      server.tick(73_000);
      expect((await start(server, '+16505559999')).status).to.equal(200);
    });
  });

  it("count by the user's own address if a trusted application sends it", async () => {
    const bucket = { passwordlessStart: { capacity: 1, perMinute: 1 } };
    const clients = tenant.clients.map((client) =>
      client.client_id === 'web' || client.client_id === 'spa'
        ? { ...client, is_token_endpoint_ip_header_trusted: true }
        : client,
    );
    const server = await startServer({
      tenant: { ...tenant, clients, attackProtection: { rateLimits: bucket } },
    });
    try {
      let people = 0;
      const ask = async (client_id: string, address: string) => {
        const email = `of-${++people}@example.test`;
        const answer = await createAgent(server).request('/passwordless/start', {
          json: { client_id, client_secret: secrets[client_id], connection: 'email', email, send: 'code' },
          headers: { 'auth0-forwarded-for': address },
        });
        return answer.status;
      };
      expect([await ask('web', '203.0.113.1'), await ask('web', '203.0.113.2')]).to.deep.equal([200, 200]);
      expect(await ask('web', '203.0.113.1')).to.equal(429);
      // What a server passes on as it got it has the client's port.
      expect(await ask('web', '203.0.113.2:51008')).to.equal(429);
      expect(await ask('web', '203.0.113.9:51008')).to.equal(200);
      // Requests of an untrusted or unauthenticated application, or with an invalid address, count by their own IP address.
      expect(await ask('leeway', '203.0.113.3')).to.equal(200);
      expect(await ask('leeway', '203.0.113.4')).to.equal(429);
      expect(await ask('spa', '203.0.113.5')).to.equal(429);
      expect(await ask('web', 'anything')).to.equal(429);
    } finally {
      await server.stop();
    }
  });

  it('protect one phone number, whatever IP addresses the requests come from', async () => {
    await limited({ passwordlessStart: { capacity: 1000, perMinute: 1000 } }, async (server) => {
      const statuses = [];
      for (let i = 0; i < 12; i++) statuses.push((await start(server, '+1 (650) 555-1234')).status);
      expect(statuses).to.deep.equal([...Array(10).fill(200), 429, 429]);
      expect((await start(server, '+16505551235')).status).to.equal(200);
      expect(await messagesTo(server, '+16505551234')).to.have.length(10);
    });
  });
});
