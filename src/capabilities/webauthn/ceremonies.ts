// The two ceremonies of Web Authentication (WebAuthn Level 3 §7): the options for the browser, and the verification
// of its answer. The caller decides what is stored, and what a success means.
import { z } from 'zod';
import type { Frozen } from '../../records/base/record.ts';
import type { WebAuthnCredential } from '../../records/base/webauthn.ts';
import { jsonOf } from '../../runtime/json.ts';
import type { RelyingParty } from './relying-party.ts';

/** Whether an authenticator is built into the device or separate. */
export type Attachment = 'platform' | 'cross-platform';

type UserVerification = 'required' | 'preferred' | 'discouraged';

type NamedCredential = Frozen<Pick<WebAuthnCredential, 'credential_id' | 'transports'>>;

export interface Registration {
  /** 32 random bytes, base64url. */
  challenge: string;
  user: {
    /** The user handle: base64url of at most 64 bytes, without personal data (§14.6.1). */
    handle: string;
    /** The name that the authenticator lists. */
    name: string;
  };
  /** The user's credentials. An authenticator that has one of them creates no other. */
  exclude: readonly NamedCredential[];
  attachment?: Attachment;
  /** Whether it can be used without a list of credentials (a passkey). */
  discoverable: boolean;
  userVerification: UserVerification;
}

/** Timeout of a ceremony in milliseconds, longer than anybody takes to find a key. */
const TIMEOUT = 300_000;

/** ES256, EdDSA and RS256 (RFC 9053 §2, RFC 8812 §2). */
const ALGORITHMS = [-7, -8, -257];

/** Maximum length of an answer, which is usually some kilobytes. */
const MAX_RESPONSE_LENGTH = 20_000;

const encoded = z
  .string()
  .max(MAX_RESPONSE_LENGTH)
  .regex(/^[\w-]+$/);
const answer = z.object({
  id: encoded,
  rawId: encoded,
  type: z.literal('public-key'),
  authenticatorAttachment: z.enum(['platform', 'cross-platform']).nullish(),
  clientExtensionResults: z.unknown(),
});
const registrationAnswer = answer.extend({
  response: z.object({
    clientDataJSON: encoded,
    attestationObject: encoded,
    transports: z.array(z.string().max(30)).max(10).nullish(),
  }),
});
const assertionAnswer = answer.extend({
  response: z.object({
    clientDataJSON: encoded,
    authenticatorData: encoded,
    signature: encoded,
    userHandle: z.string().max(100).nullish(),
  }),
});

type RegistrationAnswer = z.output<typeof registrationAnswer>;
export type AssertionAnswer = z.output<typeof assertionAnswer>;

/** Parses the result of `navigator.credentials.create` in the format of `toJSON`; undefined for anything else. */
export function readRegistration(text: string): RegistrationAnswer | undefined {
  return parseAnswer(registrationAnswer, text);
}

/** Parses the result of `navigator.credentials.get` in the format of `toJSON`; undefined for anything else. */
export function readAssertion(text: string): AssertionAnswer | undefined {
  return parseAnswer(assertionAnswer, text);
}

