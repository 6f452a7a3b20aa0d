// The users of the old tenant, read by its Management API. Whatever it answers is checked before anything is made of it.
import { z } from 'zod';
import { lookupEmail } from '../../records/base/email.ts';
import type { Frozen } from '../../records/base/record.ts';
import { DATABASE } from '../../records/connections/connections.ts';
import type { MoveRecord } from '../../records/tenant/move.ts';
import type { Clock } from '../../runtime/clock.ts';
import { OldTenantFault, parsed, type SendToOldTenant } from './old-requests.ts';

const MAX_ID_LENGTH = 1024;

const identity = z.looseObject({
  connection: z.string(),
  provider: z.string(),
  user_id: z.union([z.string().min(1).max(MAX_ID_LENGTH), z.number().int()]).transform(String),
  profileData: z
    .looseObject({
      email: z.string().nullish(),
      username: z.string().nullish(),
      phone_number: z.string().nullish(),
    })
    .nullish(),
});

const oldUser = z.looseObject({
  user_id: z.string().min(3).max(MAX_ID_LENGTH),
  email: z.string().nullish(),
  username: z.string().nullish(),
  phone_number: z.string().nullish(),
  blocked: z.boolean().nullish(),
  multifactor: z.array(z.string()).nullish(),
  identities: z.array(identity).min(1).max(50),
});

/** A user as the Management API shows them. */
export type OldUser = z.output<typeof oldUser>;
export type OldIdentity = z.output<typeof identity>;

const authenticationMethod = z.looseObject({
  type: z.string(),
  confirmed: z.boolean().nullish(),
  phone_number: z.string().nullish(),
  email: z.string().nullish(),
});
export type OldAuthenticationMethod = z.output<typeof authenticationMethod>;

type Move = Frozen<Pick<MoveRecord, 'origin' | 'management'>>;

export interface OldDirectory {
  /**
   * Returns the user of a database connection with an e-mail address, username or phone number, and their identity there.
   * @throws OldTenantFault, OutboundError if it cannot be asked.
   */
  find(
    move: Move,
    connection: string,
    identifier: string,
  ): Promise<{ user: OldUser; identity: OldIdentity } | undefined>;
  /** @throws as `find` */
  get(move: Move, userId: string): Promise<OldUser | undefined>;
  /** @throws as `find` */
  authenticationMethods(move: Move, userId: string): Promise<OldAuthenticationMethod[]>;
  /** Returns how many users there are. @throws as `find` */
  countAll(move: Move): Promise<number>;
  /** Returns how many users a connection has. @throws as `find` */
  count(move: Move, connection: string): Promise<number>;
}

/** A token is renewed when it has less time left, milliseconds. */
const RENEW = 60_000;

export function createOldDirectory({ send, clock }: { send: SendToOldTenant; clock: Clock }): OldDirectory {
  const tokens = tokenCache(send, clock);
  const read = async <T>(move: Move, path: string, schema: z.ZodType<T>): Promise<T | undefined> => {
    const ask = async () =>
      send(move, `/api/v2/${path}`, {
        headers: { authorization: `Bearer ${await tokens.get(move)}`, accept: 'application/json' },
      });
    let response = await ask();
    if (response.status === 401) {
      tokens.forget();
      response = await ask();
    }
    if (response.status === 404) return undefined;
    return parsed(response, schema, 'its Management API');
  };
  const count = async (move: Move, q?: string): Promise<number> => {
    const query = new URLSearchParams({
      ...(q !== undefined && { q }),
      search_engine: 'v3',
      per_page: '1',
      include_totals: 'true',
      fields: 'user_id',
    });
    const page = await read(move, `users?${query}`, z.looseObject({ total: z.number().int().min(0) }));
    if (page === undefined) throw new OldTenantFault('its Management API has no users');
    return page.total;
  };
  return {
    find: async (move, connection, identifier) => {
      for (const path of searchPaths(connection, identifier)) {
        for (const user of (await read(move, path, z.array(oldUser).max(100))) ?? []) {
          const identity = identityOf(user, connection, identifier);
          if (identity !== undefined) return { user, identity };
        }
      }
      return undefined;
    },
    get: async (move, userId) => {
      const user = await read(move, `users/${encodeURIComponent(userId)}`, oldUser);
      if (user !== undefined && user.user_id !== userId)
        throw new OldTenantFault('its Management API answered with another user');
      return user;
    },
    authenticationMethods: async (move, userId) =>
      (await read(
        move,
        `users/${encodeURIComponent(userId)}/authentication-methods?per_page=100`,
        z.array(authenticationMethod).max(100),
      )) ?? [],
    countAll: (move) => count(move),
    count: (move, connection) => count(move, `identities.connection:${quoted(connection)}`),
  };
}

/** Keeps the access token for the Management API in this process. */
function tokenCache(send: SendToOldTenant, clock: Clock) {
  let kept: { of: string; token: Promise<{ value: string; until: number }> } | undefined;
  const request = async (move: Move) => {
    const { origin, management } = move;
    const response = await send(move, '/oauth/token', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({
        grant_type: 'client_credentials',
        client_id: management.client_id,
        client_secret: management.client_secret,
        audience: `${origin}/api/v2/`,
      }),
    });
    const schema = z.looseObject({ access_token: z.string().min(1), expires_in: z.number().min(0) });
    const answer = await parsed(response, schema, 'its token endpoint');
    return { value: answer.access_token, until: clock() + answer.expires_in * 1000 - RENEW };
  };
  const forget = () => {
    kept = undefined;
  };
  return {
    forget,
    get: async (move: Move): Promise<string> => {
      const { client_id, client_secret } = move.management;
      const of = JSON.stringify([move.origin, client_id, client_secret]);
      if (kept?.of !== of || (await kept.token.catch(() => ({ until: 0 }))).until < clock())
        kept = { of, token: request(move) };
      const { token } = kept;
      token.catch(forget);
      return (await token).value;
    },
  };
}

/**
 * Returns where a user with an identifier is looked up. Only e-mail addresses of users have a lookup of their own; the search,
 * which may be some seconds late, also finds those of linked identities.
 */
function searchPaths(connection: string, identifier: string): string[] {
  const email = lookupEmail(identifier);
  const name = quoted(email ?? identifier.trim().toLowerCase());
  const member = email !== undefined ? 'email' : /^"\+\d+"$/.test(name) ? 'phone_number' : 'username';
  const linked = `identities.profileData.${member}:${name}`;
  const of = email === undefined ? `(${member}:${name} OR ${linked})` : linked;
  const q = `${of} AND identities.connection:${quoted(connection)}`;
  const search = `users?${new URLSearchParams({ q, search_engine: 'v3', per_page: '100' })}`;
  return email === undefined ? [search] : [`users-by-email?${new URLSearchParams({ email })}`, search];
}

/** Returns a text as a phrase of the search's language. */
const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;

/** Returns the identity of a user in a database connection that an identifier names; undefined if there is none. */
export function identityOf(user: OldUser, connection: string, identifier: string): OldIdentity | undefined {
  const name = lookupEmail(identifier) ?? identifier.trim().toLowerCase();
  return user.identities.find((one) => {
    if (one.provider !== DATABASE || one.connection !== connection) return false;
    // The members of the user are those of the identity that it was created with.
    const { email, username, phone_number } =
      `${DATABASE}|${one.user_id}` === user.user_id ? user : (one.profileData ?? {});
    return [email, username, phone_number].some((value) => value?.toLowerCase() === name);
  });
}
