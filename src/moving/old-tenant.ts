// Reads from the old tenant's Management API what its exports do not have: the ids and secrets of applications, the ids of
// connections, organizations and roles, and who has a role or is a member. Its answers are checked and bounded like a stranger's.
import { z } from 'zod';
import type { Outbound } from '../http/outbound/outbound.ts';
import type { OldApplication } from '../records/tenant/move.ts';
import type { Clock } from '../runtime/clock.ts';
import { jsonOf } from '../runtime/json.ts';
import type { Identifiers } from './identifiers.ts';

/** The old tenant, and the application that reads it. */
export interface OldTenantSource {
  /** `https://` and its canonical name. */
  origin: string;
  management: OldApplication;
}

interface OldTenantDependencies {
  fetch: Outbound['fetch'];
  clock: Clock;
  pause(ms: number): Promise<void>;
}

/** How long an answer may take, milliseconds, and how large it may be, bytes. */
const [TIMEOUT, MAX_BYTES] = [20_000, 4 << 20];
/** Records of a page, and the most pages of one list: two million members. */
const [PAGE, MAX_PAGES] = [100, 20_000];
/** The longest wait for the rate limit there, milliseconds, and how often in a row. */
const [MAX_WAIT, MAX_WAITS] = [60_000, 10];
/** A token is renewed when it has less time left, milliseconds. */
const RENEW = 60_000;

const id = z.string().min(1).max(1024);
const named = z.looseObject({ id, name: z.string().max(512) });
const client = z.looseObject({
  client_id: id,
  name: z.string().max(512),
  client_secret: z.string().min(1).max(4096).optional(),
  global: z.boolean().optional(),
});
const member = z.looseObject({
  user_id: id,
  roles: z.array(z.looseObject({ id, name: z.string().max(512) })).optional(),
});

/** Returns functions that read the old tenant. Each throws an Error with what it answered, and no secret. */
export function oldTenantReader(deps: OldTenantDependencies, source: OldTenantSource) {
  const get = requests(deps, source);
  /** Yields the records of a list that has numbered pages. */
  async function* numbered<T>(path: string, name: string, record: z.ZodType<T>): AsyncGenerator<T> {
    const schema = z.looseObject({ [name]: z.array(record).max(PAGE) });
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const query = `per_page=${PAGE}&page=${page}&include_totals=true`;
      const answer = (await get(withQuery(path, query), schema)) as Record<string, T[]>;
      const records = answer[name] ?? [];
      yield* records;
      if (records.length < PAGE) return;
    }
    throw new Error(`${source.origin}: ${path} has too many pages`);
  }
  /** Yields the records of a list whose pages name the next one. */
  async function* following<T>(path: string, name: string, record: z.ZodType<T>): AsyncGenerator<T> {
    const schema = z.looseObject({ [name]: z.array(record).max(PAGE), next: z.string().max(4096).nullish() });
    let from: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const query = `take=${PAGE}${from === undefined ? '' : `&from=${encodeURIComponent(from)}`}`;
      const answer = (await get(withQuery(path, query), schema)) as Record<string, unknown>;
      yield* answer[name] as T[];
      if (typeof answer.next !== 'string' || answer.next === '' || answer.next === from) return;
      from = answer.next;
    }
    throw new Error(`${source.origin}: ${path} has too many pages`);
  }
  const identifiers = async (): Promise<Identifiers> => ({
    clients: await all(numbered('clients?fields=client_id,name,client_secret,global', 'clients', client)),
    connections: await all(numbered('connections?fields=id,name', 'connections', named)),
    organizations: await all(following('organizations', 'organizations', named)),
    roles: await all(numbered('roles', 'roles', named)),
  });
  /** Yields the lines of a file of memberships: who has a role, and the members of organizations with their roles. */
  async function* memberships({
    roles,
    organizations,
  }: Pick<Identifiers, 'roles' | 'organizations'>): AsyncGenerator<object> {
    for (const role of roles) {
      const path = `roles/${encodeURIComponent(role.id)}/users`;
      for await (const { user_id } of following(path, 'users', member)) yield { user_id, roles: [role.name] };
    }
    for (const organization of organizations) {
      const path = `organizations/${encodeURIComponent(organization.id)}/members?fields=user_id,roles`;
      for await (const { user_id, roles: given = [] } of following(path, 'members', member))
        yield { user_id, organization: organization.name, roles: given.map(({ name }) => name) };
    }
  }
  return { identifiers, memberships };
}

async function all<T>(records: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of records) found.push(one);
  return found;
}

const withQuery = (path: string, query: string) => `${path}${path.includes('?') ? '&' : '?'}${query}`;

/** Returns a function that asks for one page, as slowly as the old tenant's rate limit demands. */
function requests({ fetch, clock, pause }: OldTenantDependencies, { origin, management }: OldTenantSource) {
  let token: { value: string; until: number } | undefined;
  const send: Outbound['fetch'] = async (url, init) => {
    for (let waits = 0; ; waits += 1) {
      const response = await fetch(url, {
        timeout: TIMEOUT,
        maxBytes: MAX_BYTES,
        ...init,
        redirect: 'error',
      });
      if (response.status !== 429 || waits >= MAX_WAITS) return response;
      await pause(waitOf(response.headers, clock()));
    }
  };
  const renew = async () => {
    const audience = `${origin}/api/v2/`;
    const response = await send(`${origin}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ grant_type: 'client_credentials', ...credentialsOf(management), audience }),
    });
    const schema = z.looseObject({ access_token: z.string().min(1), expires_in: z.number().min(0) });
    const answer = await parsed(response, schema, `${origin}/oauth/token`);
    return { value: answer.access_token, until: clock() + answer.expires_in * 1000 - RENEW };
  };
  return async <T>(path: string, schema: z.ZodType<T>): Promise<T> => {
    if (token === undefined || token.until < clock()) token = await renew();
    const url = `${origin}/api/v2/${path}`;
    const headers = { authorization: `Bearer ${token.value}`, accept: 'application/json' };
    return parsed(await send(url, { headers }), schema, url.split('?', 1)[0] ?? '');
  };
}

const credentialsOf = ({ client_id, client_secret }: OldApplication) => ({ client_id, client_secret });

/** @returns milliseconds */
function waitOf(headers: Headers, now: number): number {
  const reset = headers.get('x-ratelimit-reset') ?? '';
  const wait = /^\d{9,11}$/.test(reset) ? Number(reset) * 1000 - now : 1000;
  return Math.min(MAX_WAIT, Math.max(100, wait));
}

async function parsed<T>(response: Response, schema: z.ZodType<T>, url: string): Promise<T> {
  const body = jsonOf(await response.text());
  if (response.status !== 200) {
    const { error, errorCode } = Object(body) as Record<string, unknown>;
    const code = errorCode ?? error;
    const said = typeof code === 'string' && /^[\w .-]{1,64}$/.test(code) ? ` (${code})` : '';
    throw new Error(`${url} answered ${response.status}${said}`);
  }
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw new Error(`${url} answered what is not expected, at ${result.error.issues[0]?.path.join('.')}`);
}
