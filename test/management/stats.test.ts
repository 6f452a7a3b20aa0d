// Statistics for each day, counted from the log, and the number of active users.
import { expect } from 'chai';
import { eventIdAt } from '../../src/tenant/events.ts';
import { aUser } from '../store/contract.ts';
import type { TestServer } from '../support/server.ts';
import { managementToken, startManaged } from './support.ts';

const DAY = 86_400_000;

describe('/stats', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged({ databases: [{ name: 'users' }] });
  });
  after(() => server.stop());

  it('counts the events of each day from midnight to midnight', async () => {
    const midnight = Math.floor(Date.now() / DAY) * DAY - 3 * DAY;
    const events: [number, string][] = [
      [midnight - 1, 's'],
      [midnight, 's'],
      [midnight + 1, 'f'],
      [midnight + 2, 'ss'],
      [midnight + DAY - 1, 's'],
      [midnight + DAY, 'ss'],
    ];
    for (const [n, [at, type]] of events.entries()) {
      const id = `${eventIdAt(at)}${String(n).padStart(24, '0')}`;
      await server.store.collection('logs').insert({ id, type, date: new Date(at).toISOString() });
    }
    const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10).replaceAll('-', '');
    const query = `from=${dayOf(midnight)}&to=${dayOf(midnight + DAY)}`;
    const answer = await fetch(`${server.url}/api/v2/stats/daily?${query}`, {
      headers: { authorization: `Bearer ${await managementToken(server)}` },
    });
    const none = { leaked_passwords: 0 };
    const days = (await answer.json()) as Record<string, unknown>[];
    expect(days.map(({ updated_at: _updated, ...day }) => day)).to.deep.equal([
      {
        date: new Date(midnight).toISOString(),
        created_at: new Date(midnight).toISOString(),
        logins: 2,
        signups: 1,
        ...none,
      },
      {
        date: new Date(midnight + DAY).toISOString(),
        created_at: new Date(midnight + DAY).toISOString(),
        logins: 0,
        signups: 1,
        ...none,
      },
    ]);
  });

  it('counts users whose last login is at most 30 days ago', async () => {
    const now = Date.now();
    const logins = [0, 1, DAY, 29 * DAY, 30 * DAY - 60_000, 30 * DAY + 60_000, 31 * DAY, 400 * DAY];
    for (const [n, ago] of [...logins, undefined].entries()) {
      const id = `auth0|${String(n).padStart(24, '0')}`;
      const at = new Date(now - (ago ?? 0)).toISOString();
      const user = { ...aUser(id), ...(ago !== undefined && { last_login: at }) };
      await server.store.collection('users').insert(user);
    }
    const answer = await fetch(`${server.url}/api/v2/stats/active-users`, {
      headers: { authorization: `Bearer ${await managementToken(server)}` },
    });
    expect(await answer.json()).to.equal(5);
  });
});
