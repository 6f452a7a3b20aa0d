// Lists of what Gatehouse has none of. Deploy tools read them all and give up a whole run for one that is missing, so
// each is answered, empty.
import { z } from 'zod';
import { type Call, callsWith, ok } from '../call.ts';
import { fieldsQuery } from '../fields.ts';
import { arraySource, cursorQuery, listAnswer, pageQuery } from '../list.ts';

/** Each list with the member that wraps it, and the noun of its scope. */
const LISTS: readonly { path: string; key: string; noun: string; query?: z.ZodRawShape; bare?: true }[] = [
  { path: '/rules', key: 'rules', noun: 'rules', query: { enabled: z.string().optional() } },
  {
    path: '/hooks',
    key: 'hooks',
    noun: 'hooks',
    query: { enabled: z.string().optional(), triggerId: z.string().optional() },
  },
  {
    path: '/forms',
    key: 'forms',
    noun: 'forms',
    query: { hydrate: z.union([z.string(), z.array(z.string())]).optional() },
  },
  {
    path: '/flows',
    key: 'flows',
    noun: 'flows',
    query: {
      hydrate: z.union([z.string(), z.array(z.string())]).optional(),
      synchronous: z.string().optional(),
    },
  },
  { path: '/flows/vault/connections', key: 'connections', noun: 'flows_vault_connections' },
  { path: '/self-service-profiles', key: 'self_service_profiles', noun: 'self_service_profiles' },
  { path: '/event-streams', key: 'eventStreams', noun: 'event_streams' },
  { path: '/token-exchange-profiles', key: 'token_exchange_profiles', noun: 'token_exchange_profiles' },
  { path: '/network-acls', key: 'network_acls', noun: 'network_acls' },
  { path: '/user-attribute-profiles', key: 'user_attribute_profiles', noun: 'user_attribute_profiles' },
  { path: '/connection-profiles', key: 'connection_profiles', noun: 'connection_profiles' },
  { path: '/rate-limit-policies', key: 'rate_limit_policies', noun: 'rate_limit_policies' },
  {
    path: '/connections-directory-provisionings',
    key: 'directory_provisionings',
    noun: 'directory_provisionings',
  },
  { path: '/actions/modules', key: 'modules', noun: 'actions' },
  {
    path: '/branding/phone/providers',
    key: 'providers',
    noun: 'phone_providers',
    query: { disabled: z.string().optional() },
    bare: true,
  },
  {
    path: '/branding/phone/templates',
    key: 'templates',
    noun: 'phone_templates',
    query: { disabled: z.string().optional() },
    bare: true,
  },
];

/** Single settings of which there are none. */
const EMPTY: readonly { path: string; noun: string; body: object }[] = [
  { path: '/rules-configs', noun: 'rules_configs', body: [] },
  { path: '/supplemental-signals', noun: 'supplemental_signals', body: {} },
];

const call = callsWith<unknown>();

/** The calls. */
export const unusedCalls: Call<unknown>[] = [
  ...LISTS.map(({ path, key, noun, query: more = {}, bare }) =>
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `List ${key}: there are none`,
      query: z.strictObject({ ...pageQuery, ...cursorQuery, ...fieldsQuery, ...more }),
      handle: async (_deps, { query }) =>
        // These two are wrapped always, and never paged.
        ok(
          bare === true
            ? { [key]: [] }
            : await listAnswer(query, arraySource([], String), { key, isByCursor: true }),
        ),
    }),
  ),
  ...EMPTY.map(({ path, noun, body }) =>
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `Get ${path.slice(1)}: there are none`,
      handle: async () => ok(body),
    }),
  ),
];
