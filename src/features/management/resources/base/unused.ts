// Responses for resources that Gatehouse does not have. Deploy tools read all lists, and fail if one is missing.
import { z } from 'zod';
import { type Call, callsWith, noContent, ok } from '../../call.ts';
import { arraySource, cursorQuery, listAnswer, pageQuery } from '../../list.ts';
import { apiError } from '../../management-errors.ts';
import { fieldsQuery } from '../../management-fields.ts';
import { notFound } from '../../resource.ts';

/** The lists: path, the member that wraps each, the noun of its scope, and its name in summaries. */
const LISTS: readonly { path: string; key: string; noun: string; name: string }[] = [
  { path: '/keys/encryption', key: 'keys', noun: 'encryption_keys', name: 'encryption keys' },
];

/** Single resources that do not exist. */
const ABSENT: readonly { path: string; noun: string; name: string; message: string }[] = [
  {
    path: '/keys/encryption/:kid',
    noun: 'encryption_keys',
    name: 'an encryption key',
    message: 'The encryption key does not exist',
  },
  {
    path: '/keys/custom-signing',
    noun: 'custom_signing_keys',
    name: 'custom signing keys',
    message: 'There are no custom signing keys',
  },
];

const call = callsWith<unknown>();

export const unusedCalls: Call<unknown>[] = [
  ...LISTS.map(({ path, key, noun, name }) =>
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `List ${name} (there are none)`,
      query: z.strictObject({ ...pageQuery, ...cursorQuery, ...fieldsQuery }),
      handle: async (_deps, { query }) => ok(await listAnswer(query, arraySource([], String), { key })),
    }),
  ),
  ...ABSENT.map(({ path, noun, name, message }) =>
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `Get ${name} (always 404)`,
      handle: async () => {
        throw notFound(message)();
      },
    }),
  ),
  call({
    method: 'POST',
    path: '/keys/encryption/rekey',
    scopes: ['create:encryption_keys', 'update:encryption_keys'],
    summary: 'Renew the encryption keys (there are none)',
    handle: async () => ({ ...noContent(), isUnchanged: false, warnings: [REKEY] }),
  }),
  call({
    method: 'POST',
    path: '/keys/encryption',
    scopes: ['create:encryption_keys'],
    summary: 'Create an encryption key (always refused)',
    body: z.looseObject({ type: z.string().max(64) }),
    handle: async () => {
      throw apiError(400, OWN_ROOT_KEY, 'invalid_body');
    },
  }),
];

const REKEY =
  'no encryption key was renewed: the one key that seals secrets is SECRETS_KEY, or in the data directory';

// docs/understand/decisions/store.md#one-key-seals-the-secrets-of-the-store-and-the-operator-holds-it
/** Whoever destroys their own root key relies on it that nothing can be read any more. */
const OWN_ROOT_KEY =
  'The key that seals secrets is SECRETS_KEY or in the data directory of the server, and cannot be imported';
