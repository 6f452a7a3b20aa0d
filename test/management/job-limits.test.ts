// The limits on the number of jobs, their duration, and how long they are kept.

import { expect } from 'chai';
import pino from 'pino';
import { createUserJobs } from '../../src/features/management/jobs/user-jobs.ts';
import type { JobRecord } from '../../src/records/state/jobs.ts';
import { createBackground } from '../../src/runtime/background.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { createLeases } from '../../src/store/leases.ts';
import type { TestServer } from '../support/server.ts';
import { aMoment } from '../support/wait-until.ts';
import { callApi, managementClient, managementToken, startManaged } from './support.ts';

describe('limits of jobs', () => {
  let server: TestServer;

  beforeEach(async () => {
    server = await startManaged();
  });
  afterEach(() => server.stop());

  const waiting = (id: string): JobRecord => ({
    id,
    type: 'users_import',
    status: 'pending',
    created_at: new Date().toISOString(),
    processed: 0,
  });
  const jobOf = async (id: string) => {
    const response = await callApi(server, 'GET', `/jobs/${id}`);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  it('rejects a job while a hundred are unfinished', async () => {
    const jobs = server.store.collection('jobs');
    for (let index = 0; index < 100; index++) await jobs.insert(waiting(`job_${index}`));
    const refused = await callApi(server, 'POST', '/jobs/users-exports', {});
    expect(refused.status).to.equal(429);
    expect(await refused.json()).to.include({ statusCode: 429, errorCode: 'too_many_requests' });
    await jobs.update('job_7', (job) => ({ ...job, status: 'completed' }));
    expect((await callApi(server, 'POST', '/jobs/users-exports', {})).status).to.equal(200);
  });

  it('ends a job as failed after two hours', async () => {
    const { store } = server;
    const log = pino({ level: 'silent' });
    const background = createBackground(log);
    let now = Date.now();
    const own = { store, clock: () => now, random: systemRandom };
    const deps = { ...own, log, background, leases: createLeases(own) };
    const ended = AbortSignal.abort();
    const endBlocked = async () => undefined;
    const about = { type: 'users_import', connection_id: 'con_unknown', connection: 'x' } as const;
    const { id } = await createUserJobs({ ...deps, ending: ended, endBlocked }).start(about, '[]');
    await background.flush();
    const begun = now;
    await store.collection('jobs').update(id, (job) => ({ ...job, status: 'processing', startedAt: begun }));
    now += 2 * 3_600_000 + 1;
    createUserJobs({ ...deps, ending: new AbortController().signal, endBlocked }).resume();
    await background.flush();
    expect((await jobOf(id)).body).to.include({
      status: 'failed',
      status_details: 'The job took longer than two hours.',
    });
    // The input may contain password hashes.
    expect(await store.collection('jobParts').findBy('job', `${id}\ninput`)).to.deep.equal([]);
  });

  it('deletes a job and its errors after a day', async () => {
    const { data } = await managementClient(server).connections.list({ strategy: ['auth0'] });
    const form = new FormData();
    form.set('connection_id', String(data[0]?.id));
    form.set('users', new Blob([JSON.stringify([{ email: 'no address' }])]), 'users.json');
    const token = await managementToken(server);
    const begun = await fetch(`${server.url}/api/v2/jobs/users-imports`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: form,
    });
    expect(begun.status).to.equal(202);
    const { id } = (await begun.json()) as { id: string };
    while ((await jobOf(id)).body.status !== 'completed') await aMoment();
    const errors = await callApi(server, 'GET', `/jobs/${id}/errors`);
    expect(errors.status).to.equal(200);
    expect(await errors.json()).to.have.length(1);
    server.tick(23 * 3_600_000);
    expect((await jobOf(id)).status).to.equal(200);
    server.tick(3_600_000 + 5_000);
    expect((await jobOf(id)).status).to.equal(404);
    expect((await callApi(server, 'GET', `/jobs/${id}/errors`)).status).to.equal(404);
    expect(await server.store.collection('jobParts').findBy('job', `${id}\nerrors`)).to.deep.equal([]);
  });
});
