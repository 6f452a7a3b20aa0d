// docs/do/runbooks/upgrade.md, rehearsed: a new release changes the store, and then does not start.
import { chmodSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { spaTokens, USER } from '../support/flows.ts';
import { until } from '../support/wait-until.ts';
import type { Phase } from './alerts.ts';
import { type Place, startPlace } from './place.ts';
import { expectLogins, passwordLogin, signUp, tenant } from './tenant.ts';

describe('the runbook for an upgrade that is taken back', () => {
  let place: Place;
  let refreshToken: string;
  const phases: Phase[] = [];
  before(async () => {
    place = await startPlace({ page: 'upgrade', tenant });
    const old = join(place.root, 'opt/gatehouse-0.1.0');
    renameSync(join(place.root, 'opt/gatehouse'), old);
    symlinkSync(old, join(place.root, 'opt/gatehouse'));
    installFaulty(join(place.root, 'opt/gatehouse-0.2.0/node_modules/.bin/gatehouse'), old);
    expect((await signUp(place, USER.email)).status).to.equal(200);
    refreshToken = (await spaTokens(place.agent(), place, { scope: 'openid offline_access' })).refresh_token;
  });
  after(() => place?.stop());

  /** Installs a release whose server raises the format of the store and ends; its commands are the old ones. */
  function installFaulty(path: string, old: string) {
    const program = readFileSync(join(old, 'node_modules/.bin/gatehouse'), 'utf8').replace('#!/bin/sh\n', '');
    const raise = `const { DatabaseSync } = require('node:sqlite');
      new DatabaseSync(process.env.DATA_DIR + '/store/gatehouse.db').exec('PRAGMA user_version = 99');
      console.error('a fault of the new release');
      process.exit(1);`;
    mkdirSync(dirname(path), { recursive: true });
    const serve = `exec '${process.execPath}' --disable-warning=ExperimentalWarning -e "${raise}"`;
    writeFileSync(path, `#!/bin/sh\nif [ $# -eq 0 ]; then ${serve}; fi\n${program}`);
    chmodSync(path, 0o755);
  }
  const ended = () => until(() => place.child() === undefined);

  it('begins with a release that does not start', async () => {
    phases.push(await place.during(20, [], () => passwordLogin(place)));
    await place.step('prepare');
    await place.step('upgrade');
    await ended();
    await place.step('look');
    phases.push(await place.during(10, ['GatehouseDown'], async () => undefined));
  });

  it('goes back to the old release, with everything that is in the backup', async () => {
    await place.step('back');
    await ended();
    await place.step('refused');
    await place.step('restore');
    await place.step('over');
    place.expectAllRun();
    phases.push(
      await place.during(20, [], async () => {
        await expectLogins(place, refreshToken);
      }),
    );
  });

  it('is announced by the alert that the page names, which ends with it', function () {
    if (!place.expectAlerts(phases)) this.skip();
  });
});
