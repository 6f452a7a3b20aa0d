// The two ceremonies of Web Authentication (WebAuthn Level 3 §7): what the browser is asked, and how its answer is
// verified. What is stored, and what a success is worth, is decided by the caller.
import { z } from 'zod';
import type { Frozen } from '../records/record.ts';
import type { WebAuthnCredential } from '../records/webauthn.ts';
import { jsonOf } from '../runtime/json.ts';
import { withoutStatement } from './attestation.ts';
import type { RelyingParty } from './relying-party.ts';

/** Where an authenticator is: in the device, or beside it. */
export type Attachment = 'platform' | 'cross-platform';

type UserVerification = 'required' | 'preferred' | 'discouraged';

/** A credential as browsers are told of it. */
type NamedCredential = Frozen<Pick<WebAuthnCredential, 'credential_id' | 'transports'>>;

/** What a new credential is for. */
export interface Registration {
  /** 32 random bytes, base64url. */
  challenge: string;
  user: {
    /** Base64url of at most 64 bytes that say nothing of the person (§14.6.1). */
    handle: string;
    /** As the authenticator lists it. */
    name: string;
  };
  /** Those that the user has: an authenticator that holds one makes no second. */
  exclude: readonly NamedCredential[];
  attachment?: Attachment;
  /** Whether it must be found without a list of credentials (a passkey). */
  discoverable: boolean;
  userVerification: UserVerification;
}

/** Longer than anybody takes to find a key; milliseconds. */
const TIMEOUT = 300_000;

/** ES256, EdDSA and RS256 (RFC 9053 §2, RFC 8812 §2). */
const ALGORITHMS = [-7, -8, -257];

/** An answer is some kilobytes. */
const LONGEST = 20_000;

const encoded = z
  .string()
  .max(LONGEST)
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

/** What `navigator.credentials.create` gave, as `toJSON` writes it; undefined for anything else. */
export function readRegistration(text: string): RegistrationAnswer | undefined {
  return read(registrationAnswer, text);
}

/** What `navigator.credentials.get` gave, as `toJSON` writes it; undefined for anything else. */
export function readAssertion(text: string): AssertionAnswer | undefined {
  return read(assertionAnswer, text);
}

function read<T>(schema: z.ZodType<T>, text: string): T | undefined {
  if (text.length > LONGEST) return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The options of a registration, for `PublicKeyCredential.parseCreationOptionsFromJSON` (§5.1.10). */
export function creationOptions(party: RelyingParty, registration: Registration): object {
  const { challenge, user, exclude, attachment, discoverable, userVerification } = registration;
  return {
    rp: { id: party.id, name: party.name },
    user: { id: user.handle, name: user.name, displayName: user.name },
    challenge,
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    timeout: TIMEOUT,
    attestation: 'none',
    ...(exclude.length > 0 && { excludeCredentials: exclude.map(described) }),
    authenticatorSelection: {
      ...(attachment !== undefined && { authenticatorAttachment: attachment }),
      residentKey: discoverable ? 'required' : 'discouraged',
      requireResidentKey: discoverable,
      userVerification,
    },
  };
}

/**
 * The options of an assertion, for `PublicKeyCredential.parseRequestOptionsFromJSON` (§5.1.11).
 * @param allowed whose credentials may answer; any discoverable one where there is no list.
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
    ...(allowed.length > 0 && { allowCredentials: allowed.map(described) }),
  };
}

function described({ credential_id, transports }: NamedCredential) {
  return { type: 'public-key', id: credential_id, ...(transports.length > 0 && { transports }) };
}

/**
 * Verifies a registration (§7.1). The browser is believed nothing that the server asked for: not the algorithm, not that
 * the user was verified, and, as far as it says so, not where the authenticator is.
 * @returns the credential; undefined when the answer is not good.
 */
export async function verifyRegistration(
  party: RelyingParty,
  answered: RegistrationAnswer,
  { challenge, attachment, userVerification }: Registration,
): Promise<WebAuthnCredential | undefined> {
  const { authenticatorAttachment: where, response } = answered;
  if (isFramed(response)) return undefined;
  if (attachment !== undefined && (where ?? attachment) !== attachment) return undefined;
  const attestationObject = await withoutStatement(response.attestationObject);
  if (attestationObject === undefined) return undefined;
  // Loaded when first needed: most servers verify none for a long time.
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
  const transports = response.transports ?? [];
  const { registrationInfo: info } = await verified(
    verifyRegistrationResponse({
      // The library's types take no member that is there and undefined.
      response: { ...answered, response: { ...response, attestationObject, transports } } as never,
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

/** What an assertion says of its credential. */
interface Asserted {
  /** To be kept where it is above what was kept: of any number of racers with one count, one is right. */
  signCount: number;
  backedUp: boolean;
  /** Whether the person proved who they are to the authenticator, by a PIN or a finger. */
  isUserVerified: boolean;
}

/**
 * Verifies an assertion (§7.2) by the credential that its id names.
 * @returns undefined when it is not good.
 */
export async function verifyAssertion(
  party: RelyingParty,
  answered: AssertionAnswer,
  credential: Frozen<WebAuthnCredential>,
  { challenge, userVerification }: { challenge: string; userVerification: UserVerification },
): Promise<Asserted | undefined> {
  if (answered.id !== credential.credential_id || isFramed(answered.response)) return undefined;
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
  const kept = {
    id: credential.credential_id,
    publicKey: new Uint8Array(Buffer.from(credential.credential_key, 'base64url')),
    counter: credential.sign_count,
  };
  const { authenticationInfo: info, verified: isGood = false } = await verified(
    verifyAuthenticationResponse({
      // The library's types take no member that is there and undefined.
      response: answered as never,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      credential: kept,
      requireUserVerification: userVerification === 'required',
    }),
  );
  if (!isGood || info === undefined) return undefined;
  // Whether a credential can be backed up never changes (§6.1.3): another flag is another credential.
  if ((info.credentialDeviceType === 'multiDevice') !== credential.backup_eligible) return undefined;
  return {
    signCount: info.newCounter,
    backedUp: info.credentialBackedUp,
    isUserVerified: info.userVerified,
  };
}

/**
 * Whether a page asked that a page of another site had in a frame (§7.1 and §7.2, `crossOrigin` and `topOrigin`): whoever
 * frames it has people press what they do not see.
 */
function isFramed({ clientDataJSON }: { clientDataJSON: string }): boolean {
  const data = jsonOf(Buffer.from(clientDataJSON, 'base64url').toString('utf8'));
  const { crossOrigin, topOrigin } = (data ?? {}) as Record<string, unknown>;
  return crossOrigin === true || topOrigin !== undefined;
}

/** Whether a count may follow what is kept: it rises, or the authenticator never counts (§6.1.1). */
export function isNextCount(kept: number, given: number): boolean {
  return given > kept || (given === 0 && kept === 0);
}

/** The library throws a plain error at whatever is wrong with an answer, most of which a browser cannot have sent. */
async function verified<T extends object>(verification: Promise<T>): Promise<Partial<T>> {
  return verification.catch(() => ({}));
}
