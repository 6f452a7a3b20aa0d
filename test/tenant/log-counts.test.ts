// The counts of the log by hour: correct without reading an event twice, stored, and the same in all processes.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { LogEventRecord } from '../../src/records/base/log-events.ts';
import { createBackground } from '../../src/runtime/background.ts';
import { createLog } from '../../src/runtime/log.ts';
import type { Store } from '../../src/store/contract.ts';
import { distinct, storedSketch } from '../../src/tenant/distinct.ts';
import { eventIdAt } from '../../src/tenant/events.ts';
import { createLogCounts } from '../../src/tenant/log-counts.ts';
import { openStoreOf } from '../support/store.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-05-10T12:30:00.000Z');

describe('the counts of the log', () => {
  let directory: string;
  let store: Store;
  let now: number;
  let written: number;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-counts-'));
    now = NOW;
    written = 0;
    store = await openStoreOf({ dataDir: directory, log: createLog('silent'), clock: () => now });
  });
  afterEach(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });

  const log = (at: number, type: string, more: Partial<LogEventRecord> = {}) => ({
    collection: 'logs' as const,
    insert: {
      id: `${eventIdAt(at)}${String(++written).padStart(8, '0')}`,
      date: new Date(at).toISOString(),
      type,
      ...more,
    },
  });
  /** Returns the counts as one process has them. */
  const opened = () => {
    const background = createBackground(createLog('silent'));
    const ending = new AbortController();
    const { since } = createLogCounts({ store, clock: () => now, background, ending: ending.signal });
    return {
      total: async (type: string, from = NOW - 30 * 24 * HOUR) => {
        const { hours } = await since(from);
        return [...hours.values()].reduce((sum, { counts }) => sum + (counts[type] ?? 0), 0);
      },
      since,
      background,
    };
  };

  it('are by type and hour, and include events that were left out in a flood', async () => {
    await store.batch([
      log(NOW - 2 * HOUR, 's', { user_id: 'a' }),
      log(NOW - 2 * HOUR + 1, 's', { user_id: 'b' }),
      log(NOW - 2 * HOUR + 2, 's', { user_id: 'a' }),
      log(NOW - HOUR, 'fp', { details: { left_out: 40 } }),
      log(NOW - 60_000, 's', { user_id: 'c' }),
    ]);
    const { hours, isBehind } = await opened().since(NOW - 24 * HOUR);
    expect(isBehind).to.equal(false);
    const found = [...hours].map(([hour, { counts, users }]) => [
      new Date(hour).toISOString().slice(11, 16),
      counts,
      users.count(),
    ]);
    expect(found).to.deep.equal([
      ['10:00', { s: 3 }, 2],
      ['11:00', { fp: 41 }, 0],
      ['12:00', { s: 1 }, 1],
    ]);
    expect(hours.get(NOW - 30 * 60_000)?.latest.s).to.match(/^20260510122900000/);
  });

  it('count events once that are logged between two calls', async () => {
    const counts = opened();
    await store.batch([log(NOW - HOUR, 's')]);
    expect(await counts.total('s')).to.equal(1);
    now += 5 * 60_000;
    await store.batch([log(now - 60_000, 's'), log(now - 30_000, 's')]);
    expect(await counts.total('s')).to.equal(3);
    expect(await counts.total('s')).to.equal(3);
    now += 3 * HOUR;
    expect(await counts.total('s')).to.equal(3);
  });

  it('are stored for past hours, and continued by another process', async () => {
    await store.batch([log(NOW - 26 * HOUR, 's', { user_id: 'a' }), log(NOW - 2 * HOUR, 'ss')]);
    const first = opened();
    expect(await first.total('s')).to.equal(1);
    // Counted events are not read again, so they may be deleted.
    const { records } = await store.collection('logs').list();
    for (const { id } of records) await store.collection('logs').delete(id);
    await store.batch([log(NOW - 60_000, 'ss')]);
    const second = opened();
    expect(await second.total('s')).to.equal(1);
    expect(await second.total('ss')).to.equal(2);
    now += HOUR;
    expect(await second.total('ss')).to.equal(2);
    expect(await first.total('ss'), 'what the other has counted is taken over, and not added').to.equal(2);
  });

  it('report that they are behind when there is much to count, and are complete in the end', async () => {
    const many = Array.from({ length: 4_000 }, (_, n) => log(NOW - 20 * HOUR + n * 1_000, 'fp'));
    await store.batch(many);
    const counts = opened();
    const { isBehind } = await counts.since(NOW - 24 * HOUR);
    expect(isBehind).to.equal(true);
    // A call in the meantime does not wait for the counting.
    expect((await counts.since(NOW - 24 * HOUR)).isBehind).to.equal(true);
    await counts.background.flush();
    expect((await counts.since(NOW - 24 * HOUR)).isBehind).to.equal(false);
    expect(await counts.total('fp')).to.equal(4_000);
  });

  it('are correct again in every process after the clock was hours ahead for a while', async () => {
    await store.batch([log(NOW - 2 * HOUR, 's'), log(NOW - 60_000, 's')]);
    const ahead = opened();
    now += 5 * HOUR;
    await store.batch([log(now - 90 * 60_000, 's')]);
    expect(await ahead.total('s')).to.equal(3);
    now = NOW + 60_000;
    await store.batch([log(now - 30_000, 's')]);
    expect(await ahead.total('s'), 'and nothing of hours that lie ahead').to.equal(3);
    expect(await opened().total('s'), 'with what was kept meanwhile').to.equal(3);
    now += 5 * HOUR;
    await store.batch([log(NOW + 4 * HOUR, 's')]);
    expect(await opened().total('s')).to.equal(5);
    expect(await ahead.total('s')).to.equal(5);
  });

  it('go back one month', async () => {
    await store.batch([log(NOW - 29 * 24 * HOUR, 's'), log(NOW - 40 * 24 * HOUR, 's')]);
    const counts = opened();
    expect(await counts.total('s', 0)).to.equal(1);
    now += 3 * 24 * HOUR;
    expect(await counts.total('s', 0)).to.equal(0);
    expect((await store.collection('logCounts').list()).records).to.have.length(0);
  });

  it('estimate the number of users of several hours together', () => {
    const [morning, evening] = [distinct(), distinct()];
    for (let n = 0; n < 6_000; n += 1) morning.add(`user ${n}`);
    for (let n = 4_000; n < 10_000; n += 1) evening.add(`user ${n}`);
    const both = distinct(storedSketch(morning));
    both.merge(evening);
    expect(both.count()).to.be.within(9_000, 11_000);
    expect(distinct().count()).to.equal(0);
    expect(storedSketch(distinct())).to.equal(undefined);
  });
});
