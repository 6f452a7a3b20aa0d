// docs/do/runbooks/mail-down.md, rehearsed: the mail server disappears, and another one takes over.
import { expect } from 'chai';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';
import { every, until } from '../support/wait-until.ts';
import type { Phase } from './alerts.ts';
import { type Place, startPlace } from './place.ts';
import { signUp, tenant, WEB } from './tenant.ts';

describe('the runbook for a mail server that is down', () => {
  let place: Place;
  let relay: TestMailServer;
  const phases: Phase[] = [];
  /** Who was promised a message while there was no mail server. */
  const promised: string[] = [];
  before(async () => {
    relay = await startMailServer();
    const words = { 'smtps://gatehouse:PASSWORD@relay.example.com': relay.url };
    place = await startPlace({ page: 'mail-down', tenant, words });
  });
  after(async () => {
    await place?.stop();
    await relay.stop();
  });
  const signUps = async (prefix: string, count: number) => {
    for (let i = 0; i < count; i++) {
      const email = `${prefix}-${i}@example.test`;
      expect((await signUp(place, email)).status).to.equal(200);
      promised.push(email);
    }
  };
  const requestCode = () =>
    place.agent().request('/passwordless/start', {
      json: { ...WEB, connection: 'email', email: 'somebody@example.test', send: 'code' },
    });

  it('begins with mail that is sent, and no alert', async () => {
    phases.push(
      await place.during(20, [], async () => {
        await signUps('before', 3);
        await until(() => place.mail.recipients.length === 3, every(50));
      }),
    );
  });

  it('finds the cause, while users are promised messages and codes are refused', async () => {
    await place.mail.stop();
    phases.push(
      await place.during(
        9,
        ['GatehouseErrors', 'GatehouseMessagesFail', 'GatehouseMessagesNotSent'],
        async () => {
          await signUps('during', 5);
          expect((await requestCode()).status).to.equal(503);
          await place.logged('a try to send a message failed');
        },
      ),
    );
    await place.step('look');
  });

  it('delivers all that waited by another mail server', async () => {
    await place.step('change');
    await place.ready();
    await until(() => promised.slice(3).every((one) => relay.recipients.includes(one)), every(50));
    await place.step('over');
    expect((await requestCode()).status).to.equal(200);
    expect(relay.recipients.filter((one) => promised.includes(one))).to.have.length(5);
    phases.push(await place.during(20, [], () => signUps('after', 3)));
    await place.step('given-up');
    place.expectAllRun();
  });

  it('is announced by the alerts that the page names, which end with it', function () {
    if (!place.expectAlerts(phases)) this.skip();
  });
});
