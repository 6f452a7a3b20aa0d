// Log streams: what the log records reaches a receiver in its order, at least once, whatever becomes of either side.

import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { callApi, managementClient, startManaged } from './support.ts';

interface Received {
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** A receiver on loopback that answers as it is told. */
async function startReceiver() {
  const received: Received[] = [];
  let status = 200;
  let told: (() => void)[] = [];
  const server = http.createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      received.push({ headers: request.headers, body });
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
    /** Waits until what was received is as it should be. */
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
  /** Records an event, which the log knows by this name. */
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
    it(`send ${format}, with what the receiver asks for in the header`, async () => {
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

  it('are refused where their events were to be masked, which nothing does', async () => {
    const pii_config = { log_fields: ['email'], method: 'mask' };
    const { id } = await stream();
    for (const [method, path, body] of [
      ['PATCH', `/log-streams/${id}`, { pii_config }],
      ['POST', '/log-streams', { type: 'http', sink: { httpEndpoint: receiver.url }, pii_config }],
    ] as const) {
      const response = await callApi(server, method, path, body);
      expect(response.status, method).to.equal(400);
      expect(await response.json()).to.include({ errorCode: 'invalid_body' });
    }
    expect((await callApi(server, 'PATCH', `/log-streams/${id}`, { name: 'Renamed' })).status).to.equal(200);
    await stream({}, { type: 'splunk', sink: {}, pii_config });
  });

  it('try again after pauses that grow, and lose nothing meanwhile', async () => {
    receiver.answer(503);
    await stream();
    await record('while-down');
    await receiver.until(has('while-down'));
    const tries = receiver.received.length;
    receiver.answer(200);
    await record('also-while-down');
    // The pause is not over, however often something else happens.
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

  it('are tried at once when they are changed, and follow nobody elsewhere', async () => {
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

  it('send the categories that they are filtered by', async () => {
    await stream({}, { filters: [{ type: 'category', name: 'management.fail' }] });
    await record('not-sent');
    // Nothing of a batch may be for it.
    while ((await server.store.collection('logStreamPositions').list()).records.length === 0)
      await record(crypto.randomUUID());
    expect(receiver.received).to.deep.equal([]);
    await callApi(server, 'POST', '/roles', { name: 'not-sent' });
    await receiver.until(() => receiver.received.length > 0);
    expect(new Set(eventsOf().map(({ data }) => data.type))).to.deep.equal(new Set(['fapi']));
  });

  it('send nothing while they are paused, and all of it afterwards', async () => {
    const { id } = await stream({}, { status: 'paused' });
    await record('while-paused');
    expect(receiver.received).to.deep.equal([]);
    await callApi(server, 'PATCH', `/log-streams/${id}`, { status: 'active' });
    await receiver.until(has('while-paused'));
  });

  it('are suspended when their receiver takes nothing for a week', async () => {
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

  it('begin with what was recorded since a time', async () => {
    await record('before');
    await stream({}, { startFrom: new Date(Date.now() - 60_000).toISOString() });
    await receiver.until(has('before'));
  });

  it('keep what is secret sealed and out of the log, and refuse what could not be sent', async () => {
    const secret = 'Bearer nobody-reads-this';
    await stream({ httpAuthorization: secret });
    await receiver.until(() => receiver.received.length > 0);
    expect(JSON.stringify(receiver.received.map(({ body }) => body))).not.to.contain(secret);
    const sinks = [
      {},
      { httpEndpoint: 'ftp://127.0.0.1/' },
      { httpEndpoint: receiver.url, httpAuthorization: 'a\r\nx: b' },
      { httpEndpoint: receiver.url, httpCustomHeaders: [{ header: 'Host', value: 'x' }] },
      { httpEndpoint: receiver.url, httpContentFormat: 'XML' },
    ];
    for (const sink of sinks) {
      const refused = await callApi(server, 'POST', '/log-streams', { name: 'x', type: 'http', sink });
      expect(refused.status, JSON.stringify(sink)).to.equal(400);
    }
  });

  it('take their place along when they are removed', async () => {
    const { id } = await stream();
    await record('sent');
    await receiver.until(has('sent'));
    expect((await callApi(server, 'DELETE', `/log-streams/${id}`)).status).to.equal(204);
    const sent = receiver.received.length;
    await record('not-sent');
    await server.stop();
    expect(receiver.received.length).to.equal(sent);
    server = await startManaged();
  });

  it('go on where they were after a restart', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-streams-'));
    const start = async () => {
      server = await startManaged(undefined, dataDir);
      management = managementClient(server);
    };
    await server.stop();
    await start();
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
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
    server = await startManaged();
  });
});
