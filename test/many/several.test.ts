// Several servers over one store, at one address.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { header, payload, USER } from '../support/flows.ts';
import { type Several, startSeveral } from '../support/several.ts';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';
import { oneTimeThings, tenant } from './races.ts';

const DAY = 86_400_000;
const WEB = { client_id: 'web', client_secret: 'web-secret' };

describe('several servers over one store', () => {
  let mail: TestMailServer;
  let several: Several;
  before(async () => {
    mail = await startMailServer();
    several = await startSeveral(3, {
      tenant: { ...tenant, clients: [...tenant.clients, { client_id: 'few', name: 'Few' }] },
      env: { SMTP_URL: mail.url, MAIL_FROM: 'login@example.test' },
    });
  });
  after(async () => {
    await several?.stop();
    await mail?.stop();
  });

  describe('racing for what may happen only once', () => {
    oneTimeThings(() => ({ url: several.url, ca: several.ca, mail }));
  });

  it('apply a change that one of them makes to the tenant from their next request on', async () => {
    const login = () =>
      createAgent(several.at(2)).request('/oauth/token', {
        json: { ...WEB, grant_type: 'client_credentials', audience: 'https://unknown.example.test/' },
      });
    expect((await login()).status).to.equal(403);
    await several.servers[0]?.store
      .collection('clients')
      .update('web', (client) => ({ ...client, client_secret: 'another-secret' }));
    expect((await login()).status).to.equal(401);
    await several.servers[1]?.store
      .collection('clients')
      .update('web', (client) => ({ ...client, client_secret: 'web-secret' }));
    expect((await login()).status).to.equal(403);
  });

  it('return the same pseudonym for an address', async () => {
    const start = async (index: number) =>
      (
        await createAgent(several.at(index)).request('/passwordless/start', {
          json: { ...WEB, connection: 'email', email: 'same@example.test', send: 'code' },
        })
      ).json()._id;
    expect(await start(0)).to.equal(await start(1));
  });

  it('share a rate limit once half of a bucket is used', async () => {
    const own = await startSeveral(2, {
      tenant: { ...tenant, attackProtection: { rateLimits: { token: { capacity: 10, perMinute: 1 } } } },
    });
    try {
      const ask = (index: number) =>
        createAgent(own.at(index)).request('/oauth/token', { json: { grant_type: 'client_credentials' } });
      for (let i = 0; i < 10; i++) expect((await ask(0)).status).not.to.equal(429);
      // The other server does not know of these requests yet: it may allow as many as one process would.
      let given = 0;
      while ((await ask(1)).status !== 429) given++;
      expect(given).to.be.at.most(10);
      const heard = async () => (await own.store.collection('limits').list()).records.length > 0;
      while (!(await heard())) await new Promise((resolve) => setTimeout(resolve, 20));
      expect((await ask(0)).status).to.equal(429);
      expect((await ask(1)).status).to.equal(429);
      const [counter] = (await own.store.collection('limits').list()).records;
      expect(counter?.tokens).to.be.below(2);
    } finally {
      await own.stop();
    }
  });

  it('rotate their keys so that none signs with a key that another does not publish, whatever their clocks', async () => {
    const login = async (index: number) =>
      (
        await createAgent(several.at(index)).request('/oauth/token', {
          json: {
            ...WEB,
            grant_type: 'password',
            username: USER.email,
            password: USER.password,
            scope: 'openid',
          },
        })
      ).json().id_token as string;
    const keySetAt = async (index: number) =>
      (await createAgent(several.at(index)).get('/.well-known/jwks.json')).json().keys as { kid: string }[];
    const { rotateSigningKeys } = await import('../../src/capabilities/signing/signing-key-list.ts');
    const before = header(await login(0)).kid;
    let isOver = false;
    const rotations = (async () => {
      // Immediately one after the other: each rotation waits until all servers have seen the previous one.
      for (const wrong of [0, DAY, -DAY])
        await rotateSigningKeys(several.servers[0]!.store, () => Date.now() + wrong);
      isOver = true;
    })();
    while (!isOver) {
      for (const index of [0, 1, 2]) {
        const { kid } = header(await login(index));
        for (const other of [0, 1, 2]) expect((await keySetAt(other)).map((key) => key.kid)).to.include(kid);
      }
    }
    await rotations;
    const after = header(await login(2)).kid;
    expect(after).not.to.equal(before);
    expect(payload(await login(1)).iss).to.equal(`${several.url}/`);
  });
});
