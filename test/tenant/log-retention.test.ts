// How long the tenant's log is kept.
import { expect } from 'chai';
import { engineEvents } from '../../src/engine/base/engine-declaration.ts';
import { callApi, startManaged } from '../management/support.ts';
import type { TestServer } from '../support/server.ts';
import { aMoment } from '../support/wait-until.ts';

const DAY = 86_400_000;

describe('the retention of the log', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged();
  });
  afterEach(() => server.stop());

  /** Records events as of some days ago, with an expiry of thirty days. */
  const recordedAgo = async (days: number, count: number) => {
    const at = new Date(Date.now() - days * DAY).toISOString();
    await server.store.batch(
      Array.from({ length: count }, (_, n) => ({
        collection: 'logs' as const,
        insert: {
          id: `${at.replaceAll(/\D/g, '')}${String(n).padStart(6, '0')}`,
          type: 's',
          date: at,
          expiresAt: Math.floor(Date.now() / 1000) + (30 - days) * 86_400,
        },
      })),
    );
  };
  const retain = (days: unknown) =>
    callApi(server, 'PATCH', '/tenants/settings', { log_retention_days: days });
  const agesOf = async () => {
    const { records } = await server.store.collection('logs').list({ limit: 5_000 });
    return new Set(records.map(({ date }) => Math.round((Date.now() - Date.parse(date)) / DAY)));
  };

  it('deletes older events, however many, when it is shortened', async () => {
    await recordedAgo(20, 1_100);
    await recordedAgo(8, 150);
    await recordedAgo(6, 100);
    expect((await retain(7)).status).to.equal(200);
    while ((await agesOf()).has(8)) await aMoment();
    const ages = await agesOf();
    expect(ages.has(20)).to.equal(false);
    expect(ages.has(6)).to.equal(true);
  });

  it('applies to events that are recorded later', async () => {
    await retain(400);
    const isThere = async () =>
      (await server.store.collection('logs').list({ limit: 500 })).records.some(
        ({ user_name }) => user_name === 'kept',
      );
    await callApi(server, 'GET', '/tenants/settings');
    server.tenant.events.record({ type: engineEvents.s, user_name: 'kept' });
    while (!(await isThere())) await aMoment();
    server.tick(300 * DAY);
    expect(await isThere()).to.equal(true);
    server.tick(101 * DAY);
    expect(await isThere()).to.equal(false);
  });

  for (const days of [0, -1, 1.5, 3_651, '7', {}]) {
    it(`is rejected as ${JSON.stringify(days)}`, async () => {
      expect((await retain(days)).status).to.equal(400);
    });
  }
});
