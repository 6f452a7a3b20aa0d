// Lists of what Gatehouse has none of. Deploy tools read them all and give up a whole run for one that is missing, so
// each is answered, empty.
import { z } from 'zod';
import { type Call, callsWith, ok } from '../call.ts';
import { fieldsQuery } from '../fields.ts';
import { arraySource, cursorQuery, listAnswer, pageQuery } from '../list.ts';
import { notFound } from '../resource.ts';

/** Each list with the member that wraps it, and the noun of its scope. */
const LISTS: readonly { path: string; key: string; noun: string }[] = [
  { path: '/keys/encryption', key: 'keys', noun: 'encryption_keys' },
];

/** Single things of which there are none. */
const ABSENT: readonly { path: string; noun: string; message: string }[] = [
  { path: '/keys/encryption/:kid', noun: 'encryption_keys', message: 'The encryption key does not exist' },
  { path: '/keys/custom-signing', noun: 'custom_signing_keys', message: 'There are no custom signing keys' },
];

const call = callsWith<unknown>();

/** The calls. */
export const unusedCalls: Call<unknown>[] = [
  ...LISTS.map(({ path, key, noun }) =>
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `List ${key}: there are none`,
      query: z.strictObject({ ...pageQuery, ...cursorQuery, ...fieldsQuery }),
      handle: async (_deps, { query }) => ok(await listAnswer(query, arraySource([], String), { key })),
    }),
  ),
  ...ABSENT.map(({ path, noun, message }) =>
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `Get ${path.slice(1).replace('/:', ' of a ')}: there is none`,
      handle: async () => {
        throw notFound(message)();
      },
    }),
  ),
];
