// docs/do/runbooks/sealing-key-lost.md, rehearsed: the key file is gone after a restart, and there is no copy.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { spaTokens, token, USER } from '../support/flows.ts';
import { until } from '../support/wait-until.ts';
import type { Phase } from './alerts.ts';
import { type Place, startPlace } from './place.ts';
import { passwordLogin, signUp, tenant } from './tenant.ts';

describe('the runbook for a key of the store that is lost', () => {
  let place: Place;
  let refreshToken: string;
  const phases: Phase[] = [];
  before(async () => {
    place = await startPlace({ page: 'sealing-key-lost', tenant });
    expect((await signUp(place, USER.email)).status).to.equal(200);
    refreshToken = (await spaTokens(place.agent(), place, { scope: 'openid offline_access' })).refresh_token;
  });
  after(() => place?.stop());

  it('begins with a server that does not start, and says why', async () => {
    phases.push(await place.during(20, [], () => passwordLogin(place)));
    rmSync(join(place.root, 'var/lib/gatehouse/keys/secrets.key'));
    await place.kill();
    place.start();
    await until(() => place.child() === undefined);
    phases.push(await place.during(10, ['GatehouseDown'], async () => undefined));
    await place.step('look');
  });

  it('goes on with new keys: users, passwords and refresh tokens are still there', async () => {
    await place.step('reset');
    await place.step('over');
    place.expectAllRun();
    const login = await passwordLogin(place);
    expect(login.status, login.text).to.equal(200);
    const json = { grant_type: 'refresh_token', client_id: 'spa', refresh_token: refreshToken };
    const refreshed = await token(place.agent(), json);
    expect(refreshed.status, refreshed.text).to.equal(200);
    phases.push(await place.during(20, [], () => passwordLogin(place)));
  });

  it('is announced by the alert that the page names, which ends with it', function () {
    if (!place.expectAlerts(phases)) this.skip();
  });
});
