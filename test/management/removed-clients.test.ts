// What was granted to an application ends with it, and does not come back with a new one that has the same client_id.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openAccount } from '../account/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import {
  authorize,
  follow,
  logIn,
  pkce,
  responseOf,
  spaTokens,
  THIRD_CALLBACK,
  tenant,
  token,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';
import { callApi, startManaged } from './support.ts';

const STRANGER = {
  client_id: 'stranger',
  name: 'Stranger',
  app_type: 'regular_web',
  client_secret: 'stranger-secret',
  is_first_party: false,
  callbacks: [THIRD_CALLBACK],
  grant_types: ['authorization_code', 'refresh_token'],
};
const ownTenant = {
  ...tenant,
  tenant: { ...tenant.tenant, account_page: { client_id: 'code-only' } },
  clients: [...tenant.clients, STRANGER],
  databases: tenant.databases.map((one) => ({
    ...one,
    enabled_clients: ['spa', 'code-only'],
    is_domain_connection: true,
  })),
};

describe('deleting an application', () => {
  let server: TestServer;
  let dataDir: string;
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-removed-'));
    server = await startManaged(ownTenant, dataDir);
  });
  after(async () => {
    await server.stop();
    await rm(dataDir, { recursive: true });
  });

  const { challenge } = pkce();
  const request = {
    client_id: 'stranger',
    response_type: 'code',
    redirect_uri: THIRD_CALLBACK,
    scope: 'openid email',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  };
  /** Has a user consent to the third party's application. @returns the user's browser. */
  const consented = async () => {
    const agent = createAgent(server);
    const page = await logIn(agent, server, request);
    const { action, fields } = readForm(page, '_csrf');
    const answer = await agent.request(action, { form: { ...fields, decision: 'accept' } });
    expect(responseOf(await follow(agent, answer, server.url))).to.have.property('code');
    return agent;
  };
  const refreshToken = async (): Promise<string> =>
    (await spaTokens(createAgent(server), server, { scope: 'openid offline_access', audience: undefined }))
      .refresh_token;
  const refresh = (refresh_token: string) =>
    token(createAgent(server), { grant_type: 'refresh_token', client_id: 'spa', refresh_token });
  const notes = async () =>
    (await server.store.collection('documents').list({ limit: 1000 })).records.filter(
      ({ kind }) => kind === 'client-removal',
    );
  const left = async (clientId: string) => {
    const { records: consents } = await server.store.collection('consents').list({ limit: 1000 });
    const { records: artifacts } = await server.store.collection('artifacts').list({ limit: 1000 });
    const lasting = artifacts.filter(
      ({ id, payload }) => /^(Grant|RefreshToken)/.test(id) && payload.clientId === clientId,
    );
    return [consents.filter((one) => one.client_id === clientId).length, lasting.length];
  };
  const restore = (client: object) => server.store.collection('clients').insert(client as never);
  const record = (id: string) => server.store.collection('clients').get(id);

  it('ends what users have consented to, and shows them nothing of it', async () => {
    const agent = await consented();
    const page = async () => (await openAccount(agent, server, '/account/applications')).text;
    expect(await page()).to.contain('Stranger');
    const before = await record('stranger');
    expect((await callApi(server, 'DELETE', '/clients/stranger')).status).to.equal(204);
    await until(async () => (await notes()).length === 0);
    expect(await left('stranger')).to.deep.equal([0, 0]);
    expect(await page()).not.to.match(/stranger/i);
    await restore(before ?? {});
    // A new one of this client_id is not the one that the user knows.
    const again = await follow(agent, await authorize(agent, request), server.url);
    expect(again.text).to.contain('name="decision"');
  });

  it('ends the refresh tokens of a first-party application, to which nobody consents', async () => {
    const { refresh_token: other } = (await refresh(await refreshToken())).json();
    const before = await record('spa');
    expect((await callApi(server, 'DELETE', '/clients/spa')).status).to.equal(204);
    await until(async () => (await notes()).length === 0);
    expect(await left('spa')).to.deep.equal([0, 0]);
    await restore(before ?? {});
    // Deleting it took it from its connection, too.
    for (const { id } of (await server.store.collection('connections').list({ limit: 10 })).records)
      await server.store
        .collection('connections')
        .update(id, (one) => ({ ...one, enabled_clients: [...one.enabled_clients, 'spa'] }));
    expect((await refresh(other)).json().error).to.equal('invalid_grant');
    expect((await refresh(await refreshToken())).status).to.equal(200);
  });

  it('goes on at the next start where it was interrupted, and ends nothing of one that was not deleted', async () => {
    await consented();
    const kept = await refreshToken();
    const at = new Date().toISOString();
    for (const client_id of ['stranger', 'spa']) {
      const id = `client-removal/${client_id}`;
      const note = { id, kind: 'client-removal', body: { client_id }, created_at: at, updated_at: at };
      await server.store.collection('documents').put(note);
    }
    // The state of the store if the process ends between deleting the application and ending what it was granted.
    await server.store.collection('clients').delete('stranger');
    await server.stop();
    const others = ownTenant.clients.filter((one) => one.client_id !== 'stranger');
    server = await startManaged({ ...ownTenant, clients: others }, dataDir);
    await until(async () => (await notes()).length === 0);
    expect(await left('stranger')).to.deep.equal([0, 0]);
    expect((await refresh(kept)).status).to.equal(200);
  });
});
