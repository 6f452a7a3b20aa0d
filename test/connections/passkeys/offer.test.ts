// Who is offered a passkey after a login, and which user a passkey belongs to.
import { expect } from 'chai';
import { callsWith, managementToken, startManaged } from '../../management/support.ts';
import { type Answer, createAgent, readForm } from '../../support/agent.ts';
import { tenant as base, logIn, responseOf, WEB_CALLBACK, webRequest } from '../../support/flows.ts';
import type { TestServer } from '../../support/server.ts';
import { newCredential } from '../../support/software-key.ts';

const options = { authentication_methods: { passkey: { enabled: true } } };
const password = 'Correct-Horse-1';

const tenant = (more: object = {}) => ({
  ...base,
  clients: base.clients.map((one) =>
    one.client_id === 'web' ? { ...one, client_metadata: { mfa_policy: 'never' } } : one,
  ),
  databases: ['users', 'second'].map((name) => ({ name, enabled_clients: ['web', 'spa'], options })),
  users: ['verified', 'later', 'plain', 'main', 'owned', 'waiting', 'removed'].map((name) => ({
    email: `${name}@example.test`,
    email_verified: name === 'verified',
    password,
    connection: ['owned', 'waiting', 'removed'].includes(name) ? 'second' : 'users',
  })),
  ...more,
});

const idOf = async (server: TestServer, email: string) => (await server.users.withEmail(email))[0]?.id ?? '';
const passkeysOf = (server: TestServer, userId: string) =>
  server.store.collection('passkeys').findBy('user', userId);
const isBack = ({ location }: Answer) => location.startsWith(WEB_CALLBACK);

/** Logs in with a password, and returns where the login leads. */
async function begin(server: TestServer, email: string, connection = 'users') {
  const agent = createAgent(server);
  const page = await logIn(agent, server, webRequest({ connection }), { email, password });
  const answerOffer = async (decision: 'make' | 'later') => {
    const { action, fields } = readForm(page, '_csrf');
    const options = /data-options="([^"]*)"/.exec(page.text)?.[1]?.replaceAll(/&quot;|&#34;/g, '"') ?? '{}';
    const code =
      decision === 'make'
        ? { code: JSON.stringify(newCredential(JSON.parse(options), server.url)) }
        : { decision };
    const answer = await agent.request(action, { form: { ...fields, ...code } });
    return isBack(answer) || (answer.status !== 303 && answer.status !== 302)
      ? answer
      : agent.get(answer.location);
  };
  return { page, answerOffer };
}

describe('the offer of a passkey', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(
      tenant({
        guardianFactors: [{ name: 'email', enabled: true }],
        guardianPolicies: { policies: ['all-applications'] },
      }),
    );
  });
  after(() => server?.stop());

  it('is not made to a user whose verified address serves as second factor elsewhere, even if this application needs none', async () => {
    const { page } = await begin(server, 'verified@example.test');
    expect(isBack(page), page.text).to.equal(true);
  });

  it('is withdrawn if the address is verified meanwhile', async () => {
    const id = await idOf(server, 'later@example.test');
    const { answerOffer } = await begin(server, 'later@example.test');
    await server.users.update(id, { email_verified: true });
    await answerOffer('make');
    expect(await passkeysOf(server, id)).to.deep.equal([]);
  });

  it('is made to a user without a second factor', async () => {
    const { answerOffer } = await begin(server, 'plain@example.test');
    await answerOffer('make');
    expect((await passkeysOf(server, await idOf(server, 'plain@example.test'))).length).to.equal(1);
  });
});

describe('the passkey of a linked identity', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(tenant());
  });
  after(() => server?.stop());

  /** Links a user of the second database to the main user. @returns both ids, and a function that unlinks. */
  const linked = async (email: string) => {
    const call = callsWith(server, await managementToken(server));
    const main = await idOf(server, 'main@example.test');
    const other = await idOf(server, email);
    const path = `/users/${encodeURIComponent(main)}/identities`;
    const bare = other.slice('auth0|'.length);
    const answer = await call('POST', path, { provider: 'auth0', user_id: bare });
    expect(answer.status, answer.text).to.equal(201);
    return { main, unlink: () => call('DELETE', `${path}/auth0/${bare}`) };
  };

  it('is removed at the unlinking, as it would still log in as the primary user', async () => {
    const { main, unlink } = await linked('owned@example.test');
    await (await begin(server, 'owned@example.test', 'second')).answerOffer('make');
    expect((await passkeysOf(server, main)).map(({ connection }) => connection)).to.deep.equal(['second']);
    expect((await unlink()).status).to.equal(200);
    expect(await passkeysOf(server, main)).to.deep.equal([]);
  });

  it('is not created, and the login ends, if the identity is unlinked during the offer', async () => {
    const { main, unlink } = await linked('waiting@example.test');
    const making = await begin(server, 'waiting@example.test', 'second');
    const waiting = await begin(server, 'waiting@example.test', 'second');
    expect((await unlink()).status).to.equal(200);
    await making.answerOffer('make');
    expect(await passkeysOf(server, main)).to.deep.equal([]);
    const answer = await waiting.answerOffer('later');
    expect(isBack(answer) ? responseOf(answer) : {}).not.to.have.property('code');
  });

  it('is removed with its connection: a new connection with that name does not accept it', async () => {
    const { main } = await linked('removed@example.test');
    await (await begin(server, 'removed@example.test', 'second')).answerOffer('make');
    expect((await passkeysOf(server, main)).length).to.equal(1);
    const call = callsWith(server, await managementToken(server));
    const [found] = (await call('GET', '/connections?name=second')).json() as { id: string }[];
    expect((await call('DELETE', `/connections/${found?.id}`)).status).to.equal(202);
    const again = { name: 'second', strategy: 'auth0', options };
    // Until everything of the old connection is deleted.
    while ((await call('POST', '/connections', again)).status === 409);
    expect(await passkeysOf(server, main)).to.deep.equal([]);
  });
});
