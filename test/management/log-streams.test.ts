// Log streams: events reach a receiver in order and at least once, whatever fails on either side.

import { createHash, createHmac } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { databaseEvents } from '../../src/features/connections/database/base/database-declaration.ts';
import { eventIdAt } from '../../src/tenant/events.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';
import { callApi, managementClient, startManaged } from './support.ts';

interface Received {
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** Starts a receiver on loopback, whose status can be set. */
async function startReceiver() {
  const received: Received[] = [];
  let status = 200;
  let told: (() => void)[] = [];
  let before: (() => Promise<void>) | undefined;
  const server = http.createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', async () => {
      received.push({ headers: request.headers, body });
      await before?.();
      response.writeHead(status, status === 302 ? { location: 'http://127.0.0.1:9/' } : {}).end();
      for (const tell of told) tell();
      told = [];
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/logs`,
    received,
    answer: (next: number) => {
      status = next;
    },
    /** Runs a function before each response. */
    beforeAnswer: (work: () => Promise<void>) => {
      before = work;
    },
    /** Waits until the received requests satisfy a condition. */
    until: async (isRight: () => boolean) => {
      while (!isRight()) await new Promise<void>((resolve) => told.push(resolve));
    },
    close: () => server.close(),
  };
}

describe('log streams', () => {
  let server: TestServer;
  let management: ManagementClient;
  let receiver: Awaited<ReturnType<typeof startReceiver>>;

  beforeEach(async () => {
    receiver = await startReceiver();
    server = await startManaged();
    management = managementClient(server);
  });
  afterEach(async () => {
    await server.stop();
    receiver.close();
  });

  const stream = (sink: object = {}, over: object = {}) =>
    callApi(server, 'POST', '/log-streams', {
      name: 'Receiver',
      type: 'http',
      sink: { httpEndpoint: receiver.url, ...sink },
      ...over,
    }).then(async (response) => {
      expect(response.status).to.equal(200);
      return (await response.json()) as { id: string };
    });
  /** Records an event that contains this name. */
  const record = (name: string) => management.roles.create({ name });
  type Sent = {
    log_id: string;
    data: { type: string; details?: { request?: { body?: { name?: string } } } };
  };
  const eventsOf = (format = 'JSONLINES'): Sent[] =>
    receiver.received.flatMap(({ body }) => {
      if (format === 'JSONLINES') return body.split('\n').map((line) => JSON.parse(line) as Sent);
      return JSON.parse(body) as Sent | Sent[];
    });
  const namesOf = (format?: string) =>
    eventsOf(format).flatMap(({ data }) => data.details?.request?.body?.name ?? []);
  const has = (name: string, format?: string) => () => namesOf(format).includes(name);

  for (const format of ['JSONLINES', 'JSONARRAY', 'JSONOBJECT'] as const) {
    it(`sends ${format}, with the configured headers`, async () => {
      await stream({
        httpContentFormat: format,
        httpContentType: 'application/x-logs',
        httpAuthorization: 'Bearer of-the-receiver',
        httpCustomHeaders: [{ header: 'X-Tenant', value: 'example' }],
      });
      for (const name of ['one', 'two', 'three']) await record(name);
      await receiver.until(has('three', format));
      expect(namesOf(format).filter((name) => name !== 'Receiver')).to.deep.equal(['one', 'two', 'three']);
      expect(receiver.received[0]?.headers).to.include({
        authorization: 'Bearer of-the-receiver',
        'content-type': 'application/x-logs',
        'x-tenant': 'example',
      });
      const [event] = eventsOf(format);
      expect(event?.log_id).to.be.a('string');
      expect((await callApi(server, 'GET', `/logs/${event?.log_id}`)).status).to.equal(200);
    });
  }

  it('masks personal data anywhere in an event', async () => {
    const { id } = await stream({}, { pii_config: { log_fields: ['email', 'phone'], method: 'mask' } });
    await record('about ada@example.test and +441632960001');
    await receiver.until(() => receiver.received.some(({ body }) => body.includes('about')));
    const text = receiver.received.map(({ body }) => body).join('');
    expect(text).to.contain('*****').and.not.contain('ada@').and.not.contain('441632960001');
    const names = { log_fields: ['first_name', 'last_name', 'username'] };
    expect((await callApi(server, 'PATCH', `/log-streams/${id}`, { pii_config: names })).status).to.equal(
      200,
    );
    server.tenant.events.record({
      type: databaseEvents.fu,
      user_name: 'grace',
      details: { profile: { given_name: 'Grace', family_name: 'Hopper', roles: ['admiral'] } },
    });
    await receiver.until(() => receiver.received.some(({ body }) => body.includes('admiral')));
    const later = receiver.received.map(({ body }) => body).join('');
    expect(later).not.to.match(/grace|hopper/i);
  });

  it('hashes personal data with a key: equal for one user, and not computable without it', async () => {
    const hashed = { log_fields: ['email'], method: 'hash', algorithm: 'xxhash' };
    await stream({}, { pii_config: hashed });
    const users = () => eventsOf().flatMap(({ data }) => (data as { user_name?: string }).user_name ?? []);
    server.tenant.events.record({
      type: databaseEvents.fu,
      user_name: 'nobody@example.test',
      ip: '192.0.2.1',
    });
    server.tenant.events.record({
      type: databaseEvents.fu,
      user_name: ' Nobody@Example.test',
      ip: '192.0.2.2',
    });
    await receiver.until(() => users().length >= 2);
    expect(new Set(users()).size).to.equal(1);
    expect(users()[0]).to.match(/^[0-9a-f]{32}$/);
    const plain = createHash('sha256').update('nobody@example.test').digest('hex');
    expect(plain.startsWith(users()[0] ?? '')).to.equal(false);
  });

  it('rejects an invalid pii_config, with which events would be sent unmasked', async () => {
    const { id } = await stream();
    for (const pii_config of [
      { log_fields: ['shoe_size'] },
      { log_fields: ['email'], method: 'none' },
      { log_field: [] },
    ]) {
      const response = await callApi(server, 'PATCH', `/log-streams/${id}`, { pii_config });
      expect(response.status).to.equal(400);
      expect(await response.json()).to.include({ errorCode: 'invalid_body' });
    }
    await stream({}, { type: 'elsewhere', sink: {}, pii_config: { log_fields: ['shoe_size'] } });
  });

  it('signs requests, and never returns the signing secret', async () => {
    const secret = 'a-secret-for-the-receiver-alone';
    const { id } = await stream({ httpSigningSecret: secret });
    await record('signed');
    await receiver.until(has('signed'));
    for (const { headers, body } of receiver.received) {
      const [, at = '', digest] =
        /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['gatehouse-signature'])) ?? [];
      expect(digest).to.equal(createHmac('sha256', secret).update(`${at}.${body}`).digest('hex'));
    }
    for (const path of ['/log-streams', `/log-streams/${id}`])
      expect(await (await callApi(server, 'GET', path)).text()).not.to.contain(secret);
    await callApi(server, 'PATCH', `/log-streams/${id}`, { sink: { httpEndpoint: receiver.url } });
    await record('signed-still');
    await receiver.until(has('signed-still'));
    expect(receiver.received.at(-1)?.headers).to.have.property('gatehouse-signature');
    expect(receiver.received.map(({ body }) => body).join('')).not.to.contain(secret);
  });

  describe('of type file', () => {
    const file = (path: unknown) => ({ name: 'File', type: 'file', sink: { path } });

    it('writes nothing unless the operator allows it, and logs that', async () => {
      expect((await callApi(server, 'POST', '/log-streams', file('audit.jsonl'))).status).to.equal(200);
      while (!server.logged().includes('LOG_STREAM_FILES is not set')) await record(crypto.randomUUID());
      expect(existsSync(join(server.dataDir, 'log-streams'))).to.equal(false);
    });

    it('rejects paths outside of its directory', async () => {
      for (const path of ['../x', '/tmp/x', 'a/b', '.hidden', '', '..', 'a\\b', 7, undefined]) {
        const { status } = await callApi(server, 'POST', '/log-streams', file(path));
        expect(status, String(path)).to.equal(400);
      }
    });

    it('appends lines to a file for its owner alone, and continues after an incomplete line', async () => {
      await server.stop();
      server = await startManaged(undefined, undefined, { LOG_STREAM_FILES: 'on' });
      management = managementClient(server);
      const path = join(server.dataDir, 'log-streams', 'audit.jsonl');
      const lines = () => (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []);
      const reached = async (name: string) => {
        await record(name);
        while (!lines().some((line) => line.includes(name))) await record(crypto.randomUUID());
      };
      expect((await callApi(server, 'POST', '/log-streams', file('audit.jsonl'))).status).to.equal(200);
      await reached('first');
      expect(statSync(path).mode & 0o777).to.equal(0o600);
      const whole = lines().filter((line) => line !== '');
      for (const line of whole) expect(JSON.parse(line)).to.have.keys('log_id', 'data');
      appendFileSync(path, '{"log_id":"cut');
      await reached('second');
      const broken = lines().filter((line) => line !== '' && !line.endsWith('}'));
      expect(broken).to.deep.equal(['{"log_id":"cut']);
    });

    it('does not follow a symbolic link', async () => {
      await server.stop();
      server = await startManaged(undefined, undefined, { LOG_STREAM_FILES: 'on' });
      management = managementClient(server);
      const target = join(server.dataDir, 'elsewhere');
      mkdirSync(join(server.dataDir, 'log-streams'));
      symlinkSync(target, join(server.dataDir, 'log-streams', 'audit.jsonl'));
      await callApi(server, 'POST', '/log-streams', file('audit.jsonl'));
      while (!server.logged().includes('a log stream could not be sent')) await record(crypto.randomUUID());
      expect(existsSync(target)).to.equal(false);
    });
  });

  it('stores streams of other types, and logs that nothing is sent to them', async () => {
    await stream({}, { type: 'elsewhere', sink: { datadogApiKey: 'x', datadogRegion: 'us' } });
    while (!server.logged().includes('its type is not built in')) await record(crypto.randomUUID());
  });

  it('retries after growing pauses, and loses no events', async () => {
    receiver.answer(503);
    await stream();
    await record('while-down');
    await receiver.until(has('while-down'));
    const tries = receiver.received.length;
    receiver.answer(200);
    await record('also-while-down');
    // Further events do not shorten the pause.
    expect(receiver.received.length - tries).to.be.at.most(1);
    server.tick(3_600_000);
    await record('after');
    await receiver.until(has('after'));
    const names = namesOf();
    expect(names.slice(names.lastIndexOf('while-down'))).to.deep.equal([
      'while-down',
      'also-while-down',
      'after',
    ]);
  });

  it('retries at once after a change, and does not follow redirects', async () => {
    receiver.answer(302);
    const { id } = await stream({ httpAuthorization: 'Bearer of-the-receiver' });
    await record('redirected');
    await receiver.until(has('redirected'));
    receiver.answer(200);
    const before = receiver.received.length;
    await callApi(server, 'PATCH', `/log-streams/${id}`, { sink: { httpEndpoint: receiver.url } });
    await receiver.until(() => receiver.received.length > before);
    expect(receiver.received.at(-1)?.headers).not.to.have.property('authorization');
  });

  it('sends only events of the filtered categories', async () => {
    await stream({}, { filters: [{ type: 'category', name: 'management.fail' }] });
    await record('not-sent');
    // A batch may contain no event of the category.
    while ((await server.store.collection('logStreamPositions').list()).records.length === 0)
      await record(crypto.randomUUID());
    expect(receiver.received).to.deep.equal([]);
    await callApi(server, 'POST', '/roles', { name: 'not-sent' });
    await receiver.until(() => receiver.received.length > 0);
    expect(new Set(eventsOf().map(({ data }) => data.type))).to.deep.equal(new Set(['fapi']));
  });

  it('sends nothing while paused, and everything once it is active again', async () => {
    const { id } = await stream({}, { status: 'paused' });
    await record('while-paused');
    expect(receiver.received).to.deep.equal([]);
    await callApi(server, 'PATCH', `/log-streams/${id}`, { status: 'active' });
    await receiver.until(has('while-paused'));
  });

  it('is suspended if its receiver accepts nothing for a week', async () => {
    receiver.answer(500);
    const { id } = await stream();
    await receiver.until(() => receiver.received.length > 0);
    const statusNow = async () =>
      ((await (await callApi(server, 'GET', `/log-streams/${id}`)).json()) as { status: string }).status;
    while ((await server.store.collection('logStreamPositions').get(id)) === undefined)
      await record(crypto.randomUUID());
    server.tick(8 * 86_400_000);
    const tried = receiver.received.length;
    await callApi(server, 'POST', '/roles', { name: 'late' });
    await receiver.until(() => receiver.received.length > tried);
    while ((await statusNow()) !== 'suspended') await callApi(server, 'POST', '/roles', { name: 'late' });
    receiver.answer(200);
    await callApi(server, 'PATCH', `/log-streams/${id}`, { status: 'active' });
    await receiver.until(has('late'));
  });

  it('is not suspended if it is changed while its receiver fails after a week', async () => {
    receiver.answer(500);
    const { id } = await stream();
    await receiver.until(() => receiver.received.length > 0);
    const position = () => server.store.collection('logStreamPositions').get(id);
    await until(async () => (await position()) !== undefined);
    receiver.beforeAnswer(async () => {
      receiver.beforeAnswer(async () => undefined);
      await callApi(server, 'PATCH', `/log-streams/${id}`, { name: 'Mended' });
    });
    server.tick(8 * 86_400_000);
    await record('late');
    await until(async () => ((await position())?.failures ?? 0) > 1);
    receiver.answer(200);
    for (let n = 0; n < 10; n++) {
      await record(`after-the-change-${n}`);
      const shown = await (await callApi(server, 'GET', `/log-streams/${id}`)).json();
      expect(shown).to.include({ name: 'Mended', status: 'active' });
    }
    await receiver.until(has('after-the-change-9'));
  });

  it('begins with events since startFrom', async () => {
    await record('before');
    await stream({}, { startFrom: new Date(Date.now() - 60_000).toISOString() });
    await receiver.until(has('before'));
  });

  it('seals secrets and keeps them out of the log, and rejects options that cannot be used', async () => {
    const secret = 'Bearer nobody-reads-this';
    await stream({ httpAuthorization: secret });
    await receiver.until(() => receiver.received.length > 0);
    expect(JSON.stringify(receiver.received.map(({ body }) => body))).not.to.contain(secret);
    const sinks = [
      {},
      { httpEndpoint: 'ftp://127.0.0.1/' },
      { httpEndpoint: 'https://user:password@127.0.0.1/' },
      { httpEndpoint: receiver.url, httpAuthorization: 'a\r\nx: b' },
      { httpEndpoint: receiver.url, httpCustomHeaders: [{ header: 'Host', value: 'x' }] },
      { httpEndpoint: receiver.url, httpContentFormat: 'XML' },
    ];
    for (const sink of sinks) {
      const refused = await callApi(server, 'POST', '/log-streams', { name: 'x', type: 'http', sink });
      expect(refused.status, JSON.stringify(sink)).to.equal(400);
    }
  });

  it('deletes the position of a deleted stream', async () => {
    const { id } = await stream();
    await record('sent');
    await receiver.until(has('sent'));
    // The cleanup of deploy tools deletes twice.
    for (let n = 0; n < 2; n++)
      expect((await callApi(server, 'DELETE', `/log-streams/${id}`)).status).to.equal(204);
    const sent = receiver.received.length;
    await record('not-sent');
    await server.stop();
    expect(receiver.received.length).to.equal(sent);
    server = await startManaged();
  });

  /**
   * Runs a test whose server can be restarted on the same data directory.
   * @param work gets a function that starts the server again.
   */
  const inOneDirectory = async (work: (start: () => Promise<void>) => Promise<void>): Promise<void> => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-streams-'));
    const start = async () => {
      server = await startManaged(undefined, dataDir);
      management = managementClient(server);
    };
    await server.stop();
    await start();
    await work(start);
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
    server = await startManaged();
  };

  it('continues after a restart with the first unsent event', () =>
    inOneDirectory(async (start) => {
      receiver.answer(503);
      await stream({}, { startFrom: new Date(Date.now() - 1_000).toISOString() });
      await record('before-the-stop');
      await receiver.until(has('before-the-stop'));
      await server.stop();
      receiver.answer(200);
      await start();
      server.tick(3_600_000);
      await record('after-the-stop');
      await receiver.until(has('after-the-stop'));
      const names = namesOf();
      expect(names.slice(names.lastIndexOf('before-the-stop'))).to.deep.equal([
        'before-the-stop',
        'after-the-stop',
      ]);
    }));

  it('sends new events after the clock was a day ahead and the server restarted with the right time', () =>
    inOneDirectory(async (start) => {
      const { id } = await stream();
      server.tick(86_400_000);
      await record('of-tomorrow');
      await receiver.until(has('of-tomorrow'));
      const place = async () => (await server.store.collection('logStreamPositions').get(id))?.after ?? '';
      await until(async () => (await place()) > eventIdAt(Date.now() - 3_600_000));
      await server.stop();
      await start();
      await record('of-today');
      await receiver.until(has('of-today'));
      expect(server.logged()).to.contain('a log stream goes on from now: the clock was ahead');
    }));
});
