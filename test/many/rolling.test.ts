// Worker processes that are replaced one after another, while a device waits for logins to approve.
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import https from 'node:https';
import { expect } from 'chai';
import { type Device, devicesOf } from '../factors/device.ts';
import { callsOf, tenant } from '../factors/tenant.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { every, until } from '../support/wait-until.ts';
import { type Processes, startProcesses } from './processes.ts';

describe('worker processes that are replaced', () => {
  let processes: Processes;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    processes = await startProcesses(2, { ...tenant, ...UNLIMITED });
    calls = callsOf(processes.server);
  });
  after(() => processes?.stop());
  const devices = devicesOf(() => ({
    server: processes.server,
    calls,
    someone: () => `mfa-${people++}@example.test`,
  }));

  /** Reads a device's event stream, reopening it whenever it ends, as the page does. @returns what was received, and the faults. */
  function follow(device: Device) {
    const { url, ca } = processes.server;
    const faults: string[] = [];
    let text = '';
    let opened = 0;
    let current: ClientRequest | undefined;
    let isOver = false;
    const open = async () => {
      const assertion = await devices.sign(device.key, { sub: device.id });
      current = https.get(`${url}/authenticator/events?assertion=${assertion}`, { ca, agent: false });
      const [response] = (await once(current, 'response')) as [IncomingMessage];
      if (response.statusCode !== 200) faults.push(`status ${response.statusCode}`);
      opened += 1;
      for await (const piece of response) text += String(piece);
    };
    const all = (async () => {
      while (!isOver) await open().catch((error: Error) => isOver || faults.push(error.message));
    })();
    return {
      faults,
      text: () => text,
      opened: () => opened,
      end: async () => {
        isOver = true;
        current?.destroy();
        await all;
      },
    };
  }

  it('end the streams of devices properly, keep logins that wait for approval, and fail no request', async () => {
    const { user, device } = await devices.enrolled();
    const stream = follow(device);
    const challenge = await devices.challenged(user);
    const [waiting] = await devices.waiting(device);
    const id = waiting?.id ?? '';
    await until(() => stream.text().includes(id), every(50));
    const before = stream.opened();
    const exchanged = processes.server.line((line) => line.includes('all workers were exchanged'));
    let isExchanged = false;
    void exchanged.then(() => (isExchanged = true));
    processes.server.child.kill('SIGHUP');
    const statuses = new Set<number>();
    const pause = every(20);
    for (; !isExchanged; await pause()) statuses.add((await devices.requests(device)).status);
    await until(() => stream.opened() > before, every(50));
    // The next process sends the waiting login again.
    await until(() => stream.text().split(id).length > 2, every(50));
    expect((await devices.answerWith(device, id, 'allow')).status).to.equal(204);
    const done = await calls.verify('oob', challenge);
    expect(done.status, done.text).to.equal(200);
    await stream.end();
    expect(stream.faults).to.deep.equal([]);
    expect([...statuses]).to.deep.equal([200]);
  });
});
