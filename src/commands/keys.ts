// `gatehouse keys`: the signing keys, and the key that the secrets in the store are sealed with. The last two work on the
// store itself, while no server uses it.
import { readFile } from 'node:fs/promises';
import { Option } from 'commander';
import { SIGNING_ALGS, type SigningAlg } from '../records/base/signing-algs.ts';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { systemRandom } from '../runtime/secrets.ts';
import type { SendOrder } from '../server/administration/orders.ts';
import type { TrustedKey } from '../server/administration/trusted-keys.ts';
import { readSettings, type Settings } from '../settings/index.ts';
import { keyFile } from '../store/sealing/key.ts';
import { resealStore, resetSealed } from '../store/sealing/reseal.ts';
import type { CommandDeclaration } from './command.ts';

export const rotate: CommandDeclaration = {
  name: 'keys rotate',
  description: 'sign with the next keys from now on',
  options: (command) =>
    void command.addOption(
      new Option('--alg <alg>', 'only with those of this algorithm').choices(SIGNING_ALGS),
    ),
  run: async ({ host, sendOrder }, { alg }: { alg?: SigningAlg }) => {
    const order = { command: 'rotate', ...(alg && { alg }) } as const;
    const keys = await sendOrder(readSettings(host.env), order);
    const [first, ...others] = keys;
    if (others.length === 0) print(host, `from now on tokens are signed with ${first?.kid}`);
    else for (const { alg, kid } of keys) print(host, `from now on ${alg} tokens are signed with ${kid}`);
  },
};

export const reseal: CommandDeclaration = {
  name: 'keys reseal',
  description: 'seal the secrets in the store with SECRETS_KEY, or with a new key in keys/secrets.key',
  run: ({ host }) => sealAnew(host),
};

export const reset: CommandDeclaration = {
  name: 'keys reset',
  description: 'when the key of the store is lost for good: remove the secrets that it sealed',
  options: (command) => void command.alias('reset-authenticators'),
  run: ({ host }) => removeSealed(host),
};

export const trust: CommandDeclaration = {
  name: 'keys trust',
  description:
    'publish the public keys of the tenant that this one takes the place of, for a time: APIs go on accepting its tokens, and a logout its ID tokens; they verify nothing else here',
  options: (command) =>
    void command
      .option('--jwks <url or file>', 'its key set: https://acme.eu.auth0.com/.well-known/jwks.json')
      .option('--until <date>', 'the last day, in UTC, on which they are trusted: 2027-03-31')
      .option('--issuer <issuer...>', 'the issuers of its ID tokens, beside ours and that of the address')
      .option('--list', 'list the keys that are trusted')
      .option('--end [kid]', 'end the trust in all of them, or in one')
      .option('--json', 'print JSON'),
  run: async ({ host, sendOrder }, options: TrustOptions) => {
    const keys = await trustedAfter(sendOrder, readSettings(host.env), options);
    if (options.json === true) return print(host, JSON.stringify(keys));
    if (keys.length === 0) print(host, 'No keys of others are trusted.');
    for (const { id, alg, source, until, is_trusted: isTrusted } of keys)
      print(host, `${id} (${alg}) of ${source}, ${isTrusted ? 'trusted until' : 'over since'} ${until}`);
  },
};

interface TrustOptions {
  jwks?: string;
  until?: string;
  issuer?: string[];
  list?: true;
  end?: true | string;
  json?: true;
}

/** Does what the options say. @returns the keys that are trusted then. */
async function trustedAfter(
  sendOrder: SendOrder,
  settings: Settings,
  { jwks, until, issuer, list, end }: TrustOptions,
): Promise<TrustedKey[]> {
  const given = [jwks, list, end].filter((one) => one !== undefined);
  if (given.length !== 1) throw new Error('give one of --jwks, --list and --end');
  if (list === true) return sendOrder(settings, { command: 'trustedKeys' });
  if (end !== undefined) {
    const kid = end === true ? undefined : end;
    return sendOrder(settings, { command: 'distrustKeys', ...(kid !== undefined && { kid }) });
  }
  if (jwks === undefined || until === undefined)
    throw new Error('--jwks needs --until, a date such as 2027-03-31');
  const isAddress = /^https?:\/\//i.test(jwks);
  return sendOrder(settings, {
    command: 'trustKeys',
    source: jwks,
    until,
    ...(issuer !== undefined && { issuers: issuer }),
    ...(!isAddress && { text: await readFile(jwks, 'utf8') }),
  });
}

async function sealAnew(host: CommandProcess): Promise<void> {
  const { dataDir, databaseUrl: url, secretsKey: given, secretsKeyBefore: before } = readSettings(host.env);
  const source = { dataDir, given, before, random: systemRandom };
  if (url === undefined) await resealStore(source);
  else await (await import('../store/postgres/postgres-reseal.ts')).resealDatabase({ ...source, url });
  const where = given === undefined ? `the new key in ${keyFile(dataDir)}` : 'SECRETS_KEY';
  print(host, `the secrets in the store are sealed with ${where} from now on`);
}

/** Removes the secrets that the store's key does not open, for a key that is lost for good. */
async function removeSealed(host: CommandProcess): Promise<void> {
  const { dataDir, databaseUrl: url, secretsKey: given } = readSettings(host.env);
  const { records, members } =
    url === undefined
      ? await resetSealed({ dataDir, given })
      : await (await import('../store/postgres/postgres-reseal.ts')).resetDatabase({ dataDir, given, url });
  const name = given === undefined ? keyFile(dataDir) : 'SECRETS_KEY';
  print(
    host,
    `removed ${records} signing keys and authenticator apps, and ${members} secrets of the configuration, that ${name} does not open: users enrol the apps anew, and gatehouse apply puts back what the tenant file has`,
  );
}
