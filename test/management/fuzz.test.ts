// Random requests, valid and invalid, generated from the OpenAPI document: no response may be a server error, and none that
// refuses may have written anything.
import { expect } from 'chai';
import { parse } from 'yaml';
import { managementOpenApi } from '../../src/features/management/openapi.ts';
import { countedWrites } from '../support/counted-writes.ts';
import { seeded } from '../support/seeded.ts';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { badValue, goodValue, hostileText, type JsonSchema, pick } from './schema-values.ts';
import { managementToken, startManaged } from './support.ts';

/** Another seed generates other requests. */
const SEED = Number(process.env.FUZZ_SEED ?? 20_261_122);

/** Number of requests for each call. */
const TRIES = 4 * Number(process.env.FUZZ_DEPTH ?? 1);

interface Operation {
  parameters?: { name: string; in: string; required: boolean; schema: JsonSchema }[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
}

/** Calls that would end the test: they revoke the keys that its token is signed with. */
const SPARED = ['/keys/signing/{kid}/revoke', '/keys/signing/rotate'];

describe('random requests from the OpenAPI document', () => {
  let server: TestServer;
  const { open, written } = countedWrites();

  before(async () => {
    const wide = { capacity: 1e6, perMinute: 1e6 };
    const example = {
      ...(parse(EXAMPLE) as object),
      attackProtection: { rateLimits: { management: wide } },
    };
    server = await startManaged(example, undefined, {}, { open });
  });
  after(() => server.stop());

  it(`never cause a server error, and write nothing if they are refused (seed ${SEED})`, async () => {
    const draw = seeded(SEED);
    const token = await managementToken(server);
    const { paths } = managementOpenApi(server.url) as { paths: Record<string, Record<string, Operation>> };
    const ids = await someIds(server, token);
    const faults: string[] = [];
    const statuses = new Map<number, number>();
    for (let round = 0; round < TRIES; round++) {
      for (const [path, methods] of Object.entries(paths)) {
        if (SPARED.includes(path)) continue;
        for (const [method, operation] of Object.entries(methods)) {
          const target = path.replaceAll(/\{(\w+)\}/g, () =>
            encodeURIComponent(draw() < 0.7 ? pick(draw, ids) : hostileText(draw)),
          );
          const query = queryOf(operation, draw);
          const schema = operation.requestBody?.content['application/json']?.schema;
          const body = schema && JSON.stringify((draw() < 0.5 ? goodValue : badValue)(schema, draw));
          const send = async () => {
            written();
            const response = await fetch(`${server.url}/api/v2${target}${query}`, {
              method: method.toUpperCase(),
              headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
              ...(body === undefined ? {} : { body }),
            });
            return { response, text: await response.text(), writes: written() };
          };
          const { response, text, writes } = await send();
          statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
          if (response.status >= 500)
            faults.push(`${method} ${target}${query} ${body?.slice(0, 500)}: ${text}`);
          if (response.status >= 400 && writes.length > 0 && (await writesAgain(send)))
            faults.push(`${method} ${target}${query} ${body?.slice(0, 500)}: ${text}, but wrote ${writes}`);
          if (response.status >= 400)
            expect(JSON.parse(text), path).to.include({ statusCode: response.status });
        }
      }
    }
    expect(faults).to.deep.equal([]);
    // Many requests must succeed: a test of refusals alone would prove little.
    expect(statuses.get(401) ?? 0).to.equal(0);
    expect(statuses.get(200) ?? 0).to.be.above(200);
    expect(statuses.get(400) ?? 0).to.be.above(200);
  });
});

/**
 * Whether a refused request writes each time: what an earlier request, an import or a removal, has left for the background is
 * written sooner or later, whoever asks meanwhile.
 */
async function writesAgain(send: () => Promise<{ writes: string[] }>): Promise<boolean> {
  for (let i = 0; i < 20; i++) if ((await send()).writes.length === 0) return false;
  return true;
}

function queryOf({ parameters = [] }: Operation, draw: () => number): string {
  const pairs = parameters
    .filter((one) => one.in === 'query' && (one.required || draw() < 0.3))
    .map(({ name, schema }) => [name, draw() < 0.7 ? String(goodValue(schema, draw)) : hostileText(draw)]);
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs as [string, string][])}`;
}

/** Returns ids of records of the example tenant, except the client that sends the requests. */
async function someIds(server: TestServer, token: string): Promise<string[]> {
  const list = async (path: string, member: string) => {
    const response = await fetch(`${server.url}/api/v2${path}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return ((await response.json()) as Record<string, string>[]).map((one) => one[member] ?? '');
  };
  const made = await fetch(`${server.url}/api/v2/users`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      connection: 'Username-Password-Authentication',
      email: 'fuzz@example.test',
      password: 'A-long-Passw0rd!',
    }),
  });
  return [
    ((await made.json()) as { user_id: string }).user_id,
    ...(await list('/connections', 'id')),
    ...(await list('/resource-servers', 'id')),
    ...(await list('/keys/signing', 'kid')),
    'example-spa',
    'example-web',
    'verify_email',
    'post-login',
    'login',
    'en',
    'otp',
    'unknown',
  ];
}
