// The largest body of a call follows from its schema: what a member may hold can be sent, and memory is bounded.
import { expect } from 'chai';
import { z } from 'zod';
import { largestBodyOf, withJsonLength } from '../../src/features/management/body-size.ts';
import { MANAGEMENT_CALLS } from '../../src/features/management/calls.ts';
import { createAgent } from '../support/agent.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { sendSlowly } from '../support/slow-body.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

/** The limit of all other requests, and the most of any call, bytes. */
const USUAL = 56 * 1024;
const MOST = 4 * 1024 * 1024;

describe('the largest body of a call', () => {
  for (const [what, schema, atLeast, below] of [
    ['a text, however JSON escapes it', z.object({ code: z.string().max(100_000) }), 600_000, 601_000],
    [
      'lists',
      z.strictObject({ scopes: z.array(z.object({ value: z.string().max(280) })).max(1000) }),
      1_600_000,
      1_800_000,
    ],
    ['the longest of several forms', z.union([z.string().max(10), z.string().max(20_000)]), 120_000, 121_000],
    ['what a default stands for', z.string().max(20_000).nullish().default(''), 120_000, 121_000],
    [
      'metadata by its own limit',
      withJsonLength(z.record(z.string(), z.unknown()), 20_000),
      120_000,
      121_000,
    ],
    ['no less than other requests have', z.strictObject({ name: z.string().max(10) }), USUAL, USUAL + 1],
    ['no more than the server can hold', z.string().max(10_000_000), MOST, MOST + 1],
    [
      'open members as other requests',
      z.strictObject({ a: z.unknown(), b: z.string() }),
      2 * USUAL,
      2 * USUAL + 100,
    ],
  ] as const) {
    it(`follows from ${what}`, () => {
      expect(largestBodyOf(schema)).to.be.within(atLeast, below - 1);
    });
  }

  it('ends where a schema contains itself', () => {
    const tree: z.ZodType = z.strictObject({
      get children() {
        return z.array(tree).max(2);
      },
    });
    expect(largestBodyOf(tree)).to.be.within(USUAL, MOST);
  });

  it('is below the bound for every call', () => {
    for (const { body, path } of MANAGEMENT_CALLS)
      if (body) expect(largestBodyOf(body), path).to.be.within(USUAL, MOST);
  });
});

describe('a long body', () => {
  let server: TestServer;
  let call: ManagementCall;
  let bearer: string;
  before(async () => {
    server = await startManaged(tenant);
    bearer = await managementToken(server);
    call = callsWith(server, bearer);
  });
  after(() => server.stop());

  const long = (length: number) => '"ü\n'.repeat(length / 3).padEnd(length, 'x');

  it('may hold the metadata of a user', async () => {
    const made = await call('POST', '/users', {
      connection: 'users',
      email: 'long@example.test',
      password: 'Correct-Horse-1',
      user_metadata: { note: long(80_000) },
      app_metadata: { note: long(300_000) },
    });
    expect(made.status, made.text.slice(0, 500)).to.equal(201);
    expect(made.json().user_metadata.note).to.equal(long(80_000));
    const larger = await call('PATCH', `/users/${encodeURIComponent(made.json().user_id)}`, {
      user_metadata: { note: 'x'.repeat(262_144) },
    });
    expect(larger.status).to.equal(400);
  });

  it('may hold the scopes of an API', async () => {
    const scopes = Array.from({ length: 900 }, (_, n) => ({
      value: `read:something-${n}`,
      description: long(120),
    }));
    const made = await call('POST', '/resource-servers', { identifier: 'https://many.example.test', scopes });
    expect(made.status, made.text.slice(0, 500)).to.equal(201);
    expect(made.json().scopes).to.have.length(900);
  });

  it("may hold an application's login page and a script of a rule", async () => {
    for (const [path, body] of [
      ['/clients', { name: 'Own page', custom_login_page: `<html>${long(90_000)}</html>` }],
      [
        '/rules',
        { name: 'long rule', script: `function (user, context, callback) { /* ${long(90_000)} */ }` },
      ],
    ] as const) {
      const made = await call('POST', path, body);
      expect(made.status, made.text.slice(0, 300)).to.be.oneOf([200, 201]);
    }
  });

  it('is not read without a token', async () => {
    const request = { method: 'POST', json: { name: 'x'.repeat(100_000) } };
    expect((await createAgent(server).request('/api/v2/clients', request)).status).to.equal(401);
  });

  it('of other endpoints may be no longer than before', async () => {
    for (const path of ['/dbconnections/signup', '/oauth/token', '/passwordless/start']) {
      const json = { client_id: 'web', email: 'x'.repeat(USUAL) };
      expect((await createAgent(server).request(path, { json })).status, path).to.equal(413);
    }
  });

  it('waits for others: only some are in memory at once', async () => {
    const send = async (n: number, meanwhile: () => Promise<unknown>) =>
      sendSlowly(
        server,
        {
          method: 'POST',
          path: '/api/v2/rules',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer}` },
          body: JSON.stringify({ name: `slow ${n}`, script: `function () {/* ${'x'.repeat(80_000)} */}` }),
        },
        meanwhile,
      );
    const all = Array.from({ length: 24 }, () => Promise.withResolvers<void>());
    const sent: Promise<{ status: number | undefined; text: string }>[] = [];
    for (const [n, { promise }] of all.entries()) {
      const begun = Promise.withResolvers<void>();
      sent.push(
        send(n, async () => {
          // Its answer comes after the server has seen the headers of the slow one.
          await call('GET', '/rules?per_page=1');
          begun.resolve();
          await promise;
        }),
      );
      await begun.promise;
    }
    // Short ones are not affected.
    expect((await call('POST', '/roles', { name: 'meanwhile' })).status).to.equal(200);
    for (const { resolve } of all) resolve();
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 503).length).to.be.within(8, 20);
    expect(statuses.filter((status) => status === 201).length).to.equal(
      24 - statuses.filter((status) => status === 503).length,
    );
    const after = await send(99, async () => undefined);
    expect(after.status).to.equal(201);
  });
});
