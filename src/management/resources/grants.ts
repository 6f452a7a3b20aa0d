// What users have allowed applications: `/grants`.
import { z } from 'zod';
import { type ConsentRecord, consentId } from '../../records/engine.ts';
import type { Frozen } from '../../records/record.ts';
import type { Store } from '../../store/contract.ts';
import { type Call, callsWith, noContent, ok } from '../call.ts';
import { arraySource, type ListSource, listAnswer, pageQuery } from '../list.ts';
import { isOf } from './refresh-tokens.ts';
import type { SessionsDependencies } from './sessions.ts';

export interface GrantsDependencies extends SessionsDependencies {
  /** The API that a consent's key stands for; undefined for the key of none. */
  audienceOf(key: string): string | undefined;
}

/** The key of the scopes of OpenID Connect. */
const OIDC = '';

/** How many consents are read at once where no user is named: they are as many as users. */
const PAGE = 500;

type Consent = Frozen<ConsentRecord>;

/** A consent as grants of the hosted service: one for each API. Its id names both. */
function grantViews(consent: Consent, audienceOf: GrantsDependencies['audienceOf']) {
  const { user_id, client_id, scopes } = consent;
  return Object.entries(scopes).flatMap(([key, scope]) => {
    const audience = audienceOf(key);
    const id = Buffer.from(JSON.stringify([user_id, client_id, key])).toString('base64url');
    return audience === undefined ? [] : [{ id, clientID: client_id, user_id, audience, scope: [...scope] }];
  });
}

const named = z.tuple([z.string(), z.string(), z.string()]);

/** What a grant's id names. @returns undefined for what is no id. */
function parsedId(id = ''): { userId: string; clientId: string; key: string } | undefined {
  try {
    const [userId, clientId, key] = named.parse(JSON.parse(Buffer.from(id, 'base64url').toString()));
    return { userId, clientId, key };
  } catch {
    // Whatever it is, no grant has it as its id.
    return undefined;
  }
}

/** Takes one API out of a consent. @returns the scopes that were allowed. */
async function withdraw(store: Store, id: string, key: string): Promise<readonly string[] | undefined> {
  let gone: readonly string[] | undefined;
  await store.collection('consents').update(id, (current) => {
    const { [key]: allowed, ...scopes } = current.scopes;
    gone = allowed;
    return { ...current, scopes };
  });
  return gone;
}

/** The grants of all users: one page of them is held at a time, however many there are. */
function everyGrant(store: Store, chosenOf: (consents: readonly Consent[]) => object[]): ListSource {
  const page = async ({ page: number, perPage }: { page: number; perPage: number }) => {
    const [from, to] = [number * perPage, (number + 1) * perPage];
    const items: object[] = [];
    let total = 0;
    for (let after: string | undefined; ; ) {
      const one = await store
        .collection('consents')
        .list({ limit: PAGE, ...(after !== undefined && { after }) });
      const chosen = chosenOf(one.records);
      items.push(...chosen.slice(Math.max(0, from - total), Math.max(0, to - total)));
      total += chosen.length;
      if (one.next === undefined) return { items, total };
      after = one.next;
    }
  };
  return { page, after: ({ take }) => page({ page: 0, perPage: take }) };
}

const call = callsWith<GrantsDependencies>();

/** All calls of grants. Who withdraws one ends the refresh tokens that live by it. */
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
      const chosenOf = (consents: readonly Consent[]) =>
        consents
          .flatMap((one) => grantViews(one, audienceOf))
          .filter((one) => client_id === undefined || one.clientID === client_id)
          .filter((one) => audience === undefined || one.audience === audience);
      const source =
        user_id === undefined
          ? everyGrant(store, chosenOf)
          : arraySource(chosenOf(await store.collection('consents').findBy('user', user_id)), ({ id }) => id);
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
      const scope = await withdraw(store, consentId(userId, clientId), key);
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
