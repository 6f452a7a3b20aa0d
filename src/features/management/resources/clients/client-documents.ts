// `/clients/cimd`: applications that describe themselves in a document at a URL, which is their client_id (OAuth Client ID
// Metadata Document, draft-ietf-oauth-client-id-metadata-document). Only who may create clients registers them.
// docs/understand/decisions/clients-keys.md#an-application-with-a-metadata-document-has-its-url-as-client_id
import { z } from 'zod';
import { endGranted } from '../../../../engine/base/granted.ts';
import { type KeyCredential, keysOf, withKeys } from '../../../../engine/client/client-metadata.ts';
import { isLoopback } from '../../../../http/loopback.ts';
import type { Outbound } from '../../../../http/outbound/outbound.ts';
import { OutboundError } from '../../../../http/outbound/outbound-error.ts';
import { isPattern } from '../../../../records/clients/allowed-urls.ts';
import { authenticationMethod, credentialMethod } from '../../../../records/clients/client-authentication.ts';
import { clientSchema } from '../../../../records/clients/clients.ts';
import { isClientUrl } from '../../../../records/clients/registrations.ts';
import { STRANGERS } from '../../../../records/clients/third-parties.ts';
import type { Client } from '../../../../records/collections.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { checkedBy } from '../../resource.ts';
import { type ClientsDependencies, withDefaults } from './clients-calls.ts';

export interface ClientDocumentsDependencies extends ClientsDependencies {
  outbound: Pick<Outbound, 'fetch'>;
}

/** The largest document, bytes: the draft's own recommendation (§8.7). */
const MAX_DOCUMENT_BYTES = 5 * 1024;

const clientUrl = z
  .string()
  .refine(
    isClientUrl,
    'must be the normal form of an https URL with a path, without credentials and fragment',
  );

/**
 * Whether browsers may be sent to a URL that a stranger's document names: https, plain http on the user's own machine, and
 * the private-use schemes of native applications, which have a dot (RFC 8252 §7.1). No pattern, and nothing that runs code.
 */
function isRedirectUri(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.hash !== '' || text.includes('*') || isPattern(text)) return false;
  if (url.protocol === 'http:') return isLoopback(url.hostname);
  return url.protocol === 'https:' || url.protocol.includes('.');
}

const uri = z.string().min(1).max(2048);

/** What is read of a document. The application authenticates with no secret, since anybody can read the document. */
const documentSchema = z.looseObject({
  client_id: z.string(),
  client_name: z.string().min(1).max(255),
  redirect_uris: z
    .array(uri.refine(isRedirectUri, 'must be https, a loopback URL, or of a private-use scheme'))
    .min(1)
    .max(100),
  logo_uri: uri.refine((text) => URL.parse(text)?.protocol === 'https:', 'must be an https URL').optional(),
  grant_types: z.array(z.enum(['authorization_code', 'refresh_token'])).default(['authorization_code']),
  response_types: z.array(z.literal('code')).optional(),
  token_endpoint_auth_method: z
    .enum(['none', 'private_key_jwt'], 'must be none or private_key_jwt')
    .default('none'),
  jwks: z.unknown().optional(),
  jwks_uri: uri.refine((text) => URL.parse(text)?.protocol === 'https:', 'must be an https URL').optional(),
  client_secret: z.never('must not be in a document').optional(),
});

const READ = Object.keys(documentSchema.shape);

/** A document, as the hosted service answers it. */
interface Described {
  mapped_fields: Record<string, unknown> & { external_client_id: string };
  validation: { valid: boolean; violations: string[]; warnings: string[] };
}

/** Fetches the document of a client, and checks it. @throws AuthError 400 when there is none */
async function describe({ outbound }: ClientDocumentsDependencies, url: string): Promise<Described> {
  const document = await fetchDocument(outbound, url);
  const { data, error } = documentSchema.safeParse(document);
  const violations = error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];
  if (data !== undefined && data.client_id !== url)
    violations.push('client_id: must be the URL of the document');
  const keys = data && violations.length === 0 ? await keysFor(outbound, data) : undefined;
  if (data?.token_endpoint_auth_method === 'private_key_jwt' && keys === undefined)
    violations.push('token_endpoint_auth_method: needs usable public keys in either jwks or jwks_uri');
  const ignored = Object.keys(document).filter((name) => !READ.includes(name));
  const warning = `Ignoring unsupported properties: ${ignored.join(', ')}.`;
  return {
    mapped_fields: {
      external_client_id: url,
      ...(data !== undefined && {
        name: data.client_name,
        callbacks: data.redirect_uris,
        ...(data.logo_uri !== undefined && { logo_uri: data.logo_uri }),
        grant_types: data.grant_types,
        ...(keys === undefined ? PUBLIC : { app_type: 'regular_web', ...withKeys(keys) }),
        ...(keys !== undefined && data.jwks_uri !== undefined && { jwks_uri: data.jwks_uri }),
      }),
    },
    validation: {
      valid: violations.length === 0,
      violations,
      warnings: ignored.length === 0 ? [] : [warning],
    },
  };
}

