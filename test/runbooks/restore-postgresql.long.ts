// docs/do/runbooks/restore-postgresql.md, rehearsed: somebody drops the tables. Needs `psql`.
import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { spaTokens, USER } from '../support/flows.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import type { Phase } from './alerts.ts';
import { type Place, startPlace } from './place.ts';
import { expectLogins, passwordLogin, signUp, tenant } from './tenant.ts';

const SECRETS_KEY = '0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9';

describe('the runbook for a database that is restored', () => {
  let cluster: Cluster;
  let place: Place;
  let refreshToken: string;
  const phases: Phase[] = [];
  before(async function () {
    if (spawnSync('psql', ['--version']).status !== 0) this.skip();
    cluster = await startCluster({ durable: true });
    place = await startPlace({
      page: 'restore-postgresql',
      tenant,
      env: { DATABASE_URL: cluster.url(), SECRETS_KEY },
      words: {
        $ADMIN_URL: cluster.url(),
        'postgres://gatehouse:PASSWORD@database.example.com/gatehouse_restored?sslmode=verify-full':
          cluster.url('gatehouse_restored'),
      },
    });
    expect((await signUp(place, USER.email)).status).to.equal(200);
    refreshToken = (await spaTokens(place.agent(), place, { scope: 'openid offline_access' })).refresh_token;
  });
  after(async () => {
    await place?.stop();
    await cluster?.stop();
  });
  const probe = async () => (await place.agent().get('/readyz')).status;

  it('begins with a backup of a server that runs, and tables that are dropped afterwards', async () => {
    await place.step('backup');
    phases.push(await place.during(20, [], () => signUp(place, 'later@example.test')));
    await cluster.query('DROP SCHEMA public CASCADE');
    const fault = async () => {
      expect((await passwordLogin(place)).status).to.be.oneOf([500, 503]);
      expect(await probe()).to.equal(503);
    };
    phases.push(await place.during(10, ['GatehouseErrors', 'GatehouseStoreUnavailable'], fault));
    await place.step('look');
  });

  it('goes on with everything that is in the backup, and nothing later', async () => {
    await place.step('restore');
    await place.step('over');
    place.expectAllRun();
    phases.push(
      await place.during(20, [], async () => {
        await expectLogins(place, refreshToken);
        const later = { email: 'later@example.test', password: USER.password };
        expect((await passwordLogin(place, later)).status).to.equal(403);
      }),
    );
  });

  it('is announced by the alerts that the page names, which end with it', function () {
    if (!place.expectAlerts(phases)) this.skip();
  });
});
