// Processes with wrong clocks that share one database.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createDeliveries } from '../../src/capabilities/delivery/deliveries.ts';
import { sharedReservations } from '../../src/capabilities/protection/attempts.ts';
import { inspectionFindings } from '../../src/commands/doctor/examine.ts';
import { createLog } from '../../src/runtime/log.ts';
import { requester } from '../../src/runtime/requester.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { inspect } from '../../src/server/administration/inspect.ts';
import type { Store } from '../../src/store/contract.ts';
import { createLeases } from '../../src/store/leases.ts';
import { openStore } from '../../src/store/open.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { every, until } from '../support/wait-until.ts';

const HOUR = 3_600_000;

describe('processes over PostgreSQL with different clocks', () => {
  let cluster: Cluster;
  let dataDir: string;
  const stores: Record<string, { store: Store; clock: () => number; told: unknown[] }> = {};
  before(async () => {
    cluster = await startCluster();
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-clocks-'));
    for (const [name, wrong] of Object.entries({ right: 0, ahead: HOUR, behind: -HOUR })) {
      const clock = () => Date.now() + wrong;
      const told: unknown[] = [];
      const log = { warn: (of: unknown) => told.push(of), error: () => undefined };
      const opening = { dataDir, databaseUrl: cluster.url(), clock, machineClock: clock, log };
      stores[name] = { store: await openStore(opening), clock, told };
    }
  });
  after(async () => {
    for (const { store } of Object.values(stores)) await store.close();
    await cluster.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const at = (name: string) => stores[name] ?? expect.fail(name);
  const never = () => new Promise<void>(() => {});
  const leasesOf = (name: string) => createLeases({ ...at(name), random: systemRandom });

  /** The deliveries of one process, which sends each with `attempt`. */
  function deliveriesOf(name: string, attempt: (text: string) => Promise<void>) {
    const ending = new AbortController();
    const deliveries = createDeliveries({
      ...at(name),
      random: systemRandom,
      log: createLog('silent'),
      ending: ending.signal,
    });
    const prepare = deliveries.add<string>({
      kind: 'test',
      attempt,
      isTemporary: () => true,
      onGiveUp: async () => undefined,
      pauses: [],
      maxDuration: 10_000,
      concurrency: 4,
      capacity: 1_000,
    });
    return { deliveries, prepare, ending };
  }

  it('use the clock of the database, and warn that their own differs', async () => {
    const now = Date.now();
    for (const [name, { store }] of Object.entries(stores))
      expect(store.sharedClock?.(), name).to.be.within(now - 5_000, Date.now() + 5_000);
    expect(at('right').told).to.deep.equal([]);
    expect(at('ahead').told).to.deep.equal([{ ahead: 3600 }]);
    expect(at('behind').told).to.deep.equal([{ ahead: -3600 }]);
    const inspection = await inspect(at('behind'));
    const found = inspectionFindings(inspection, at('behind').clock).map(
      ({ verdict, text }) => `${verdict} ${text}`,
    );
    expect(found).to.include('fault 3600 s behind the database: set it by NTP');
  });

  for (const holder of ['right', 'ahead', 'behind'])
    it(`do no work that a process whose clock is ${holder} is doing, and do it when that has finished`, async () => {
      let end = () => {};
      const begun = Promise.withResolvers<void>();
      const done = leasesOf(holder).ifFree(holder, () => {
        begun.resolve();
        return new Promise<void>((resolve) => (end = resolve));
      });
      await begun.promise;
      for (const name of Object.keys(stores))
        expect(await leasesOf(name).ifFree(holder, never), name).to.equal(false);
      end();
      await done;
      for (const name of Object.keys(stores))
        expect(await leasesOf(name).ifFree(holder, async () => {}), name).to.equal(true);
    });

  for (const looking of ['ahead', 'behind'])
    it(`take due deliveries, and none that another process is sending, when their clock is ${looking}`, async () => {
      const { store } = at('right');
      const slow = deliveriesOf('right', never);
      const held = slow.prepare('held');
      await store.batch([held.write]);
      held.start();
      const dueAt = new Date(Date.now() - 1_000).toISOString();
      const from = requester();
      const due = {
        id: `due ${looking}`,
        kind: 'test',
        content: '"due"',
        dueAt,
        holder: 'nobody',
        tries: 0,
        from,
      };
      await store.collection('deliveries').insert(due);
      const taken: string[] = [];
      const other = deliveriesOf(looking, async (text) => void taken.push(text));
      other.deliveries.start();
      await until(() => taken.includes('due'), every(20));
      other.ending.abort();
      await other.deliveries.flush(1_000);
      expect(taken).to.deep.equal(['due']);
      const { records } = await store.collection('deliveries').list();
      for (const { id } of records) await store.collection('deliveries').delete(id);
    });

  for (const holder of ['right', 'ahead', 'behind'])
    it(`count login attempts in progress at a process whose clock is ${holder}, so that no further one is let in`, async () => {
      const key = `account ${holder}`;
      const release = await sharedReservations(at(holder)).take([key], async () => [1]);
      const others = Object.keys(stores).filter((name) => name !== holder);
      const looks: Record<string, number> = {};
      const entered: string[] = [];
      const waiting = others.map(async (name) => {
        const look = async () => {
          looks[name] = (looks[name] ?? 0) + 1;
          return [1];
        };
        const leave = await sharedReservations(at(name)).take([key], look);
        entered.push(name);
        leave();
      });
      await until(() => entered.length > 0 || others.every((name) => (looks[name] ?? 0) > 1), every(20));
      expect(entered).to.deep.equal([]);
      release();
      await Promise.all(waiting);
      expect(entered).to.have.members(others);
    });
});
