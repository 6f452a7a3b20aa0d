// Rules that hold for all calls of the Management API. A new call is tested here without further code.
import { expect } from 'chai';
import { exportPKCS8, generateKeyPair, importPKCS8, SignJWT } from 'jose';
import { parse } from 'yaml';
import { z } from 'zod';
import { toResource } from '../../src/engine/base/request-extensions.ts';
import type { CallRules } from '../../src/features/management/call.ts';
import { MANAGEMENT_CALLS } from '../../src/features/management/calls.ts';
import { consentId } from '../../src/records/state/engine.ts';
import { seeded } from '../support/seeded.ts';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { goodValue, type JsonSchema } from './schema-values.ts';
import { ADMIN, managementToken, startManaged } from './support.ts';

const DAY = 86_400_000;

/** High enough for tests that send many requests. */
const WIDE = { capacity: 1e6, perMinute: 1e6 };

const CALLS = MANAGEMENT_CALLS as readonly CallRules[];
const ALL_SCOPES = [
  ...new Set(
    CALLS.flatMap(({ scopes, allScopes = [], currentUserScopes = [] }) => [
      ...scopes,
      ...allScopes,
      ...currentUserScopes,
    ]),
  ),
];

/** Members of records that cannot be changed: the server sets them, or they are fixed at creation. */
const READ_ONLY: Record<string, string> = {
  '/clients/:id': 'client_id tenant global signing_keys callback_url_template external_client_id',
  '/clients/:id/credentials/:credential_id': 'id kid alg pem credential_type subject_dn thumbprint_sha256',
  '/resource-servers/:id': 'id identifier is_system client_id',
  '/client-grants/:id': 'id client_id audience subject_type is_system default_for',
  '/connections/:id': 'id name strategy provisioning_ticket_url',
  '/users/:id':
    'user_id identities created_at updated_at last_login last_ip logins_count last_password_reset multifactor',
  '/roles/:id': 'id permissions',
  '/organizations/:id': 'id enabled_connections client_grants clients discovery_domains',
  '/sessions/:id': 'id user_id created_at authenticated_at expires_at clients authentication',
  '/refresh-tokens/:id': 'id user_id client_id session_id rotating expires_at resource_servers',
  '/custom-domains/:id': 'custom_domain_id domain type status primary verification api_key_hashes',
  '/log-streams/:id': 'id type',
  '/actions/actions/:id': 'id status deployed_version all_changes_deployed versions deployed_secrets deploy',
  '/emails/provider': 'id created_at',
};

/** Whether a body accepts no other members. The keys of some bodies are the caller's own. */
const isClosed = (schema: JsonSchema): boolean =>
  (schema.anyOf ?? [schema]).every((one) => one.type !== 'object' || one.additionalProperties === false) &&
  (schema.anyOf ?? [schema]).some((one) => one.type === 'object');

const schemaOf = (schema: z.ZodType) =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as unknown as JsonSchema;

/** Returns the path of a call with ids that do not exist. */
const unknownPath = ({ path }: CallRules) => path.replaceAll(/:(\w+)/g, 'unknown1');

