// What a stranger's application says of itself, when it registers (RFC 7591 §2, OpenID Connect Registration 1.0 §2) or in the
// document at its client_id (draft-ietf-oauth-client-id-metadata-document-02 §4), and the record that is made of it.
import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { isLoopback } from '../../http/loopback.ts';
import { isListedHost } from '../../records/clients/allowed-urls.ts';
import { CREDENTIAL_ALGORITHMS, credentialSchema } from '../../records/clients/client-credentials.ts';
import { clientSchema } from '../../records/clients/clients.ts';
import { isClientUrl } from '../../records/clients/registrations.ts';
import { hostOfCallback, recipientOf, STRANGERS } from '../../records/clients/third-parties.ts';
import type { ClientRecord } from '../../records/tenant/tenant.ts';
import type { Config } from '../../tenant/config.ts';

/** A callback: https, plain http on the user's own device, or a private-use scheme, which has a dot (RFC 8252 §7.1). */
export function isRegistrable(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || /[^\x21-\x7e]|[#*{}\\]/.test(text) || url.username + url.password !== '') return false;
  // The same host as without it, in another text than the one that is compared and shown.
  if (url.hostname.endsWith('.')) return false;
  if (url.protocol === 'http:') return isLoopback(url.hostname);
  return url.protocol === 'https:' || /^[a-z][a-z\d+-]*(\.[a-z\d+-]+)+:$/.test(url.protocol);
}

const addressOf = (schemes: string) =>
  z
    .string()
    .max(512)
    .refine((text) => schemes.split(' or ').includes(URL.parse(text)?.protocol.slice(0, -1) ?? ''), {
      error: `must be an ${schemes} URL`,
    });
const webAddress = addressOf('https');

/** A short text of printable ASCII characters, such as a grant type. */
const word = z.string().regex(/^[\x21-\x7e]{1,100}$/);

/** Members that are not here are ignored (RFC 7591 §2). */
export const registrationBody = z.object({
  redirect_uris: z
    .array(z.string().max(512).refine(isRegistrable))
    .min(1)
    .max(10)
    .describe('The callbacks: https, a loopback address, or of a private-use scheme.'),
  client_name: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe('The name that users are shown, as not verified.'),
  logo_uri: webAddress.optional(),
  // Told back, and neither kept nor shown. Pages in development are at http://localhost, and name that.
  client_uri: addressOf('https or http').optional(),
  token_endpoint_auth_method: z
    .enum(['none', 'client_secret_post', 'client_secret_basic', 'private_key_jwt'])
    .default('client_secret_basic')
    .describe('`none` for a public application; `private_key_jwt` with `jwks` or `jwks_uri`.'),
  jwks: z.looseObject({ keys: z.array(z.looseObject({})).max(20) }).optional(),
  jwks_uri: webAddress.max(255).optional(),
  grant_types: z
    .array(word)
    .max(20)
    .default(['authorization_code', 'refresh_token'])
    .describe('Those that third-party applications do not have are left out.'),
  response_types: z.array(z.string().max(100)).max(20).default(['code']),
  application_type: z.enum(['web', 'native']).optional(),
  id_token_signed_response_alg: z.literal('RS256').optional(),
  userinfo_signed_response_alg: z.literal('RS256').optional(),
  request_object_signing_alg: z
    .enum([...CREDENTIAL_ALGORITHMS, 'none'])
    .optional()
    .describe(
      'Request objects of another algorithm are refused. `none`, which is not supported, is left out.',
    ),
  request_uris: z
    .array(webAddress)
    .max(5)
    .optional()
    .describe('Where its request objects are; left out unless applications may register as permissive.'),
  subject_type: z.literal('public').optional(),
});

export type Registration = z.output<typeof registrationBody>;

/** A document. It has no secret, which everybody could read (§4). */
export const clientDocument = registrationBody.extend({
  client_id: z.string(),
  client_name: z.string().min(1).max(100),
  token_endpoint_auth_method: z.enum(['none', 'private_key_jwt']).default('none'),
  client_secret: z.never().optional(),
  client_secret_expires_at: z.never().optional(),
});

/** What is wrong with a registration (RFC 7591 §3.2.2). */
export interface RegistrationFault {
  error: 'invalid_redirect_uri' | 'invalid_client_metadata';
  description: string;
}

/** What a registration is judged by. */
export interface RegistrationRules {
  mode: 'strict' | 'permissive';
  /** The origins of this server: an answer that is sent there is read by its own pages. */
  ownOrigins: readonly string[];
  /** The names that no stranger's application may have. */
  takenNames: readonly string[];
}

/** Returns the rules of a tenant. */
export async function registrationRules({
  config,
  issuer,
}: {
  config: Pick<Config, 'clients' | 'settings' | 'customOrigins'>;
  issuer: string;
}): Promise<RegistrationRules> {
  const { tenant } = config.settings();
  const ours = (await config.clients()).filter((client) => client.is_first_party);
  return {
    mode: tenant.dynamic_client_registration_security_mode ?? 'strict',
    ownOrigins: [new URL(issuer).origin, ...config.customOrigins()],
    takenNames: [tenant.friendly_name, ...ours.map(({ name }) => name)],
  };
}

const GRANTS = {
  strict: ['authorization_code', 'refresh_token'],
  permissive: ['authorization_code', 'refresh_token', 'implicit'],
};

/** Returns the grants and response types that a registration gets; others are left out. */
function grantsOf({ grant_types, response_types }: Registration, mode: RegistrationRules['mode']) {
  const grants = grant_types.filter((grant) => GRANTS[mode].includes(grant));
  const has = (grant: string) => grants.includes(grant);
  const responses = response_types.filter((type) =>
    type.split(' ').every((part) => has(part === 'code' ? 'authorization_code' : 'implicit')),
  );
  return { grants, responses };
}

export function registrationFault(
  registration: Registration,
  { mode, ownOrigins, takenNames }: RegistrationRules,
): RegistrationFault | undefined {
  const own = registration.redirect_uris.find((uri) => ownOrigins.includes(URL.parse(uri)?.origin ?? ''));
  if (own !== undefined)
    return { error: 'invalid_redirect_uri', description: 'redirect_uris cannot be addresses of this server' };
  const fault = (description: string): RegistrationFault => ({
    error: 'invalid_client_metadata',
    description,
  });
  const { grants, responses } = grantsOf(registration, mode);
  if (!grants.some((grant) => grant !== 'refresh_token'))
    return fault(`grant_types must have one of ${GRANTS[mode].join(', ')}`);
  if (responses.length === 0) return fault('response_types must have code');
  const usesKeys = registration.token_endpoint_auth_method === 'private_key_jwt';
  const { jwks, jwks_uri: uri } = registration;
  if (usesKeys && (jwks === undefined) === (uri === undefined))
    return fault('private_key_jwt needs either jwks or jwks_uri');
  const { client_name: name } = registration;
  if (name === undefined) return undefined;
  if (name.trim() !== name || HIDDEN.test(name) || /[<>]/.test(name))
    return fault('client_name has characters that names cannot have');
  if (SCRIPTS.filter((script) => script.test(name)).length > 1) return fault('client_name mixes alphabets');
  if (UNUSUAL.test(name)) return fault('client_name has letters of an alphabet that names cannot have');
  const taken = takenNames.map(skeleton);
  if (taken.includes(skeleton(name))) return fault('client_name is taken');
  return namesOtherHost(registration) ? fault('client_name names a host that is not its own') : undefined;
}

// docs/understand/decisions/clients-keys.md#a-name-contains-no-host-but-its-own
/** Whether the name of an application contains a host other than that of its document, or else of all its callbacks. */
function namesOtherHost({ client_name: name = '', ...registration }: Registration): boolean {
  const clientId = 'client_id' in registration ? String(registration.client_id) : '';
  const places = isClientUrl(clientId) ? [clientId] : registration.redirect_uris;
  const text = name
    .normalize('NFKC')
    // Marks that stand for the dot of a host (UTS #46 §2.3), or look like it.
    .replace(/[\u3002\u2024\u00b7]/g, '.');
  const words = text.match(/[\p{L}\p{M}\p{N}]+(?:[.-]+[\p{L}\p{M}\p{N}]+)*/gu) ?? [];
  return words
    .map((word) => domainToASCII(word))
    .filter((word) => word !== '' && isListedHost(word))
    .some((word) => !places.every((uri) => hostOfCallback(uri)?.replace(/:\d+$/, '') === word));
}

/** Characters that are not seen, that change how others are shown, or that draw on their neighbours. */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|\p{M}{3}/u;

/** Alphabets that have letters in common to the eye. */
const SCRIPTS = [
  /\p{sc=Latin}/u,
  /\p{sc=Cyrillic}/u,
  /\p{sc=Greek}/u,
  /\p{sc=Armenian}/u,
  /\p{sc=Cherokee}/u,
];

/**
 * Letters of alphabets that are not in wide use (UAX #31 §2.4, table 5): some have the shapes of Latin ones, such as those of Lisu.
 */
const UNUSUAL =
  /(?=\p{L})[^\p{scx=Zyyy}\p{scx=Arab}\p{scx=Armn}\p{scx=Beng}\p{scx=Bopo}\p{scx=Cyrl}\p{scx=Deva}\p{scx=Ethi}\p{scx=Geor}\p{scx=Grek}\p{scx=Gujr}\p{scx=Guru}\p{scx=Hang}\p{scx=Hani}\p{scx=Hebr}\p{scx=Hira}\p{scx=Kana}\p{scx=Khmr}\p{scx=Knda}\p{scx=Laoo}\p{scx=Latn}\p{scx=Mlym}\p{scx=Mymr}\p{scx=Orya}\p{scx=Sinh}\p{scx=Taml}\p{scx=Telu}\p{scx=Thaa}\p{scx=Thai}\p{scx=Tibt}]/u;

/** Letters of other alphabets, and digits, by the Latin letters that they look like. */
const LOOKS: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'аa',
    'вb',
    'еe',
    'кk',
    'мm',
    'нh',
    'оo',
    'рp',
    'сc',
    'тt',
    'уy',
    'хx',
    'іi',
    'јj',
    'ѕs',
    'ԁd',
    'ԛq',
    'ԝw',
    'һh',
    'ӏl',
  ]
    .concat([
      'αa',
      'βb',
      'εe',
      'ζz',
      'ηh',
      'ιi',
      'κk',
      'μm',
      'νv',
      'οo',
      'ρp',
      'τt',
      'υy',
      'χx',
      'ɡg',
      'ɑa',
      'ıi',
    ])
    // Small capitals, and letters with a stroke, which have no mark to be taken away.
    .concat(['ᴀa', 'ʙb', 'ᴄc', 'ᴅd', 'ᴇe', 'ꜰf', 'ɢg', 'ʜh', 'ɪi', 'ᴊj', 'ᴋk', 'ʟl', 'ᴍm', 'ɴn', 'ᴏo', 'ᴘp'])
    .concat(['ʀr', 'ꜱs', 'ᴛt', 'ᴜu', 'ᴠv', 'ᴡw', 'ʏy', 'ᴢz', 'øo', 'łl', 'đd', 'ħh', 'ŧt', 'ƅb', 'ɩi', 'ȷj'])
    .concat(['0o', '1l', '5s', '|l'])
    .map((pair) => [...pair] as [string, string]),
);

