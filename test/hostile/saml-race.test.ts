// Concurrent SAML logins and logouts, repeated: the sessions at service providers end with the session here, whichever
// is last.
import { expect } from 'chai';
import { authnRequest, logoutRequest, postForm, redirectQuery } from '../saml/messages.ts';
import { logInAt, posted, SLO, samlClient, startSamlServer } from '../saml/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { seeded, turns } from '../support/seeded.ts';
import type { TestServer } from '../support/server.ts';

const SEED = 20_261_121;
const ROUNDS = 8;

describe('SAML sessions under races', () => {
  let server: TestServer;

  before(async () => {
    const logout = { logout: { callback: SLO } };
    server = await startSamlServer([samlClient('one', logout), samlClient('two', logout)]);
  });
  after(() => server.stop());

  const signOn = async (agent: Agent, client: string) =>
    (await logInAt(agent, server, `/samlp/${client}?${redirectQuery(authnRequest())}`)).xml;
  /** Begins a login that is complete but for its last request. @returns the address of that request. */
  async function begun(agent: Agent, client: string): Promise<string> {
    const started = await agent.get(`/samlp/${client}?${redirectQuery(authnRequest())}`);
    return (await agent.get(started.location)).location;
  }
  const sessions = async () => (await server.store.collection('samlSessions').list({ limit: 1000 })).records;
  const nameIdOf = (xml: string) => /<saml:NameID[^>]*>([^<]*)</.exec(xml)?.[1] ?? '';

  beforeEach(async () => {
    expect(await sessions()).to.deep.equal([]);
  });

  it('leave no session after a login that ends later than its session', async () => {
    const random = seeded(SEED);
    for (let round = 0; round < ROUNDS; round++) {
      const agent = createAgent(server);
      const nameId = nameIdOf(await signOn(agent, 'one'));
      const callback = await begun(agent, 'two');
      const leave = () =>
        random() < 0.5
          ? agent.get('/v2/logout')
          : agent.request('/samlp/one/logout', { form: postForm(logoutRequest({ nameId })) });
      const [login] = await Promise.all([
        turns(Math.floor(random() * 12)).then(() => agent.get(callback)),
        turns(Math.floor(random() * 12)).then(leave),
      ]);
      expect([200, 400]).to.include(login.status);
      expect(await sessions(), `round ${round}`).to.deep.equal([]);
    }
  });

  it('fail a login whose session ends while it is recorded', async () => {
    const agent = createAgent(server);
    await signOn(agent, 'one');
    const callback = await begun(agent, 'two');
    const collection = server.store.collection('samlSessions');
    const { put } = collection;
    const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // The write is delayed, as on a slow disk.
    collection.put = async (record) => {
      reached.resolve();
      await opened.promise;
      return put(record);
    };
    const login = agent.get(callback);
    await reached.promise;
    await agent.get('/v2/logout');
    opened.resolve();
    const { status, text } = await login.finally(() => {
      collection.put = put;
    });
    expect([status, text.includes('SAMLResponse')]).to.deep.equal([400, false]);
    expect(await sessions()).to.deep.equal([]);
  });

  it('end a session once when several logouts begin at once, and answer all of them', async () => {
    const random = seeded(SEED + 1);
    for (let round = 0; round < 4; round++) {
      const agent = createAgent(server);
      const nameId = nameIdOf(await signOn(agent, 'one'));
      const answers = await Promise.all(
        Array.from({ length: 4 }, async () => {
          await turns(Math.floor(random() * 6));
          return agent.request('/samlp/one/logout', { form: postForm(logoutRequest({ nameId })) });
        }),
      );
      for (const answer of answers) {
        if (answer.status === 302) continue;
        expect(posted(answer).xml).to.include(':status:Success"');
      }
      expect(await sessions()).to.deep.equal([]);
    }
  });
});
