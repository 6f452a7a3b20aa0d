// docs/do/runbooks/database-failover.md, rehearsed: the primary is killed while users sign up, and its standby takes over.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { spaTokens, token, USER } from '../support/flows.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { every, until } from '../support/wait-until.ts';
import type { Phase } from './alerts.ts';
import { type Place, startPlace } from './place.ts';
import { passwordLogin, signUp, tenant } from './tenant.ts';

describe('the runbook for a database whose primary is lost', () => {
  let primary: Cluster;
  let standby: Cluster;
  let place: Place;
  const phases: Phase[] = [];
  /** Who was told that they have signed up. */
  const signedUp: string[] = [];
  before(async () => {
    primary = await startCluster({ durable: true, settings: ['synchronous_standby_names=*'] });
    await primary.halt('fast');
    standby = await startCluster({ durable: true, standbyOf: primary });
    await primary.start();
    const { bin, uid } = standby.programs;
    const as = uid === undefined ? '' : `setpriv --reuid=${uid} --regid=${uid} --clear-groups`;
    place = await startPlace({
      page: 'database-failover',
      tenant,
      env: { DATABASE_URL: primary.url() },
      programs: { pg_ctl: `exec ${as} '${bin}/pg_ctl' "$@"` },
      words: {
        'postgres://gatehouse:PASSWORD@standby.example.com/gatehouse?sslmode=verify-full': standby.url(),
        '/var/lib/postgresql/data': standby.data,
      },
    });
  });
  after(async () => {
    await place?.stop();
    await standby?.stop();
    await primary?.stop();
  });
  const probe = () => place.agent().get('/readyz');
  /** Users who sign up one after another until one is refused. */
  const signUps = async (name: string) => {
    for (let i = 0; ; i++) {
      const email = `${name}-${i}@example.test`;
      const { status } = await signUp(place, email);
      if (status !== 200) return status;
      signedUp.push(email);
    }
  };
  let refreshToken: string;

  it('begins with a server that is ready, and no alert', async () => {
    phases.push(
      await place.during(20, [], async () => {
        expect((await probe()).status).to.equal(200);
        expect((await signUp(place, USER.email)).status).to.equal(200);
        refreshToken = (await spaTokens(place.agent(), place, { scope: 'openid offline_access' }))
          .refresh_token;
      }),
    );
  });

  it('loses its primary while users sign up, and says so', async () => {
    const working = Promise.all(['one', 'two', 'three'].map(signUps));
    await until(() => signedUp.length > 10, every(10));
    await primary.halt('kill');
    expect(await working).to.deep.equal([503, 503, 503]);
    phases.push(
      await place.during(15, ['GatehouseErrors', 'GatehouseStoreUnavailable'], async () => {
        expect((await probe()).status).to.equal(503);
        expect((await passwordLogin(place)).status).to.equal(503);
      }),
    );
    await place.step('look');
  });

  it('goes on with the standby, with everything that was acknowledged', async () => {
    await place.step('promote');
    await place.step('change');
    await place.step('over');
    place.expectAllRun();
    phases.push(
      await place.during(20, [], async () => {
        expect((await probe()).status).to.equal(200);
        const { rows } = await standby.query(`SELECT data ->> 'email' AS email FROM users`);
        const there = new Set(rows.map(({ email }) => email));
        expect(signedUp.filter((one) => !there.has(one))).to.deep.equal([]);
        expect((await passwordLogin(place)).status).to.equal(200);
        const json = { grant_type: 'refresh_token', client_id: 'spa', refresh_token: refreshToken };
        const refreshed = await token(createAgent(place), json);
        expect(refreshed.status, refreshed.text).to.equal(200);
      }),
    );
  });

  it('is announced by the alerts that the page names, which end with it', function () {
    if (!place.expectAlerts(phases)) this.skip();
  });
});
