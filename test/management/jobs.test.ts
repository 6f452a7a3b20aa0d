// Jobs and tickets of the Management API.
import { gunzipSync } from 'node:zlib';
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import pino from 'pino';
import { createUserJobs } from '../../src/features/management/jobs/user-jobs.ts';
import { createBackground } from '../../src/runtime/background.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { createLeases } from '../../src/store/leases.ts';
import { createAgent } from '../support/agent.ts';
import type { TestServer } from '../support/server.ts';
import { aMoment, every, until } from '../support/wait-until.ts';
import { managementToken, startManaged } from './support.ts';

const TENANT = {
  databases: [
    { name: 'people', enabled_clients: ['web'], options: { passwordPolicy: 'low' } },
    {
      name: 'numbered',
      options: {
        attributes: {
          phone_number: {
            identifier: { active: true },
            profile_required: true,
            signup: { status: 'required' },
          },
          email: { signup: { status: 'optional' } },
          username: { identifier: { active: true } },
        },
      },
    },
  ],
  clients: [
    {
      client_id: 'web',
      client_secret: 'web-secret-of-the-jobs-tests',
      name: 'Web',
      app_type: 'regular_web',
      grant_types: ['password'],
    },
  ],
  tenant: { default_directory: 'people' },
};

interface JobView {
  id: string;
  status: string;
  location?: string;
  status_details?: string;
  summary?: object;
}

