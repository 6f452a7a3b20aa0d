// What a security profile demands of an application's registration.
import { isPattern } from './allowed-urls.ts';
import { authenticationMethod } from './client-authentication.ts';
import type { Profile, Standard } from './compliance-levels.ts';

/** One requirement of a standard. @template S what the requirement applies to. */
export interface Rule<S> {
  name: string;
  /** The requirement, as worded in errors and in docs/reference/fapi.md. */
  demand: string;
  /** The clause in each standard that has the requirement. */
  clauses: Partial<Record<Standard, string>>;
  isMet(subject: S, profile: Profile): boolean;
}

const ALGORITHMS: readonly string[] = ['PS256', 'ES256'];

/** FAPI 2.0 also allows Ed25519. */
const ALGORITHMS_2: readonly string[] = [...ALGORITHMS, 'EdDSA', 'Ed25519'];

/** The grants that all profiles allow. */
const GRANTS: readonly string[] = ['authorization_code', 'refresh_token', 'client_credentials'];

export const isHeld = ({ standards }: Profile, to: Standard) => standards.includes(to);

/** Returns whether a profile allows a signature algorithm (JWA). */
export const isAlgorithm = (alg: string, profile: Profile) =>
  (isHeld(profile, 'fapi2') ? ALGORITHMS_2 : ALGORITHMS).includes(alg);

interface Key {
  readonly alg?: string | undefined;
}

/** The members of an application's record that the rules examine. */
export interface ProfiledClient {
  readonly compliance_level?: string | null | undefined;
  readonly app_type?: string | undefined;
  readonly callbacks: readonly string[];
  readonly grant_types?: readonly string[] | undefined;
  readonly token_endpoint_auth_method?: 'none' | 'client_secret_post' | 'client_secret_basic' | undefined;
  readonly client_authentication_methods?:
    | { readonly private_key_jwt?: { readonly credentials: readonly Key[] } | undefined }
    | undefined;
  readonly signed_request_object?: { readonly credentials?: readonly Key[] | undefined } | null | undefined;
  readonly jwt_configuration: { readonly alg?: string | undefined };
  readonly id_token_signed_response_alg?: string | undefined;
  readonly authorization_signed_response_alg?: string | undefined;
  readonly refresh_token: { readonly rotation_type: string };
  readonly par_request_expiry?: number | null | undefined;
  readonly addons?: { readonly samlp?: unknown } | undefined;
  readonly native_social_login?: object | null | undefined;
}

const CIBA = 'urn:openid:params:grant-type:ciba';

/**
 * Returns whether a profile allows a grant. `implicit` stands for hybrid responses, which contain an ID token beside
 * the code.
 */
export function isGrant(grant: string, profile: Profile): boolean {
  if (grant === CIBA) return isHeld(profile, 'ciba');
  return GRANTS.includes(grant) || (grant === 'implicit' && isHeld(profile, 'fapi1'));
}

export const CLIENT_RULES: readonly Rule<ProfiledClient>[] = [
  {
    name: 'authentication',
    demand:
      'the application authenticates as its level says: by private_key_jwt, or by its client certificate',
    clauses: { fapi1: 'Part 2 §5.2.2 (14, 16)', fapi2: '§5.3.2.1 (3, 6)' },
    isMet: (client, { authentication }) => {
      const method: string = authenticationMethod(client);
      return authentication === 'mtls' ? method.endsWith('tls_client_auth') : method === authentication;
    },
  },
  {
    name: 'grants',
    demand:
      'grant_types are authorization_code, refresh_token and client_credentials alone (FAPI 1.0: and implicit, for code id_token, and CIBA)',
    clauses: { fapi1: 'Part 2 §5.2.2 (2)', fapi2: '§5.3.2.1 (2), §5.3.2.2 (1)' },
    isMet: ({ grant_types: grants = GRANTS, native_social_login: native }, profile) =>
      grants.every((grant) => isGrant(grant, profile)) && Object.keys(native ?? {}).length === 0,
  },
  {
    name: 'protocols',
    demand: 'it has no SAML logins, whose assertions are bearer tokens',
    clauses: { fapi1: 'Part 2 §5.2.2 (5)', fapi2: '§5.3.2.1 (4)' },
    isMet: ({ addons }) => addons?.samlp === undefined,
  },
  {
    name: 'callbacks',
    demand: 'callbacks are https, and none has a wildcard',
    clauses: { fapi1: 'Part 1 §5.2.2 (20)', fapi2: '§5.3.2.2 (8)' },
    isMet: ({ callbacks }) => callbacks.every((uri) => uri.startsWith('https://') && !isPattern(uri)),
  },
  {
    name: 'ID tokens',
    demand: 'ID tokens are signed with PS256 or ES256 (FAPI 2.0: or EdDSA)',
    clauses: { fapi1: 'Part 2 §8.6', fapi2: '§5.4.1' },
    isMet: ({ id_token_signed_response_alg: alg, jwt_configuration: jwt }, profile) =>
      isAlgorithm(alg ?? jwt.alg ?? 'RS256', profile),
  },
  {
    name: 'responses',
    demand:
      'responses are signed with PS256 or ES256 (FAPI 2.0: or EdDSA): authorization_signed_response_alg',
    clauses: { fapi1: 'Part 2 §8.6', signing: '§5.4.1' },
    isMet: ({ authorization_signed_response_alg: alg = 'RS256' }, profile) => isAlgorithm(alg, profile),
  },
  {
    name: 'keys',
    demand: 'its keys are for PS256 or ES256 (FAPI 2.0: or EdDSA)',
    clauses: { fapi1: 'Part 2 §8.6', fapi2: '§5.4.1' },
    isMet: ({ client_authentication_methods: methods, signed_request_object: objects }, profile) =>
      [...(methods?.private_key_jwt?.credentials ?? []), ...(objects?.credentials ?? [])].every(
        ({ alg = 'RS256' }) => isAlgorithm(alg, profile),
      ),
  },
  {
    name: 'request object keys',
    demand: 'it has keys for request objects (signed_request_object.credentials)',
    clauses: { fapi1: 'Part 2 §5.2.2 (1)', signing: '§5.3.1' },
    isMet: ({ signed_request_object: objects }) => (objects?.credentials ?? []).length > 0,
  },
  {
    name: 'refresh tokens',
    demand: 'refresh tokens do not rotate (refresh_token.rotation_type)',
    clauses: { fapi2: '§5.3.2.1 (9)' },
    isMet: ({ refresh_token: { rotation_type: rotation } }) => rotation === 'non-rotating',
  },
  {
    name: 'pushed requests',
    demand: 'pushed requests are kept for less than 600 seconds (par_request_expiry)',
    clauses: { fapi1: 'Part 2 §5.2.2 (1)', fapi2: '§5.3.2.2 (12)' },
    isMet: ({ par_request_expiry: seconds }) => (seconds ?? 0) < 600,
  },
];