describe('every call of the Management API', () => {
  let server: TestServer;
  let tokens: Record<string, string>;
  let userId: string;
  let userToken: string;
  const scoped = new Map<string, string>();

  const send = (
    call: CallRules,
    authorization: string | undefined,
    path = unknownPath(call),
    body?: unknown,
  ) =>
    fetch(`${server.url}/api/v2${path}`, {
      method: call.method,
      headers: {
        ...(authorization === undefined ? {} : { authorization }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  const tokenWith = async (scopes: readonly string[]): Promise<string> => {
    const scope = [...scopes].sort().join(' ');
    const token = scoped.get(scope) ?? (await managementToken(server, scope));
    scoped.set(scope, token);
    return token;
  };

  const asked = async (body: object): Promise<Record<string, string>> => {
    const response = await fetch(`${server.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as Record<string, string>;
    expect(response.status, JSON.stringify(answer)).to.equal(200);
    return answer;
  };

  before(async () => {
    const tenant = parse(EXAMPLE) as { clientGrants?: object[] };
    server = await startManaged({
      ...tenant,
      attackProtection: { rateLimits: { management: WIDE, token: WIDE, other: WIDE } },
    });
    const expired = await managementToken(server);
    server.tick(DAY + 60_000);
    const full = await managementToken(server);
    const machine = { client_id: 'example-m2m', client_secret: 'example-m2m-secret' };
    const audience = 'https://api.example.test/';
    const foreign = await asked({ grant_type: 'client_credentials', ...machine, audience });
    const call = (method: string, path: string, body: object) =>
      fetch(`${server.url}/api/v2${path}`, {
        method,
        headers: { authorization: `Bearer ${full}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const email = 'own@example.test';
    const password = 'A-long-Passw0rd!';
    const user = { connection: 'Username-Password-Authentication', email, password, verify_email: false };
    ({ user_id: userId } = (await (await call('POST', '/users', user)).json()) as { user_id: string });
    const audienceOfApi = `${server.issuer}api/v2/`;
    // The consent that the user would have given on the consent page.
    await server.store.collection('consents').insert({
      id: consentId(userId, 'example-web'),
      user_id: userId,
      client_id: 'example-web',
      scopes: { [toResource(audienceOfApi)]: ALL_SCOPES },
    });
    const login = { grant_type: 'password', client_id: 'example-web', client_secret: 'example-web-secret' };
    ({ access_token: userToken = '' } = await asked({
      ...login,
      username: email,
      password,
      audience: audienceOfApi,
      scope: ALL_SCOPES.join(' '),
    }));
    const { access_token: forMfa = '' } = await asked({
      ...login,
      username: email,
      password,
      audience: `${server.issuer}mfa/`,
      scope: 'enroll read:authenticators remove:authenticators',
    });
    tokens = {
      'Expired token received for JSON Web Token validation': expired,
      'Invalid signature received for JSON Web Token validation': await signedByAnother(full),
      'Invalid token': foreign.access_token ?? '',
      'Invalid token ': forMfa,
      'Invalid token  ': 'no.token.at-all',
      'Invalid token   ': unsigned(full),
    };
  });
  after(() => server.stop());

  for (const [number, call] of CALLS.entries()) {
    const name = `${call.method} ${call.path}`;
    // All calls share the code that validates tokens: the first ten calls are tested with all inputs, the others with
    // one.
    const turn = <T>(all: T[]): T[] => (number < 10 ? all : all.slice(number % all.length).slice(0, 1));

    it(`${name}: rejects requests without a valid token`, async () => {
      const none = await send(call, undefined);
      expect(none.status).to.equal(401);
      expect(none.headers.get('www-authenticate')).to.contain('Bearer');
      expect(await none.json()).to.deep.equal({
        statusCode: 401,
        error: 'Unauthorized',
        message: 'Missing authentication',
      });
      for (const header of turn(['Bearer', 'Basic YTpi', 'Bearer a b', `Token ${ADMIN.client_secret}`])) {
        const malformed = await send(call, header);
        expect(await malformed.json(), header).to.deep.equal({
          statusCode: 400,
          error: 'Bad Request',
          message: 'Bad HTTP authentication header format',
          errorCode: 'Bearer',
        });
      }
      for (const [message, token] of turn(Object.entries(tokens))) {
        const response = await send(call, `Bearer ${token}`);
        expect(await response.json(), message).to.deep.equal({
          statusCode: 401,
          error: 'Unauthorized',
          message: message.trim(),
        });
      }
    });

    it(`${name}: rejects tokens without its scopes`, async () => {
      const { scopes, allScopes, currentUserScopes = [] } = call;
      const named = [...(allScopes ?? scopes), ...currentUserScopes];
      const missing = allScopes === undefined ? [new Set(named)] : allScopes.map((one) => new Set([one]));
      for (const without of missing) {
        const token = await tokenWith(ALL_SCOPES.filter((scope) => !without.has(scope)));
        const response = await send(call, `Bearer ${token}`);
        expect(await response.json()).to.deep.equal({
          statusCode: 403,
          error: 'Forbidden',
          message: `Insufficient scope, expected any of: ${named.join(',')}`,
          errorCode: 'insufficient_scope',
        });
      }
    });

    it(`${name}: gives a user's token no access to other users`, async () => {
      const response = await send(call, `Bearer ${userToken}`);
      // Outside of users' paths, the handler checks the user, and finds nothing here.
      const isOwn = call.currentUserScopes !== undefined && !call.path.startsWith('/users/:');
      if (isOwn) expect(response.status).to.be.within(200, 404);
      else expect(response.status).to.equal(403);
    });

    // A call without such scopes accepts only tokens of users: a client always gets 403.
    if (call.scopes.length === 0 && call.allScopes === undefined) continue;

    it(`${name}: rejects unknown query parameters`, async () => {
      const token = await tokenWith(ALL_SCOPES);
      const response = await send(call, `Bearer ${token}`, `${unknownPath(call)}?no_such_member=1`);
      expect(response.status).to.equal(400);
      expect(await response.json()).to.include({ statusCode: 400, errorCode: 'invalid_query_string' });
    });

    if (call.body !== undefined && isClosed(schemaOf(call.body))) {
      const schema = schemaOf(call.body);
      it(`${name}: rejects unknown and read-only members of the body`, async () => {
        const token = await tokenWith(ALL_SCOPES);
        const body = goodValue(schema, seeded(1)) as object;
        const properties = Object.assign(
          {},
          schema.properties,
          ...(schema.anyOf ?? []).map((one) => one.properties),
        );
        for (const member of [
          'no_such_member',
          'id',
          'tenant',
          'global',
          'is_system',
          'created_at',
          'updated_at',
        ]) {
          if (member in properties) continue;
          const response = await send(call, `Bearer ${token}`, undefined, { ...body, [member]: 'x' });
          const answer = (await response.json()) as object;
          expect(answer, member).to.include({ statusCode: 400, errorCode: 'invalid_body' });
        }
      });
    }

    if (call.path.includes(':')) {
      it(`${name}: answers unknown ids`, async () => {
        const token = await tokenWith(ALL_SCOPES);
        const body = call.body === undefined ? undefined : goodValue(schemaOf(call.body), seeded(2));
        const response = await send(call, `Bearer ${token}`, undefined, body);
        expect(response.status, await response.text()).to.be.oneOf(statusesOfUnknown(call));
      });
    }
  }

  for (const [path, names] of Object.entries(READ_ONLY)) {
    it(`${path}: rejects changes of read-only members`, async () => {
      const token = await tokenWith(ALL_SCOPES);
      const call = CALLS.find((one) => one.method === 'PATCH' && one.path === path) as CallRules;
      for (const name of names.split(' ')) {
        const answer = await send(call, `Bearer ${token}`, undefined, { [name]: 'x' });
        expect(await answer.json(), name).to.include({ statusCode: 400, errorCode: 'invalid_body' });
      }
    });
  }

  it('rejects tokens of a blocked user, and of a deleted client', async () => {
    const own = { method: 'GET', path: `/users/${encodeURIComponent(userId)}` } as CallRules;
    expect((await send(own, `Bearer ${userToken}`, own.path)).status).to.equal(200);
    const full = await tokenWith(ALL_SCOPES);
    const block = await fetch(`${server.url}/api/v2${own.path}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${full}`, 'content-type': 'application/json' },
      body: '{"blocked":true}',
    });
    expect(block.status).to.equal(200);
    expect((await send(own, `Bearer ${userToken}`, own.path)).status).to.equal(401);
    const settings = { method: 'GET', path: '/tenants/settings' } as CallRules;
    await send({ method: 'DELETE', path: '' } as CallRules, `Bearer ${full}`, `/clients/${ADMIN.client_id}`);
    expect((await send(settings, `Bearer ${full}`)).status).to.equal(401);
  });
});

/** Returns the statuses allowed for ids that do not exist: 404 for reading, while deleting succeeds. */
function statusesOfUnknown({ method, path }: CallRules): number[] {
  if (method === 'GET')
    return path.startsWith('/prompts/') || LISTS_OF_ANYTHING.has(path) ? [200, 400, 404] : [400, 404];
  if (method === 'DELETE') return [202, 204, 404, 400];
  return path.startsWith('/prompts/') || path === '/rules-configs/:key' ? [200, 400, 404] : [400, 403, 404];
}

/** Lists that are empty for ids that do not exist. */
const LISTS_OF_ANYTHING = new Set(['/users/:id/logs', '/actions/triggers/:triggerId/bindings']);

/** Returns the same token, signed by another key. */
async function signedByAnother(token: string): Promise<string> {
  const [head = '', payload = ''] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const key = await importPKCS8(await exportPKCS8(privateKey), 'RS256');
  return new SignJWT(JSON.parse(payload) as Record<string, unknown>)
    .setProtectedHeader(JSON.parse(head) as { alg: string })
    .sign(key);
}

/** Returns the same token without a signature, with `alg` none (RFC 8725 §3.1). */
function unsigned(token: string): string {
  const head = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url');
  return `${head}.${token.split('.')[1]}.`;
}
