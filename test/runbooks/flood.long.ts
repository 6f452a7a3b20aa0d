// docs/do/runbooks/flood.md, rehearsed: a network tries passwords, signs up and requests codes, all at once.
import { expect } from 'chai';
import { USER } from '../support/flows.ts';
import type { Phase } from './alerts.ts';
import { CLIENT_ADDRESS, type Place, startPlace } from './place.ts';
import { passwordLogin, signUp, tenant, WEB } from './tenant.ts';

const from = (address: string) => ({ [CLIENT_ADDRESS]: address });
const HOME = from('192.0.2.10');

describe('the runbook for a flood', () => {
  let place: Place;
  const phases: Phase[] = [];
  before(async () => {
    place = await startPlace({ page: 'flood', tenant });
    expect((await signUp(place, USER.email, HOME)).status).to.equal(200);
    expect((await signUp(place, 'guessed@example.test', HOME)).status).to.equal(200);
  });
  after(() => place?.stop());

  /** Returns how often each status was answered. */
  async function flood(): Promise<Record<string, number>> {
    const passwords = Array.from({ length: 120 }, (_, i) =>
      passwordLogin(
        place,
        { email: `user-${i}@example.test`, password: 'Leaked-1' },
        from(`203.0.113.${i % 100}`),
      ),
    );
    const signUps = Array.from({ length: 80 }, (_, i) =>
      signUp(place, `bot-${i}@example.test`, from('203.0.113.200')),
    );
    const codes = Array.from({ length: 300 }, (_, i) =>
      place.agent().request('/passwordless/start', {
        json: { ...WEB, connection: 'email', email: `bot-${i}@example.test`, send: 'code' },
        headers: from('203.0.113.201'),
      }),
    );
    const answers = await Promise.all([...passwords, ...signUps, ...codes]);
    return Object.fromEntries(
      [...Map.groupBy(answers, ({ status }) => status)].map(([status, all]) => [status, all.length]),
    );
  }

  it('begins with logins that succeed, and no alert', async () => {
    phases.push(await place.during(20, [], () => passwordLogin(place, USER, HOME)));
  });

  it('finds the network, while the server serves those whom it knows', async () => {
    const firing = ['GatehouseLimitsHit', 'GatehouseLoginsFail', 'GatehousePasswordsWait', 'GatehouseSlow'];
    const phase = await place.during(30, firing, async () => {
      const flooded = flood();
      const known = await passwordLogin(place, USER, HOME);
      expect(known.status, known.text).to.equal(200);
      const statuses = await flooded;
      expect(statuses[429]).to.be.above(200);
      expect(statuses[500]).to.equal(undefined);
    });
    phases.push({ ...phase, possible: ['GatehouseErrors'] });
    const guessed = { email: 'guessed@example.test', password: USER.password };
    expect((await passwordLogin(place, guessed, from('203.0.113.250'))).status).to.equal(200);
    await place.step('look');
  });

  it('blocks it, and nobody else', async () => {
    await place.step('block');
    phases.push(
      await place.during(40, [], async () => {
        const statuses = await flood();
        expect(Object.keys(statuses)).to.deep.equal(['403']);
        expect((await passwordLogin(place, USER, HOME)).status).to.equal(200);
      }),
    );
    await place.step('over');
    await place.step('guessed');
    place.expectAllRun();
  });

  it('is announced by the alerts that the page names, which end with it', function () {
    if (!place.expectAlerts(phases)) this.skip();
  });
});