/** Returns what the eye sees of a name, about: names with the same result are taken for each other. */
function skeleton(name: string): string {
  const letters = [...name.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()].map(
    (char) => LOOKS[char] ?? char,
  );
  return letters
    .join('')
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
    .replaceAll('i', 'l')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w');
}

/** The most keys of an application. */
const MAX_KEYS = 5;
/** The longest modulus and exponent, characters of base64url: 4096 and 64 bits. Longer ones make each check of a signature slow. */
const [MAX_MODULUS, MAX_EXPONENT] = [684, 11];

const ALGORITHMS: Readonly<Record<string, (typeof CREDENTIAL_ALGORITHMS)[number]>> = {
  RSA: 'RS256',
  'P-256': 'ES256',
  'P-384': 'ES384',
  Ed25519: 'EdDSA',
};

const publicKey = z.looseObject({
  kty: z.string(),
  n: z.string().max(MAX_MODULUS).optional(),
  e: z.string().max(MAX_EXPONENT).optional(),
});

/** A public key that verifies assertions, as a credential. */
export type KeyCredential = z.output<typeof credentialSchema>;

/**
 * Returns the keys of a set that verify assertions (RFC 7517 §5): others in it are left out, as a set may have keys for other
 * uses and of types that are not known here.
 * @returns undefined where none is left, there are too many, or one is private.
 */