/** Returns the keys of a document that authenticates with keys: in it, or where it says. */
async function keysFor(
  outbound: Pick<Outbound, 'fetch'>,
  { token_endpoint_auth_method: method, jwks, jwks_uri: uri }: z.output<typeof documentSchema>,
): Promise<KeyCredential[] | undefined> {
  if (method !== 'private_key_jwt' || (jwks === undefined) === (uri === undefined)) return undefined;
  return keysOf(uri === undefined ? jwks : await fetchDocument(outbound, uri));
}

/** A redirect could lead to a document of somebody else (§5), so none is followed. */
async function fetchDocument(
  outbound: Pick<Outbound, 'fetch'>,
  url: string,
): Promise<Record<string, unknown>> {
  const fail = (why: string) =>
    apiError(400, `The document at ${url} cannot be used: ${why}`, 'invalid_body');
  const response = await outbound
    .fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'manual',
      maxBytes: MAX_DOCUMENT_BYTES,
    })
    .catch((thrown: unknown) => {
      throw thrown instanceof OutboundError ? fail(thrown.message) : thrown;
    });
  if (response.status !== 200) throw fail(`it was answered ${response.status}`);
  const { success, data } = z
    .record(z.string(), z.unknown())
    .safeParse(await response.json().catch(() => undefined));
  if (!success) throw fail('it is no JSON object');
  return data;
}

const PUBLIC = { app_type: 'native', token_endpoint_auth_method: 'none' };

/** Members of such an application, which is a third party's and authenticates its tokens by rotating them. */
const THIRD_PARTY = {
  ...STRANGERS,
  third_party_security_mode: 'strict',
  sso_disabled: false,
  custom_login_page_on: true,
  external_metadata_type: 'cimd',
  external_metadata_created_by: 'admin',
};

async function register(
  deps: ClientDocumentsDependencies,
  { mapped_fields: { jwks_uri: _, ...fields } }: Described,
): Promise<Client> {
  const clients = deps.store.collection('clients');
  const client_id = fields.external_client_id;
  const parsed = (before: object, kept: object = {}) => {
    const client = checkedBy(clientSchema, { ...THIRD_PARTY, ...before, ...fields, ...kept, client_id });
    return withDefaults(client, () => deps.random(48).toString('base64url'));
  };
  const registrations = deps.store.collection('registrations');
  const known = (await clients.get(client_id)) ?? (await registrations.get(client_id));
  // What users granted an application that was removed or forgotten is not this one's.
  if (known === undefined) await endGranted(deps.store, client_id);
  const registered = await clients.upsert(client_id, (current) => {
    if (current === undefined) return parsed({});
    const { id: _, ...before } = current;
    if (before.external_metadata_type !== 'cimd')
      throw apiError(409, 'A client with this client_id exists that has no document');
    // What an administrator allowed beyond the document stays, and so does how it must authenticate.
    const grant_types = [...new Set([...(before.grant_types ?? []), ...(fields.grant_types as string[])])];
    const { app_type, token_endpoint_auth_method, client_authentication_methods } = { ...PUBLIC, ...before };
    const isPublicOrKeyed =
      authenticationMethod(before) === 'none' || credentialMethod(before) === 'private_key_jwt';
    const takesKeys = isPublicOrKeyed && fields.client_authentication_methods !== undefined;
    const kept = takesKeys
      ? { token_endpoint_auth_method: undefined }
      : { app_type, token_endpoint_auth_method, client_authentication_methods };
    return { ...parsed(before, kept), grant_types };
  });
  // From now on it is as its record says, and not as its document at the latest login.
  await registrations.delete(client_id);
  return registered;
}

const call = callsWith<ClientDocumentsDependencies>();
const body = z.strictObject({ external_client_id: clientUrl });

export const clientDocumentCalls: Call<ClientDocumentsDependencies>[] = [
  call({
    method: 'POST',
    path: '/clients/cimd/preview',
    scopes: ['create:clients', 'update:clients'],
    summary: 'Show what the document of an application says',
    body,
    handle: async (deps, request) => {
      const url = request.body.external_client_id;
      const described = await describe(deps, url);
      const known = await deps.store.collection('clients').get(url);
      return ok({ ...described, ...(known && { client_id: known.client_id }) }, { isUnchanged: true });
    },
  }),
  call({
    method: 'POST',
    path: '/clients/cimd/register',
    scopes: ['create:clients', 'update:clients'],
    summary: 'Register an application by its document, or bring it up to date',
    body,
    handle: async (deps, request) => {
      const described = await describe(deps, request.body.external_client_id);
      // The other server decided how long that took.
      await request.admitAgain();
      const { violations } = described.validation;
      if (violations.length > 0)
        throw apiError(400, `The document cannot be used: ${violations.join('; ')}`, 'invalid_body');
      const { client_id } = await register(deps, described);
      return ok({ client_id, ...described }, { after: { client_id, ...described.mapped_fields } });
    },
  }),
];
