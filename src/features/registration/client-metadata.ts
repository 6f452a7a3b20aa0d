// What an application says of itself when it registers (RFC 7591 §2, OpenID Connect Registration 1.0 §2), and the record that is
// made of it.
import { z } from 'zod';
import { isLoopback } from '../../http/loopback.ts';
import { clientSchema } from '../../records/clients/clients.ts';
import { recipientOf, STRANGERS } from '../../records/clients/third-parties.ts';
import type { ClientRecord } from '../../records/tenant/tenant.ts';

/** A callback: https, plain http on the user's own device, or a private-use scheme, which has a dot (RFC 8252 §7.1). */
export function isRegistrable(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || /[^\x21-\x7e]|[#*{}\\]/.test(text) || url.username + url.password !== '') return false;
  // The same host as without it, in another text than the one that is compared and shown.
  if (url.hostname.endsWith('.')) return false;
  if (url.protocol === 'http:') return isLoopback(url.hostname);
  return url.protocol === 'https:' || /^[a-z][a-z\d+-]*(\.[a-z\d+-]+)+:$/.test(url.protocol);
}

const webAddress = z
  .string()
  .max(512)
  .refine((text) => URL.parse(text)?.protocol === 'https:', 'must be an https URL');

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
  client_uri: webAddress.optional(),
  token_endpoint_auth_method: z
    .enum(['none', 'client_secret_post', 'client_secret_basic'])
    .default('client_secret_basic')
    .describe('`none` for a public application.'),
  grant_types: z
    .array(word)
    .max(20)
    .default(['authorization_code', 'refresh_token'])
    .describe('Those that third-party applications do not have are left out.'),
  response_types: z.array(z.string().max(100)).max(20).default(['code']),
  application_type: z.enum(['web', 'native']).optional(),
  id_token_signed_response_alg: z.literal('RS256').optional(),
  subject_type: z.literal('public').optional(),
});

export type Registration = z.output<typeof registrationBody>;

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
  const { client_name: name } = registration;
  if (name === undefined) return undefined;
  if (name.trim() !== name || HIDDEN.test(name) || /[<>]/.test(name))
    return fault('client_name has characters that names cannot have');
  if (SCRIPTS.filter((script) => script.test(name)).length > 1) return fault('client_name mixes alphabets');
  const taken = takenNames.map(skeleton);
  return taken.includes(skeleton(name)) ? fault('client_name is taken') : undefined;
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

/** Returns the record of an application. @param secret undefined for a public one. */
export function clientOf(
  registration: Registration,
  {
    clientId,
    mode,
    secret,
  }: { clientId: string; mode: RegistrationRules['mode']; secret: string | undefined },
): ClientRecord & { id: string } {
  const { redirect_uris: callbacks, token_endpoint_auth_method, logo_uri } = registration;
  const recipients = callbacks.map((uri) => recipientOf(uri));
  const isNative = recipients.some((one) => one !== undefined && !('host' in one));
  const client = clientSchema.parse({
    client_id: clientId,
    name: registration.client_name ?? hostsOf(callbacks),
    ...(logo_uri !== undefined && { logo_uri }),
    app_type: isNative ? 'native' : secret === undefined ? 'spa' : 'regular_web',
    callbacks,
    grant_types: grantsOf(registration, mode).grants,
    token_endpoint_auth_method,
    ...(secret !== undefined && { client_secret: secret }),
    ...STRANGERS,
    third_party_security_mode: mode,
    external_metadata_type: 'dcr',
    external_metadata_created_by: 'client',
  });
  return { ...client, id: clientId };
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
  const { client_uri, application_type, id_token_signed_response_alg: alg } = registration;
  return {
    client_id: client.client_id,
    client_name: client.name,
    redirect_uris: client.callbacks,
    grant_types: client.grant_types,
    response_types: grantsOf(registration, mode).responses,
    token_endpoint_auth_method: client.token_endpoint_auth_method,
    ...(client.logo_uri !== undefined && { logo_uri: client.logo_uri }),
    ...(client_uri !== undefined && { client_uri }),
    application_type: application_type ?? (client.app_type === 'native' ? 'native' : 'web'),
    ...(alg !== undefined && { id_token_signed_response_alg: alg }),
    subject_type: 'public',
  };
}