describe('/jobs and /tickets', () => {
  let server: TestServer;
  let token: string;
  let connectionId: string;

  before(async () => {
    server = await startManaged(TENANT);
    token = await managementToken(server);
    const { body } = await api('GET', '/connections?name=people');
    connectionId = (body as { id: string }[])[0]?.id ?? '';
  });
  after(() => server.stop());

  const api = async (method: string, path: string, body?: unknown, by = token) => {
    const isForm = body instanceof FormData;
    const response = await fetch(`${server.url}/api/v2${path}`, {
      method,
      headers: {
        authorization: `Bearer ${by}`,
        ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
  };
  const importing = (users: unknown, fields: Record<string, string> = {}) => {
    const form = new FormData();
    const all = { connection_id: connectionId, ...fields };
    for (const [name, value] of Object.entries(all)) form.set(name, value);
    const text = typeof users === 'string' ? users : JSON.stringify(users);
    form.set('users', new Blob([text], { type: 'application/json' }), 'users.json');
    return api('POST', '/jobs/users-imports', form);
  };
  const finished = async ({ id }: { id: string }): Promise<JobView> => {
    let job: JobView | undefined;
    await until(async () => {
      job = (await api('GET', `/jobs/${id}`)).body as JobView;
      return job.status === 'completed' || job.status === 'failed';
    }, every(20));
    return job as unknown as JobView;
  };
  const logIn = async (username: string, password: string) => {
    const response = await fetch(`${server.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        grant_type: 'password',
        client_id: 'web',
        client_secret: 'web-secret-of-the-jobs-tests',
        username,
        password,
      }),
    });
    return response.status;
  };

  it('imports users, who can log in with their old passwords', async () => {
    const users = Array.from({ length: 120 }, (_, index) => ({
      user_id: `import-${String(index).padStart(3, '0')}`,
      email: `import-${index}@example.test`,
      email_verified: true,
    }));
    const profile = {
      middle_name: 'King',
      preferred_username: 'ada',
      profile: 'https://ada.example.test/',
      website: 'https://example.test/',
      gender: 'female',
      birthdate: '1815-12-10',
      zoneinfo: 'Europe/London',
      locale: 'en-GB',
      phone_number: '+15550100299',
      address: { country: 'GB' },
    };
    Object.assign(users[2] ?? {}, profile);
    Object.assign(users[0] ?? {}, { password_hash: await bcrypt.hash('Imported-Horse-1', 4) });
    Object.assign(users[1] ?? {}, {
      custom_password_hash: {
        algorithm: 'sha1',
        hash: { value: 'loQy6bsIeIaJSvDVeXZWHCOsKlI=', encoding: 'base64' },
        salt: { value: '00ff10', encoding: 'hex', position: 'suffix' },
      },
    });
    const begun = await importing(users, { external_id: 'mine' });
    expect(begun.status).to.equal(202);
    expect(begun.body).to.include({
      type: 'users_import',
      status: 'pending',
      connection_id: connectionId,
      external_id: 'mine',
    });
    const job = await finished(begun.body as JobView);
    expect(job.summary).to.deep.equal({ total: 120, inserted: 120, updated: 0, failed: 0 });
    expect((await api('GET', `/jobs/${job.id}/errors`)).status).to.equal(204);
    expect(await logIn('import-0@example.test', 'Imported-Horse-1')).to.equal(200);
    expect(await logIn('import-1@example.test', 'wrong')).to.equal(403);
    expect(await logIn('import-1@example.test', 'correct horse é')).to.equal(200);
    expect((await api('GET', '/users/auth0%7Cimport-002')).body).to.deep.include(profile);
    const { passwordHash } = (await server.store.collection('credentials').get('auth0|import-001')) ?? {};
    expect(passwordHash).to.match(/^\$argon2id\$/);
  });

  it("does not import a user without a required identifier, with another user's number as username, or with invisible letters in it, and reports why", async () => {
    const { body: found } = await api('GET', '/connections?name=numbered');
    const connection_id = (found as { id: string }[])[0]?.id ?? '';
    const users = [
      { email: 'numberless@example.test' },
      { phone_number: '+14155550171' },
      { phone_number: '+14155550172', username: '+14155550171' },
      { phone_number: '+14155550173', username: 'numbered\u3164' },
    ];
    const begun = await importing(users, { connection_id });
    const job = await finished(begun.body as JobView);
    expect(job.summary).to.deep.equal({ total: 4, inserted: 1, updated: 0, failed: 3 });
    const { body } = await api('GET', `/jobs/${job.id}/errors`);
    expect(body).to.deep.equal([
      {
        user: users[0],
        errors: [
          {
            code: 'OBJECT_REQUIRED',
            message: 'Missing required property: phone_number',
            path: 'phone_number',
          },
        ],
      },
      {
        user: users[2],
        errors: [
          {
            code: 'NOT_PASSED',
            message: 'A username must be no e-mail address or phone number that others log in with',
            path: 'username',
          },
        ],
      },
      {
        user: users[3],
        errors: [
          { code: 'NOT_PASSED', message: 'A username must have no invisible letters', path: 'username' },
        ],
      },
    ]);
    expect(await server.users.withEmail('numberless@example.test')).to.deep.equal([]);
  });

  it('reports each user that was not imported, without password hashes', async () => {
    const hash = { algorithm: 'md5', hash: { value: 'ff', encoding: 'hex' } };
    const begun = await importing([
      { email: 'twice@example.test' },
      { email: 'twice@example.test' },
      { email: 'import-0@example.test' },
      { email: 'bad' },
      { given_name: 'Nobody' },
      { email: 'x@example.test', admin: true },
      { email: 'y@example.test', app_metadata: { user_id: 'auth0|other' } },
      { email: 'z@example.test', custom_password_hash: hash },
      { email: 5 },
    ]);
    const job = await finished(begun.body as JobView);
    expect(job).to.include({ status: 'completed' });
    expect(job.summary).to.deep.equal({ total: 9, inserted: 1, updated: 0, failed: 8 });
    const { body } = await api('GET', `/jobs/${job.id}/errors`);
    const errors = body as { user: object; errors: { code: string }[] }[];
    expect(errors.map((one) => one.errors[0]?.code).sort()).to.deep.equal(
      [
        'DUPLICATED_USER',
        'DUPLICATED_USER',
        'FORMAT',
        'ANY_OF_MISSING',
        'NOT_PASSED',
        'NOT_PASSED',
        'FORMAT',
        'INVALID_TYPE',
      ].sort(),
    );
    expect(errors.find(({ user }) => 'custom_password_hash' in user)?.user).to.deep.equal({
      email: 'z@example.test',
      custom_password_hash: '*****',
    });
    expect(server.logged()).not.to.contain('"value":"ff"');
  });

  it('stores no more metadata of a user than there may be, whether at once or in addition', async () => {
    const email = 'full@example.test';
    const user = (member: string, length: number) => ({
      email,
      user_metadata: { [member]: 'x'.repeat(length) },
    });
    const summaryOf = async (users: unknown, upsert: boolean) =>
      (await finished((await importing(users, upsert ? { upsert: 'true' } : {})).body as JobView)).summary;
    expect(await summaryOf([user('a', 262_144)], false)).to.include({ inserted: 0, failed: 1 });
    expect(await summaryOf([user('a', 200_000)], false)).to.include({ inserted: 1, failed: 0 });
    await summaryOf([user('b', 200_000)], true);
    const [stored] = await server.users.withEmail(email);
    expect(JSON.stringify(stored?.user_metadata).length).to.be.within(200_000, 262_144);
  });

  it('updates existing users with upsert, and keeps their passwords', async () => {
    const user = { email: 'Import-0@example.test', app_metadata: { plan: 'gold' }, given_name: 'Ada' };
    const password_hash = await bcrypt.hash('Somebody-Elses-1', 4);
    const begun = await importing([{ ...user, password_hash }], { upsert: 'true' });
    const job = await finished(begun.body as JobView);
    expect(job.summary).to.deep.equal({ total: 1, inserted: 0, updated: 1, failed: 0 });
    const stored = await server.users.get('auth0|import-000');
    expect(stored).to.deep.include({
      given_name: 'Ada',
      app_metadata: { plan: 'gold' },
      email_verified: true,
    });
    expect(await logIn('import-0@example.test', 'Somebody-Elses-1')).to.equal(403);
    expect(await logIn('import-0@example.test', 'Imported-Horse-1')).to.equal(200);
  });

  it('rejects files that are too large or not a form, and connections that are not databases', async () => {
    const large = await importing(`[${'x'.repeat(512_001)}]`);
    expect(large.status).to.equal(413);
    expect(large.body).to.include({
      message: 'Payload content length greater than maximum allowed: 512000',
    });
    expect((await importing('[]', { connection_id: 'con_nowhere' })).status).to.equal(400);
    expect((await importing('[]', { admin: 'true' })).status).to.equal(400);
    expect((await api('POST', '/jobs/users-imports', { connection_id: connectionId })).status).to.equal(400);
    const broken = await finished((await importing('[{"email":')).body as JobView);
    expect(broken).to.include({ status: 'failed' });
    expect(broken.status_details).to.contain('JSON');
    expect((await api('GET', '/jobs/job_nowhere')).status).to.equal(404);
    const weak = await managementToken(server, 'read:users');
    expect((await api('POST', '/jobs/users-imports', new FormData(), weak)).status).to.equal(403);
  });

  it('rejects a form that is too large beside its file, though it does not say how large it is', async () => {
    const sendInParts = async (preamble: string) => {
      const part = (name: string, content: string) =>
        `--x\r\nContent-Disposition: form-data; name=${name}\r\n\r\n${content}\r\n`;
      const form = `${preamble}\r\n${part('connection_id', connectionId)}${part('"users"; filename="a.json"', '[]')}--x--\r\n`;
      const { status } = await fetch(`${server.url}/api/v2/jobs/users-imports`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'multipart/form-data; boundary=x' },
        body: new Blob([form]).stream(),
        duplex: 'half',
      } as RequestInit);
      return status;
    };
    expect(await sendInParts('')).to.equal(202);
    expect(await sendInParts('a'.repeat(600_000))).to.equal(413);
  });

  it('continues a job after a restart, and deletes the input of a finished one', async () => {
    const { store } = server;
    const process = (ending: AbortSignal) => {
      const log = pino({ level: 'silent' });
      const own = { store, clock: Date.now, random: systemRandom };
      const deps = { ...own, log, background: createBackground(log), leases: createLeases(own) };
      return { ...deps, jobs: createUserJobs({ ...deps, ending, endBlocked: async () => undefined }) };
    };
    const end = new AbortController();
    const first = process(end.signal);
    const users = Array.from({ length: 400 }, (_, index) => ({ email: `again-${index}@example.test` }));
    const about = { connection_id: connectionId, connection: 'people' };
    const { id } = await first.jobs.start({ type: 'users_import', ...about }, JSON.stringify(users));
    while (((await first.jobs.get(id))?.processed ?? 0) === 0) await new Promise(setImmediate);
    end.abort();
    await first.background.flush();
    const left = await first.jobs.get(id);
    expect(left).to.include({ status: 'processing' });
    expect(left?.processed).to.be.lessThan(400);
    process(new AbortController().signal).jobs.resume();
    const job = await finished({ id });
    expect(job.summary).to.deep.equal({ total: 400, inserted: 400, updated: 0, failed: 0 });
    while ((await first.jobs.parts(id, 'input')).length > 0) await aMoment();
  });

  it('fails an import whose connection is deleted while it runs, and leaves none of its users', async () => {
    const { body } = await api('POST', '/connections', { name: 'short-lived', strategy: 'auth0' });
    const { id } = body as { id: string };
    const { batch } = server.store;
    let deleting: Promise<unknown> | undefined;
    Object.assign(server.store, {
      batch: async (writes: Parameters<typeof batch>[0]) => {
        const isImport = writes.some(
          (write) =>
            'insert' in write && 'email' in write.insert && write.insert.email === 'late@example.test',
        );
        if (isImport) deleting ??= api('DELETE', `/connections/${id}`);
        await deleting;
        return batch.call(server.store, writes);
      },
    });
    try {
      const started = await importing([{ email: 'late@example.test' }], { connection_id: id });
      const job = await finished(started.body as JobView);
      expect(job).to.include({ status: 'failed', status_details: 'The connection does not exist.' });
      expect(await server.users.withEmail('late@example.test')).to.deep.equal([]);
    } finally {
      Object.assign(server.store, { batch });
    }
  });

  it('exports users with the requested fields, by a link that is valid for a minute', async () => {
    const fields = [
      { name: 'user_id', export_as: 'ID' },
      { name: 'email' },
      { name: 'identities[0].connection', export_as: 'from' },
    ];
    const begun = await api('POST', '/jobs/users-exports', { format: 'csv', limit: 2, fields });
    expect(begun.status).to.equal(200);
    const job = await finished(begun.body as JobView);
    const response = await fetch(job.location ?? '');
    expect(response.status).to.equal(200);
    const lines = gunzipSync(Buffer.from(await response.arrayBuffer()))
      .toString()
      .split('\r\n');
    expect(lines[0]).to.equal('ID,email,from');
    expect(lines[1]).to.match(/^auth0\|\S+,\S+@example\.test,people$/);
    expect(lines.filter((line) => line !== '')).to.have.length(3);

    const all = await finished((await api('POST', '/jobs/users-exports', {})).body as JobView);
    const text = gunzipSync(Buffer.from(await (await fetch(all.location ?? '')).arrayBuffer())).toString();
    const users = text.trim().split('\n');
    expect(users.length).to.equal(await server.store.collection('users').count());
    expect(text).not.to.contain('$argon2');

    const forged = new URL(job.location ?? '');
    forged.searchParams.set('expires', String(Number(forged.searchParams.get('expires')) + 60));
    expect((await fetch(forged)).status).to.equal(403);
    const creator = await managementToken(server, 'create:users');
    expect((await api('GET', `/jobs/${job.id}`, undefined, creator)).body).not.to.have.property('location');
    server.tick(61_000);
    expect((await fetch(job.location ?? '')).status).to.equal(403);
    token = await managementToken(server);
  });

  it('sends a verification e-mail', async () => {
    const job = await api('POST', '/jobs/verification-email', { user_id: 'auth0|import-002' });
    expect(job.status).to.equal(201);
    expect(job.body).to.include({ type: 'verification_email', status: 'pending' });
    expect((await finished(job.body as JobView)).status).to.equal('completed');
    const missing = await api('POST', '/jobs/verification-email', { user_id: 'auth0|nobody' });
    expect(missing.status).to.equal(404);
  });

  /** Opens the page of a link. @returns a function that posts its form */
  const opened = async (link: string) => {
    const agent = createAgent(server);
    const url = new URL(link);
    const page = (await agent.get(`${url.pathname}${url.search}`)).text;
    const _csrf = /name="_csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';
    const ticket = url.searchParams.get('ticket') ?? '';
    return (fields: Record<string, string>) =>
      agent.request(url.pathname, { method: 'POST', form: { _csrf, ticket, ...fields } });
  };
  const use = async (link: string, fields: Record<string, string>) => (await opened(link))(fields);
  const ticketOf = (answer: { body: unknown }) => (answer.body as { ticket: string }).ticket;

  it('creates a ticket that sets a password once, and redirects to its result_url', async () => {
    const ask = {
      user_id: 'auth0|import-003',
      result_url: 'https://shop.example.test/done?a=b',
      includeEmailInRedirect: true,
    };
    const made = await api('POST', '/tickets/password-change', ask);
    expect(made.status).to.equal(201);
    const link = ticketOf(made);
    expect(link).to.match(/\/u\/reset-password\?ticket=[\w-]{43}#$/);
    const password = 'New-Horse-99';
    const [first, second] = [await opened(link), await opened(link)];
    const used = await first({ password, repeat: password });
    expect(used.status).to.equal(303);
    const target = new URL(used.location);
    expect(target.origin).to.equal('https://shop.example.test');
    expect(Object.fromEntries(target.searchParams)).to.include({
      a: 'b',
      success: 'true',
      email: 'import-3@example.test',
    });
    expect(await logIn('import-3@example.test', password)).to.equal(200);
    expect((await second({ password: 'Other-Horse-1', repeat: 'Other-Horse-1' })).status).to.equal(400);
    expect(await logIn('import-3@example.test', 'Other-Horse-1')).to.equal(403);
  });

  it('lets one of several concurrent tickets set the password, and none after another change of it', async () => {
    const email = 'import-4@example.test';
    const ask = { user_id: 'auth0|import-004' };
    const links = async () =>
      Promise.all(
        Array.from({ length: 8 }, async () => ticketOf(await api('POST', '/tickets/password-change', ask))),
      );
    const forms = await Promise.all((await links()).map(opened));
    const passwordOf = (i: number) => `Racing-Horse-${i}`;
    const ends = await Promise.all(
      forms.map((form, i) => form({ password: passwordOf(i), repeat: passwordOf(i) })),
    );
    const winners = ends.flatMap(({ status }, i) => (status === 200 ? [i] : []));
    expect(winners, ends.map(({ status }) => status).join()).to.have.length(1);
    expect(await logIn(email, passwordOf(winners[0] ?? -1))).to.equal(200);
    const [later = ''] = await links();
    const form = await opened(later);
    await server.users.setPassword(ask.user_id, 'Set-Meanwhile-5');
    expect((await form({ password: passwordOf(9), repeat: passwordOf(9) })).status).to.equal(400);
    expect(await logIn(email, 'Set-Meanwhile-5')).to.equal(200);
  });

  it('verifies an address by a password ticket only if asked to', async () => {
    const begun = await importing([
      { email: 'plain@example.test', user_id: 'plain', user_metadata: { color: 'blue' } },
      { email: 'mark@example.test', user_id: 'mark', user_metadata: { color: 'blue' } },
    ]);
    await finished(begun.body as JobView);
    for (const [name, mark_email_as_verified] of [
      ['plain', false],
      ['mark', true],
    ] as const) {
      const by = { email: `${name}@example.test`, connection_id: connectionId, mark_email_as_verified };
      const made = await api('POST', '/tickets/password-change', by);
      await use(ticketOf(made), { password: 'New-Horse-99', repeat: 'New-Horse-99' });
      const user = await server.users.get(`auth0|${name}`);
      expect(user, name).to.deep.include({
        email_verified: mark_email_as_verified,
        user_metadata: { color: 'blue' },
      });
    }
    const made = await api('POST', '/tickets/email-verification', { user_id: 'auth0|plain' });
    expect(made.status).to.equal(201);
    expect(ticketOf(made)).to.match(/\/u\/email-verification\?ticket=[\w-]{43}#$/);
    await use(ticketOf(made), { decision: 'verify' });
    expect(await server.users.get('auth0|plain')).to.include({ email_verified: true });
  });

  it('creates no ticket for an unknown user, with conflicting members, or without the scope, and logs none', async () => {
    const refused = async (path: string, body: object, status: number) =>
      expect((await api('POST', `/tickets/${path}`, body)).status, JSON.stringify(body)).to.equal(status);
    await refused('password-change', { user_id: 'auth0|nobody' }, 404);
    await refused('email-verification', { user_id: 'auth0|nobody' }, 404);
    await refused('password-change', {}, 400);
    const user_id = 'auth0|plain';
    await refused('password-change', { user_id, result_url: 'javascript:alert(1)' }, 400);
    await refused('password-change', { user_id, result_url: 'https://a.test', client_id: 'web' }, 400);
    await refused('password-change', { user_id, client_id: 'nobody' }, 404);
    await refused('password-change', { user_id, ttl_sec: -1 }, 400);
    const weak = await managementToken(server, 'read:users update:users');
    expect((await api('POST', '/tickets/password-change', { user_id }, weak)).status).to.equal(403);
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    expect(JSON.stringify(records)).not.to.contain('reset-password?ticket=');
  });
});
