// Third-party applications: strangers operate them. What they may do, and what is shown of them.
// docs/understand/decisions/clients-keys.md#a-third-party-application-is-strict-unless-it-says-otherwise
import { isLoopback } from '../../http/loopback.ts';

export const SECURITY_MODES = ['strict', 'permissive'] as const;

/** What happens to errors that nobody has seen: they lead to the callback, or to a page of this server (RFC 9700 §4.11.2). */
export const REDIRECTION_POLICIES = ['allow_always', 'open_redirect_protection'] as const;

/** The grants of a strict application. */
const GRANTS: readonly string[] = ['authorization_code', 'refresh_token', 'client_credentials'];

/**
 * The members of its record that a strict application has an effect by. A list of what counts, so that what is added to
 * applications is not strangers' by itself.
 */
const MEMBERS: ReadonlySet<string> = new Set([
  ...['id', 'client_id', 'name', 'description', 'logo_uri', 'client_metadata', 'created_at', 'updated_at'],
  ...['is_first_party', 'third_party_security_mode', 'redirection_policy', 'registration', 'oidc_conformant'],
  ...['external_client_id', 'external_metadata_type', 'external_metadata_created_by'],
  ...['app_type', 'callbacks', 'allowed_logout_urls', 'allowed_origins', 'web_origins', 'initiate_login_uri'],
  ...['client_secret', 'token_endpoint_auth_method', 'client_authentication_methods', 'credentials'],
  ...['signed_request_object', 'require_pushed_authorization_requests', 'par_request_expiry'],
  ...['compliance_level', 'require_proof_of_possession', 'encryption_key', 'standard_claims', 'sso_disabled'],
  ...['jwt_configuration', 'id_token_signed_response_alg', 'id_token_encrypted_response_alg'],
  ...['id_token_encrypted_response_enc', 'authorization_signed_response_alg'],
  ...['userinfo_signed_response_alg', 'request_object_signing_alg'],
  ...['authorization_encrypted_response_alg', 'authorization_encrypted_response_enc'],
  ...['oidc_logout', 'oidc_backchannel_logout', 'frontchannel_logout_uri'],
  // Its requests name the organization: our pages ask nobody for one on its behalf.
  'organization_usage',
]);

/** Members of an application that nobody here made: one that registered itself, or is known by a document of its own. */
export const STRANGERS = {
  is_first_party: false,
  oidc_conformant: true,
  jwt_configuration: { alg: 'RS256', lifetime_in_seconds: 3600 },
  refresh_token: { rotation_type: 'rotating', expiration_type: 'expiring', leeway: 0 },
} as const;

interface ThirdParty {
  readonly is_first_party?: boolean | undefined;
  readonly third_party_security_mode?: string | null | undefined;
}

/** Returns whether an application is a third party's without exceptions for old ones. */
export function isStrict({ is_first_party, third_party_security_mode: mode }: ThirdParty): boolean {
  return is_first_party === false && mode !== 'permissive';
}

interface Limited extends ThirdParty {
  readonly name: string;
  readonly grant_types?: readonly string[] | undefined;
  readonly refresh_token?: { readonly policies?: unknown } | undefined;
}

// docs/understand/decisions/authorize.md#a-strict-third-party-application-is-shown-to-each-user
/**
 * Returns an application as it takes effect: a strict one without what strict ones do not have, and a third party's with a
 * name that can be told to people wherever it comes to.
 */
export function effectiveClient<C extends Limited>(application: C): C {
  const name = visibleName(application);
  const client = name === application.name ? application : Object.freeze({ ...application, name });
  if (!isStrict(client)) return client;
  const known = Object.entries(client).filter(([member]) => MEMBERS.has(member));
  const { policies: _, ...refresh_token } = client.refresh_token ?? {};
  const grant_types = (client.grant_types ?? []).filter((grant) => GRANTS.includes(grant));
  return Object.freeze({ ...Object.fromEntries(known), refresh_token, grant_types }) as unknown as C;
}

/** Returns why a record cannot be that of a strict application; undefined if it can. */
export function strictFault(
  client: Omit<Limited, 'name'>,
): { member: 'third_party_security_mode' | 'grant_types'; message: string } | undefined {
  const { third_party_security_mode: mode, grant_types: grants = [] } = client;
  if (mode !== 'strict') return undefined;
  if (client.is_first_party !== false)
    return { member: 'third_party_security_mode', message: 'is for third-party applications alone' };
  const other = grants.find((grant) => !GRANTS.includes(grant));
  return other === undefined
    ? undefined
    : { member: 'grant_types', message: `third-party applications have ${GRANTS.join(', ')} alone` };
}

/** Returns whether errors that nobody has seen stay on a page of this server. */
export function isRedirectProtected(
  client: ThirdParty & { readonly redirection_policy?: string | null | undefined },
): boolean {
  return isStrict(client) && client.redirection_policy !== 'allow_always';
}

interface Registered {
  readonly external_metadata_type?: string | undefined;
  readonly external_metadata_created_by?: string | undefined;
}

/** Returns whether an application has registered itself, so that nobody here has looked at its name and logo. */
export function isSelfRegistered(client: Registered): boolean {
  return client.external_metadata_type !== undefined && client.external_metadata_created_by === 'client';
}

/** Returns whether an application is one of others, of which people are told more than its name. */
export function isStranger(client: ThirdParty & Registered): boolean {
  return isStrict(client) || isSelfRegistered(client);
}

/** Where the answer to a request goes: what is known of an application that nobody has verified. */
export type Recipient = { host: string } | { scheme: string } | { device: true };

/** @param callback a redirect URI. */
export function recipientOf(callback: string): Recipient | undefined {
  const url = URL.parse(callback);
  if (url === null) return undefined;
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return { scheme: url.protocol };
  // Names below localhost, too: browsers take them to the device (RFC 6761 §6.3).
  return isLoopback(url.hostname) ? { device: true } : { host: url.host };
}

/** Returns the host to which a redirect URI leads; undefined where any program of a device can be there. */
export function hostOfCallback(callback: string): string | undefined {
  const recipient = recipientOf(callback);
  return recipient !== undefined && 'host' in recipient ? recipient.host : undefined;
}

/**
 * Characters that are not seen, or change how their neighbours are shown: a name with them can look like another one. So can
 * marks piled up on a letter, of which no language needs more than five: they are drawn across the lines above and below.
 */
const INVISIBLE =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?<=\p{M}{5})\p{M}/gu;

/** Returns a text that others wrote with invisible characters as their code points. */
export function visibleText(text: string): string {
  return text.replace(
    INVISIBLE,
    (char) => `[U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
  );
}

/** Returns the name of an application, that of a third party's as {@link visibleText}. */
export function visibleName({ name, ...client }: ThirdParty & { readonly name: string }): string {
  return client.is_first_party === false ? visibleText(name) : name;
}
