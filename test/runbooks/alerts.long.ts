// Alerts without a page of their own: each fires while the server is in the state that it is about, and not before.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { parse } from 'yaml';
import { USER } from '../support/flows.ts';
import { freePort } from '../support/free-port.ts';
import { startCluster } from '../support/postgres.ts';
import { every, until } from '../support/wait-until.ts';
import { expectAlerts, type Phase, promtool } from './alerts.ts';
import { type Place, startPlace } from './place.ts';
import { signUp, tenant } from './tenant.ts';

describe('the alerts', () => {
  /** Runs work with a server of its own. */
  async function at(
    options: Partial<Parameters<typeof startPlace>[0]>,
    work: (place: Place) => Promise<boolean>,
  ) {
    const place = await startPlace({ page: 'README', tenant, ...options });
    try {
      return await work(place);
    } finally {
      await place.stop();
    }
  }
  const request = (place: Place) => place.agent().get('/readyz');

  it('say that the event loop is blocked, of a process that does not get the processor', async function () {
    const isTested = await at({}, async (place) => {
      const phase = await place.during(10, ['GatehouseEventLoopLags'], async () => {
        place.child()?.kill('SIGSTOP');
        await every(1_000)();
        place.child()?.kill('SIGCONT');
      });
      return place.expectAlerts([phase]);
    });
    if (!isTested) this.skip();
  });

  it('say that the store is slow, of a database whose tables are locked', async function () {
    const cluster = await startCluster();
    try {
      const isTested = await at({ env: { DATABASE_URL: cluster.url() } }, async (place) => {
        const phase = await place.during(20, ['GatehouseSlow', 'GatehouseStoreSlow'], async () => {
          const locking = new pg.Client(cluster.url());
          await locking.connect();
          await locking.query('BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
          const waiting = Promise.all(
            Array.from({ length: 10 }, (_, i) => signUp(place, `${i}@example.test`)),
          );
          await every(1_500)();
          await locking.query('COMMIT');
          await locking.end();
          await waiting;
        });
        return place.expectAlerts([phase]);
      });
      if (!isTested) this.skip();
    } finally {
      await cluster.stop();
    }
  });

  it('say that a receiver of a log stream accepts nothing, until it does', async function () {
    const port = await freePort();
    const sink = { httpEndpoint: `http://127.0.0.1:${port}/` };
    const logStreams = [{ name: 'Receiver', type: 'http', sink }];
    const options = { tenant: { ...tenant, logStreams }, env: { OUTBOUND_ALLOW: '127.0.0.1' } };
    const receiver = http.createServer((request, response) =>
      request.resume().once('end', () => response.end()),
    );
    try {
      const isTested = await at(options, async (place) => {
        const phases: Phase[] = [];
        const failing = async () => (await place.scrape()).values?.get('gatehouse_log_streams_failing{}');
        expect(await failing()).to.equal(0);
        const fault = async () => {
          await signUp(place, USER.email);
          await until(async () => (await failing()) === 1, every(100));
        };
        phases.push(await place.during(20, ['GatehouseLogStreamFails'], fault));
        receiver.listen(port, '127.0.0.1');
        await once(receiver, 'listening');
        expect((receiver.address() as AddressInfo).port).to.equal(port);
        await until(async () => (await failing()) === 0, every(500));
        phases.push(await place.during(20, [], () => request(place)));
        return place.expectAlerts(phases);
      });
      if (!isTested) this.skip();
    } finally {
      receiver.close();
    }
  });

  it('say that a key has signed for too long, until it is rotated', async function () {
    const isTested = await at({}, async (place) => {
      const phases = [await place.during(10, [], () => request(place))];
      // The same server 200 days later, and a tenant whose next key is as old as the current one.
      const later = join(place.root, 'later.mjs');
      writeFileSync(later, 'const now = Date.now; Date.now = () => now() + 200 * 86_400_000;');
      const settings = join(place.root, 'etc/gatehouse/environment');
      writeFileSync(settings, `${readFileSync(settings, 'utf8')}NODE_OPTIONS=--import=${later}\n`);
      await place.restart();
      phases.push(await place.during(10, ['GatehouseSigningKeyOld'], () => request(place)));
      await place.command('gatehouse keys rotate');
      phases.push(await place.during(10, [], () => request(place)));
      return place.expectAlerts(phases);
    });
    if (!isTested) this.skip();
  });

  it('say that a process is started again and again', async function () {
    const isTested = await at({}, async (place) => {
      const phases: Phase[] = [await place.during(10, [], () => request(place))];
      for (let i = 0; i < 3; i++) {
        await place.restart();
        // Three minutes each.
        const firing = i === 2 ? ['GatehouseRestarts'] : [];
        phases.push(await place.during(3, firing, () => request(place)));
      }
      return place.expectAlerts(phases);
    });
    if (!isTested) this.skip();
  });

  it('say that there is no process at all', async function () {
    const program = promtool();
    if (program === undefined) return this.skip();
    const none = { at: 0, values: undefined, counters: new Set<string>() };
    expectAlerts(program, [
      { minutes: 10, from: none, to: none, firing: ['GatehouseAbsent'], isAbsent: true },
    ]);
  });

  it('are all tested, here or in a rehearsal', () => {
    const { groups } = parse(
      readFileSync(new URL('../../deploy/prometheus/alerts.yaml', import.meta.url), 'utf8'),
    );
    const tests = ['alerts', 'mail-down', 'database-failover', 'flood', 'sealing-key-lost']
      .map((name) => readFileSync(new URL(`${name}.long.ts`, import.meta.url), 'utf8'))
      .join();
    for (const { alert } of groups[0].rules) expect(tests, alert).to.contain(`'${alert}'`);
  });
});
