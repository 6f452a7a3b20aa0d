// /console/move: what of the old tenant is accepted, and its end by a button.
import { expect } from 'chai';
import { MOVE } from '../../src/records/tenant/move.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import type { TestServer } from '../support/server.ts';

const PATH = '/console/move';

describe('the page of a move in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  before(async () => {
    server = await startConsole();
    owner = await openConsole(server);
  });
  after(() => server.stop());

  const connectionId = async () =>
    (await server.store.collection('connections').findBy('name', 'users'))[0]?.id ?? '';
  /** Opens a move from a tenant that does not answer. */
  const bridge = { opened_at: '2026-11-01T00:00:00.000Z', until: '2099-01-01T00:00:00.000Z' };
  const openMove = async (more: object = {}) => {
    await server.store.collection('moves').put({
      id: MOVE,
      ...bridge,
      origin: 'https://127.0.0.1:1',
      management: { client_id: 'there', client_secret: 'a-secret-that-nobody-sees' },
      passwords: { [await connectionId()]: { ...bridge, here_before: 0 } },
      refresh_tokens: bridge,
      ...more,
    });
  };
  const moveRecord = () => server.store.collection('moves').get(MOVE);

  it('is not there, nor in the navigation, without a move', async () => {
    expect((await owner.get(PATH)).status).to.equal(404);
    expect((await owner.get('/console')).text).not.to.contain(`href="${PATH}"`);
  });

  it('shows each bridge with its numbers, and no secret; an old tenant that does not answer is named', async () => {
    const through = { host: 'acme-cd-1.edge.example', by_key: true, cname_api_key: 'a-key-that-nobody-sees' };
    await openMove({ sessions: { ...bridge, client_id: 'sessions-there', through } });
    await server.store.collection('moveCounts').put({
      id: `passwords ${await connectionId()}`,
      moved: 4711,
      refused: 12,
      failed: 3,
      recent: {},
    });
    const { status, text } = await owner.get(PATH);
    expect(status).to.equal(200);
    for (const shown of [
      'https://127.0.0.1:1',
      '<bdi>users</bdi>',
      '4711',
      'Refresh tokens',
      'acme-cd-1.edge.example',
    ])
      expect(text).to.contain(shown);
    expect(text).to.contain('could not be asked');
    expect(text).not.to.contain('a-secret-that-nobody-sees').and.not.to.contain('a-key-that-nobody-sees');
    expect((await owner.get('/console')).text).to.contain(`href="${PATH}"`);
  });

  it('ends a bridge, once, which the log says of the administrator', async () => {
    await openMove();
    const answer = await owner.post(`${PATH}/end`, { kind: 'passwords', connection: 'users' });
    expect(answer.status).to.equal(303);
    const ended = (await moveRecord())?.passwords[await connectionId()]?.ended_at;
    expect(ended).to.be.a('string');
    expect((await moveRecord())?.refresh_tokens?.ended_at).to.equal(undefined);
    await owner.post(`${PATH}/end`, { kind: 'passwords', connection: 'users' });
    expect((await moveRecord())?.passwords[await connectionId()]?.ended_at).to.equal(ended);
    await owner.post(`${PATH}/end`, { kind: 'refresh_tokens', connection: '' });
    expect((await moveRecord())?.refresh_tokens?.ended_at).to.be.a('string');
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    const events = records.filter(
      ({ description }) => description === 'End what is accepted of another tenant',
    );
    expect(events.map(({ user_name }) => user_name)).to.deep.equal(
      Array(2).fill('owner@console.example.test'),
    );
  });

  it('changes nothing for a bridge that does not exist', async () => {
    await openMove();
    const before = await moveRecord();
    for (const kind of ['sessions', 'passwords', '__proto__', 'origin'])
      await owner.post(`${PATH}/end`, { kind, connection: '__proto__' });
    expect(await moveRecord()).to.deep.equal(before);
  });

  it('has no button for a viewer, whose form is refused; support does not see it', async () => {
    await openMove();
    const before = await moveRecord();
    const viewer = await openConsole(server, 'viewer');
    expect((await viewer.get(PATH)).text).not.to.contain(`${PATH}/end`);
    expect((await viewer.post(`${PATH}/end`, { kind: 'passwords', connection: 'users' })).status).to.equal(
      403,
    );
    const support = await openConsole(server, 'support');
    expect((await support.get(PATH)).status).to.equal(403);
    expect(await moveRecord()).to.deep.equal(before);
  });
});
