// docs/do/runbooks/restore.md, rehearsed: the database file of the embedded store is overwritten.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { spaTokens, USER } from '../support/flows.ts';
import { until } from '../support/wait-until.ts';
import type { Phase } from './alerts.ts';
import { type Place, startPlace } from './place.ts';
import { expectLogins, passwordLogin, signUp, tenant } from './tenant.ts';

describe('the runbook for an embedded store that is damaged', () => {
  let place: Place;
  let refreshToken: string;
  const phases: Phase[] = [];
  before(async () => {
    place = await startPlace({ page: 'restore', tenant });
    expect((await signUp(place, USER.email)).status).to.equal(200);
    refreshToken = (await spaTokens(place.agent(), place, { scope: 'openid offline_access' })).refresh_token;
  });
  after(() => place?.stop());

  it('begins with a backup of a server that runs, and a store that is damaged afterwards', async () => {
    await place.step('backup');
    phases.push(await place.during(20, [], () => signUp(place, 'later@example.test')));
    await place.kill();
    writeFileSync(join(place.root, 'var/lib/gatehouse/store/gatehouse.db'), Buffer.alloc(65_536, 'damage'));
    place.start();
    await until(() => place.child() === undefined);
    phases.push(await place.during(10, ['GatehouseDown'], async () => undefined));
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

  it('is announced by the alert that the page names, which ends with it', function () {
    if (!place.expectAlerts(phases)) this.skip();
  });
});
