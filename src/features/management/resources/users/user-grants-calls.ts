// `/grants`: the scopes that users have consented to for clients.

import { z } from 'zod';
import type { Frozen } from '../../../../records/base/record.ts';
import { type ConsentRecord, consentId } from '../../../../records/state/engine.ts';
import type { Filter, Store } from '../../../../store/contract.ts';
import { pagesOf } from '../../../../store/list-all.ts';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import { arraySource, type ListSource, listAnswer, pageQuery } from '../../list.ts';
import { isOf } from './refresh-tokens.ts';
import type { SessionsDependencies } from './user-sessions-calls.ts';

export interface GrantsDependencies extends SessionsDependencies {
  /** Returns the API that a consent's key stands for; undefined if there is none. */
  audienceOf(key: string): string | undefined;
}

/** The key of the scopes of OpenID Connect. */
const OIDC = '';

/** Number of consents read at once if the query names no user. */
const PAGE_SIZE = 500;

type Consent = Frozen<ConsentRecord>;

/** Returns a consent as the hosted service's grants, one for each API. A grant's id encodes user, client and API. */
function grantViews(consent: Consent, audienceOf: GrantsDependencies['audienceOf']) {
  const { user_id, client_id, scopes } = consent;
  return Object.entries(scopes).flatMap(([key, scope]) => {
    const audience = audienceOf(key);
    const id = Buffer.from(JSON.stringify([user_id, client_id, key])).toString('base64url');
    return audience === undefined ? [] : [{ id, clientID: client_id, user_id, audience, scope: [...scope] }];
  });
}

const grantIdParts = z.tuple([z.string(), z.string(), z.string()]);

/** Returns what a grant's id encodes; undefined if it is not valid. */
function parsedId(id = ''): { userId: string; clientId: string; key: string } | undefined {
  try {
    const [userId, clientId, key] = grantIdParts.parse(JSON.parse(Buffer.from(id, 'base64url').toString()));
    return { userId, clientId, key };
  } catch {
    // An invalid id is the id of no grant.
    return undefined;
  }
}

/** @returns the scopes that it had. */
async function removeFromConsent(
  store: Store,
  id: string,
  key: string,
): Promise<readonly string[] | undefined> {
  let removedScopes: readonly string[] | undefined;
  await store.collection('consents').update(id, (current) => {
    const { [key]: allowed, ...scopes } = current.scopes;
    removedScopes = allowed;
    return { ...current, scopes };
  });
  return removedScopes;
}

/**
 * Returns a list source of the grants of all users, maybe for one client. It reads the consents page by page, to limit the memory in use.
 */
function everyGrant(
  store: Store,
  clientId: string | undefined,
  grantsOf: (consents: readonly Consent[]) => object[],
): ListSource {
  const where: Filter | undefined =
    clientId === undefined ? undefined : { index: 'client', equals: clientId };
  const page = async ({ page: number, perPage }: { page: number; perPage: number }) => {
    const [from, to] = [number * perPage, (number + 1) * perPage];
    const items: object[] = [];
    let total = 0;
    const query = { limit: PAGE_SIZE, ...(where && { where }) };
    for await (const consents of pagesOf(store.collection('consents'), query)) {
      const grants = grantsOf(consents);
      items.push(...grants.slice(Math.max(0, from - total), Math.max(0, to - total)));
      total += grants.length;
    }
    return { items, total };
  };
  return { page, after: ({ take }) => page({ page: 0, perPage: take }) };
}

const call = callsWith<GrantsDependencies>();

// docs/understand/decisions/management-api.md#deleting-a-grant-ends-the-refresh-tokens-that-depend-on-it
/** The calls for grants. Deleting a grant ends the refresh tokens that depend on it. */
export const grantCalls: Call<GrantsDependencies>[] = [
  call({
    method: 'GET',
    path: '/grants',
    scopes: ['read:grants'],
    summary: 'Get grants of users',
    query: z.strictObject({
      ...pageQuery,
      user_id: z.string().max(255).optional(),
      client_id: z.string().max(255).optional(),
      audience: z.string().max(600).optional(),
    }),
    handle: async ({ store, audienceOf }, { query }) => {
      const { user_id, client_id, audience, ...paging } = query;
      const grantsOf = (consents: readonly Consent[]) =>
        consents
          .flatMap((one) => grantViews(one, audienceOf))
          .filter((one) => client_id === undefined || one.clientID === client_id)
          .filter((one) => audience === undefined || one.audience === audience);
      const source =
        user_id === undefined
          ? everyGrant(store, client_id, grantsOf)
          : arraySource(grantsOf(await store.collection('consents').findBy('user', user_id)), ({ id }) => id);
      return ok(await listAnswer(paging, source, { key: 'grants', isByCursor: false }));
    },
  }),
  call({
    method: 'DELETE',
    path: '/grants/:id',
    scopes: ['delete:grants'],
    summary: 'Delete a grant',
    handle: async ({ store, refreshTokens, audienceOf }, { params }) => {
      const grant = parsedId(params.id);
      if (grant === undefined) return noContent();
      const { userId, clientId, key } = grant;
      const scope = await removeFromConsent(store, consentId(userId, clientId), key);
      if (scope === undefined) return noContent();
      const audience = key === OIDC ? undefined : audienceOf(key);
      for (const token of await refreshTokens.of(userId)) {
        if (isOf(token, { client_id: clientId, audience })) await refreshTokens.end(token.id);
      }
      await refreshTokens.endUnredeemedOf(userId, clientId, audience);
      return noContent({ before: { user_id: userId, clientID: clientId, audience: audienceOf(key), scope } });
    },
  }),
  call({
    method: 'DELETE',
    path: '/grants',
    scopes: ['delete:grants'],
    summary: 'Delete all grants of a user',
    query: z.strictObject({ user_id: z.string().min(1).max(255) }),
    handle: async ({ store, refreshTokens }, { query }) => {
      const { user_id } = query;
      const consents = await store.collection('consents').findBy('user', user_id);
      await store.collection('consents').deleteBy('user', user_id);
      const clients = new Set(consents.map(({ client_id }) => client_id));
      await Promise.all([...clients].map((clientId) => refreshTokens.endAllOf(user_id, clientId)));
      return noContent({ before: { user_id, clients: [...clients] } });
    },
  }),
];