export function keysOf(jwks: unknown): KeyCredential[] | undefined {
  const { data } = z.object({ keys: z.array(z.looseObject({})) }).safeParse(jwks);
  const usable = data?.keys.filter(({ use }) => use === undefined || use === 'sig') ?? [];
  if (usable.length > MAX_KEYS || data?.keys.some((key) => 'd' in key || 'k' in key)) return undefined;
  const keys = usable.flatMap((one) => {
    const { success, data: key } = publicKey.safeParse(one);
    if (!success) return [];
    const { kty, crv, n, e, x, y, kid } = key;
    const jwk = { kty, crv, n, e, x, y, kid };
    const alg = key.alg ?? ALGORITHMS[kty === 'RSA' ? kty : String(crv)];
    const credential = credentialSchema.safeParse({ jwk: defined(jwk), ...defined({ kid }), alg });
    return credential.success && alg !== undefined ? [credential.data] : [];
  });
  return keys.length === 0 ? undefined : keys;
}

function defined(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** How an application authenticates: by a secret, by keys, or not at all. */
interface Credentials {
  secret?: string | undefined;
  keys?: readonly KeyCredential[] | undefined;
}

/** The algorithm of request objects (OpenID Connect Registration 1.0 §2); undefined where any that is supported will do. */
function objectAlgOf({ request_object_signing_alg: alg }: Pick<Registration, 'request_object_signing_alg'>) {
  return alg === 'none' ? undefined : alg;
}

/** Returns the record of an application. */
export function clientOf(
  registration: Omit<Registration, 'client_secret'>,
  { clientId, mode, secret, keys }: { clientId: string; mode: RegistrationRules['mode'] } & Credentials,
): ClientRecord & { id: string } {
  const { redirect_uris: callbacks, token_endpoint_auth_method: method, logo_uri } = registration;
  const recipients = callbacks.map((uri) => recipientOf(uri));
  const isNative = recipients.some((one) => one !== undefined && !('host' in one));
  const isPublic = secret === undefined && keys === undefined;
  const isDescribed = isClientUrl(clientId);
  const client = clientSchema.parse({
    client_id: clientId,
    name: registration.client_name ?? hostsOf(callbacks),
    ...(logo_uri !== undefined && { logo_uri }),
    app_type: isNative ? 'native' : isPublic ? 'spa' : 'regular_web',
    callbacks,
    grant_types: grantsOf(registration, mode).grants,
    ...(method !== 'private_key_jwt' && { token_endpoint_auth_method: method }),
    ...(secret !== undefined && { client_secret: secret }),
    ...(keys !== undefined && withKeys(keys)),
    userinfo_signed_response_alg: registration.userinfo_signed_response_alg,
    request_object_signing_alg: objectAlgOf(registration),
    ...STRANGERS,
    third_party_security_mode: mode,
    ...(isDescribed && { external_client_id: clientId }),
    external_metadata_type: isDescribed ? 'cimd' : 'dcr',
    external_metadata_created_by: 'client',
  });
  return { ...client, id: clientId };
}

/** Returns the members by which an application authenticates with keys. */
export function withKeys(credentials: readonly KeyCredential[]) {
  return { client_authentication_methods: { private_key_jwt: { credentials: [...credentials] } } };
}

/** The name of an application that has given itself none: where it is. */
function hostsOf(callbacks: readonly string[]): string {
  const hosts = callbacks.map((uri) => URL.parse(uri)?.host || URL.parse(uri)?.protocol || '');
  return [...new Set(hosts)].join(', ').slice(0, 100);
}

/** Where the answers to an application's requests go: what users have been shown of it. */
export function placesOf(callbacks: readonly string[]): string {
  return [...new Set(callbacks.map((uri) => JSON.stringify(recipientOf(uri))))].sort().join();
}

/** Returns what is registered, as the application is told (RFC 7591 §3.2.1). */
export function metadataOf(registration: Registration, client: ClientRecord): Record<string, unknown> {
  const mode = client.third_party_security_mode ?? 'strict';
  const { client_uri, jwks_uri, application_type, id_token_signed_response_alg: alg } = registration;
  const { userinfo_signed_response_alg: userinfoAlg, request_uris } = registration;
  const objectAlg = objectAlgOf(registration);
  return {
    client_id: client.client_id,
    client_name: client.name,
    redirect_uris: client.callbacks,
    grant_types: client.grant_types,
    response_types: grantsOf(registration, mode).responses,
    token_endpoint_auth_method: registration.token_endpoint_auth_method,
    ...(jwks_uri !== undefined && { jwks_uri }),
    ...(client.logo_uri !== undefined && { logo_uri: client.logo_uri }),
    ...(client_uri !== undefined && { client_uri }),
    application_type: application_type ?? (client.app_type === 'native' ? 'native' : 'web'),
    ...(alg !== undefined && { id_token_signed_response_alg: alg }),
    ...(userinfoAlg !== undefined && { userinfo_signed_response_alg: userinfoAlg }),
    ...(objectAlg !== undefined && { request_object_signing_alg: objectAlg }),
    ...(request_uris !== undefined && mode === 'permissive' && { request_uris }),
    subject_type: 'public',
  };
}