function parseAnswer<T>(schema: z.ZodType<T>, text: string): T | undefined {
  if (text.length > MAX_RESPONSE_LENGTH) return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Returns the options of a registration, for `PublicKeyCredential.parseCreationOptionsFromJSON` (§5.1.10). */
export function creationOptions(party: RelyingParty, registration: Registration): object {
  const { challenge, user, exclude, attachment, discoverable, userVerification } = registration;
  return {
    rp: { id: party.id, name: party.name },
    user: { id: user.handle, name: user.name, displayName: user.name },
    challenge,
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    timeout: TIMEOUT,
    attestation: 'none',
    ...(exclude.length > 0 && { excludeCredentials: exclude.map(descriptorOf) }),
    authenticatorSelection: {
      ...(attachment !== undefined && { authenticatorAttachment: attachment }),
      residentKey: discoverable ? 'required' : 'discouraged',
      requireResidentKey: discoverable,
      userVerification,
    },
  };
}

/**
 * Returns the options of an assertion, for `PublicKeyCredential.parseRequestOptionsFromJSON` (§5.1.11).
 * @param allowed the credentials that may answer; without any, a discoverable one may.
 */
export function requestOptions(
  { id }: RelyingParty,
  challenge: string,
  userVerification: UserVerification,
  allowed: readonly NamedCredential[] = [],
): object {
  return {
    challenge,
    rpId: id,
    timeout: TIMEOUT,
    userVerification,
    ...(allowed.length > 0 && { allowCredentials: allowed.map(descriptorOf) }),
  };
}

function descriptorOf({ credential_id, transports }: NamedCredential) {
  return { type: 'public-key', id: credential_id, ...(transports.length > 0 && { transports }) };
}

/**
 * Verifies a registration (§7.1). What the server asked for is checked and not taken from the browser: the
 * algorithm, user verification, and the attachment if the browser states it.
 * @returns the credential; undefined when the answer is invalid.
 */
export async function verifyRegistration(
  party: RelyingParty,
  browserAnswer: RegistrationAnswer,
  { challenge, attachment, userVerification }: Registration,
): Promise<WebAuthnCredential | undefined> {
  const { authenticatorAttachment: usedAttachment, response } = browserAnswer;
  if (isFramed(response)) return undefined;
  if (attachment !== undefined && (usedAttachment ?? attachment) !== attachment) return undefined;
  const attestationObject = await withoutStatement(response.attestationObject);
  if (attestationObject === undefined) return undefined;
  // Loaded when first needed, which most servers do late or never.
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
  const transports = response.transports ?? [];
  const { registrationInfo: info } = await emptyIfInvalid(
    verifyRegistrationResponse({
      // The library's types reject members that are present but undefined.
      response: { ...browserAnswer, response: { ...response, attestationObject, transports } } as never,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: userVerification === 'required',
      supportedAlgorithmIDs: ALGORITHMS,
    }),
  );
  if (info === undefined) return undefined;
  return {
    credential_id: info.credential.id,
    credential_key: Buffer.from(info.credential.publicKey).toString('base64url'),
    sign_count: info.credential.counter,
    transports,
    backup_eligible: info.credentialDeviceType === 'multiDevice',
    backed_up: info.credentialBackedUp,
    aaguid: info.aaguid,
  };
}

interface AssertionResult {
  /**
   * The signature counter, to be stored if it is higher than the stored one. Of several assertions with one count,
   * one is valid.
   */
  signCount: number;
  backedUp: boolean;
  /** Whether the authenticator verified the user, by a PIN or biometrics. */
  isUserVerified: boolean;
}

/** Verifies an assertion (§7.2) with the credential that it names. @returns undefined when it is invalid. */
export async function verifyAssertion(
  party: RelyingParty,
  browserAnswer: AssertionAnswer,
  credential: Frozen<WebAuthnCredential>,
  { challenge, userVerification }: { challenge: string; userVerification: UserVerification },
): Promise<AssertionResult | undefined> {
  if (browserAnswer.id !== credential.credential_id || isFramed(browserAnswer.response)) return undefined;
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
  const stored = {
    id: credential.credential_id,
    publicKey: new Uint8Array(Buffer.from(credential.credential_key, 'base64url')),
    counter: credential.sign_count,
  };
  const { authenticationInfo: info, verified: isVerified = false } = await emptyIfInvalid(
    verifyAuthenticationResponse({
      // The library's types reject members that are present but undefined.
      response: browserAnswer as never,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      credential: stored,
      requireUserVerification: userVerification === 'required',
    }),
  );
  if (!isVerified || info === undefined) return undefined;
  // Whether a credential can be backed up never changes (§6.1.3), so another flag is not from this credential.
  if ((info.credentialDeviceType === 'multiDevice') !== credential.backup_eligible) return undefined;
  return {
    signCount: info.newCounter,
    backedUp: info.credentialBackedUp,
    isUserVerified: info.userVerified,
  };
}

/**
 * Returns whether the ceremony ran in a frame of another site (§7.1, §7.2: `crossOrigin` and `topOrigin`), which
 * allows clickjacking.
 */
function isFramed({ clientDataJSON }: { clientDataJSON: string }): boolean {
  const data = jsonOf(Buffer.from(clientDataJSON, 'base64url').toString('utf8'));
  const { crossOrigin, topOrigin } = (data ?? {}) as Record<string, unknown>;
  return crossOrigin === true || topOrigin !== undefined;
}

/**
 * Returns whether a signature counter may follow the stored one: it has increased, or the authenticator does not
 * count (§6.1.1).
 */
export function isNextCount(stored: number, received: number): boolean {
  return received > stored || (received === 0 && stored === 0);
}

/** Returns an empty object when the library throws, which it does with a plain error for every invalid answer. */
async function emptyIfInvalid<T extends object>(verification: Promise<T>): Promise<Partial<T>> {
  return verification.catch(() => ({}));
}

// The attestation of a new credential (WebAuthn Level 3 §6.5).

/**
 * Returns an attestation object without its attestation statement (format `none`, §8.7), which is what the server
 * asked for. To verify a statement, the library would fetch the revocation lists that its certificates name, so a
 * stranger would choose what this server fetches (SSRF).
 * @param encodedObject base64url.
 * @returns undefined when it is not an attestation object.
 */
async function withoutStatement(encodedObject: string): Promise<string | undefined> {
  const { decodeAttestationObject, isoCBOR } = await import('@simplewebauthn/server/helpers');
  try {
    const authData = decodeAttestationObject(new Uint8Array(Buffer.from(encodedObject, 'base64url'))).get(
      'authData',
    );
    const statement = new Map<string, never>();
    const entries: [string, string | Uint8Array | typeof statement][] = [
      ['fmt', 'none'],
      ['attStmt', statement],
      ['authData', authData],
    ];
    return Buffer.from(isoCBOR.encode(new Map(entries))).toString('base64url');
  } catch {
    return undefined;
  }
}
