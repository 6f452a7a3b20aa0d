// Registration and assertion of security keys and built-in authenticators (WebAuthn Level 3 §7) as second factors.
import type { VerifiedChallenge } from '../../../capabilities/protection/challenges.ts';
import {
  type Attachment,
  creationOptions,
  isNextCount,
  type Registration,
  readAssertion,
  readRegistration,
  verifyAssertion,
  verifyRegistration,
} from '../../../capabilities/webauthn/ceremonies.ts';
import {
  ownRelyingParty,
  type RelyingParty,
  relyingPartyFor,
} from '../../../capabilities/webauthn/relying-party.ts';
import type { Frozen } from '../../../records/record.ts';
import type { WebAuthnCredential } from '../../../records/webauthn.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import { UniqueKeyError } from '../../../store/contract.ts';
import { updateWithResult } from '../../../store/update-with-result.ts';
import type { Claimant } from '../claimant.ts';
import { accountNameOf } from '../enroll.ts';
import type { FactorDependencies, Verification } from '../factor.ts';
import { confirmFirstUse, countGuesses, recordUse, usableAuthenticators } from '../verify.ts';

/** The purpose of the tickets whose secrets are the challenges. */
export const PURPOSE = 'mfa_webauthn';
/** Lifetime of a challenge in seconds. */
export const CHALLENGE_SECONDS = 300;

/** What differs between the two kinds. */
export interface WebAuthnKind {
  name: 'webauthn-roaming' | 'webauthn-platform';
  attachment: Attachment;
  /**
   * A roaming key proves possession. A built-in authenticator is used by whoever has the device, so it must verify
   * the user.
   */
  userVerification: 'discouraged' | 'preferred' | 'required';
  strength: number;
}

const FAILED: Verification = { ok: false, outcome: 'wrong' };

/** Returns the user's active credentials, of one kind or of both. */
export async function credentialsOf(
  { authenticators }: Pick<FactorDependencies, 'authenticators'>,
  { user }: Pick<Claimant, 'user'>,
  kind?: string,
): Promise<Frozen<WebAuthnCredential>[]> {
  const active = (await authenticators.of(user.id)).filter(
    (one) => one.active && (kind ?? one.kind) === one.kind,
  );
  return active.flatMap(({ webauthn }) => webauthn ?? []);
}

/** Returns what a new credential of a user must fulfil. */
export async function registrationOf(
  deps: Pick<FactorDependencies, 'authenticators'>,
  { attachment, userVerification }: WebAuthnKind,
  claimant: Pick<Claimant, 'user'>,
  challenge: string,
): Promise<Registration> {
  const { user } = claimant;
  return {
    challenge,
    user: { handle: sha256(`webauthn\n${user.id}`), name: accountNameOf(user) },
    exclude: await credentialsOf(deps, claimant),
    attachment,
    discoverable: false,
    userVerification,
  };
}

/**
 * Returns the options with which an application creates a credential. They replace the earlier ones of the same
 * login.
 */
export async function issueCreation(
  deps: FactorDependencies,
  kind: WebAuthnKind,
  claimant: Claimant,
  { authenticatorId, login, at }: { authenticatorId: string; login: string; at: string | undefined },
): Promise<{ oobCode: string; options: object }> {
  const { secret: oobCode } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: `${claimant.user.id}\n${login}\n${kind.name}`,
    userId: claimant.user.id,
    ttlSeconds: CHALLENGE_SECONDS,
    data: { authenticatorId, clientId: claimant.clientId, ...(at !== undefined && { at }) },
  });
  const registration = await registrationOf(deps, kind, claimant, oobCode);
  return { oobCode, options: creationOptions(ownRelyingParty(deps, at), registration) };
}

/** Returns the relying party that may answer: the pages and apps of the application that asked, or our own pages. */
async function relyingPartyOf(
  deps: FactorDependencies,
  { clientId, at: storedOrigin }: VerifiedChallenge['data'],
): Promise<RelyingParty> {
  const at = typeof storedOrigin === 'string' ? storedOrigin : undefined;
  const client = typeof clientId === 'string' ? await deps.config.client(clientId) : undefined;
  return client === undefined ? ownRelyingParty(deps, at) : relyingPartyFor(deps, client, at);
}

/** Verifies what the browser answered to the challenge of its page. The challenge is used up. */
export async function verify(
  deps: FactorDependencies,
  kind: WebAuthnKind,
  claimant: Claimant,
  { code, oobCode }: { code: string; oobCode: string },
): Promise<Verification> {
  const verifiedChallenge = await deps.challenges.spendTicket(PURPOSE, oobCode);
  if (verifiedChallenge === undefined || verifiedChallenge.userId !== claimant.user.id)
    return { ok: false, outcome: 'unknown' };
  const { authenticatorId } = verifiedChallenge.data;
  const party = await relyingPartyOf(deps, verifiedChallenge.data);
  return countGuesses(deps, claimant, async () =>
    typeof authenticatorId === 'string'
      ? register(deps, kind, claimant, { code, challenge: oobCode, party, authenticatorId })
      : assert(deps, kind, claimant, { code, challenge: oobCode, party }),
  );
}

/** The browser's answer, and what it was asked. */
interface BrowserResponse {
  code: string;
  challenge: string;
  party: RelyingParty;
}

async function register(
  deps: FactorDependencies,
  kind: WebAuthnKind,
  claimant: Claimant,
  { code, challenge, party, authenticatorId }: BrowserResponse & { authenticatorId: string },
): Promise<Verification> {
  const unconfirmed = (await usableAuthenticators(deps, claimant)).find(({ id }) => id === authenticatorId);
  const response = readRegistration(code);
  if (
    unconfirmed === undefined ||
    unconfirmed.active ||
    unconfirmed.kind !== kind.name ||
    response === undefined
  )
    return FAILED;
  const registration = await registrationOf(deps, kind, claimant, challenge);
  const webauthn = await verifyRegistration(party, response, registration);
  if (webauthn === undefined) return FAILED;
  try {
    await deps.authenticators.update(unconfirmed.id, (current) => ({ ...current, webauthn }));
  } catch (thrown) {
    // A credential may belong to one user only (WebAuthn Level 3 §7.1).
    if (thrown instanceof UniqueKeyError) return FAILED;
    throw thrown;
  }
  return (await confirmFirstUse(deps, claimant, unconfirmed)) ? { ok: true } : FAILED;
}

async function assert(
  deps: FactorDependencies,
  { name, userVerification }: WebAuthnKind,
  claimant: Claimant,
  { code, challenge, party }: BrowserResponse,
): Promise<Verification> {
  const response = readAssertion(code);
  const authenticator = (await usableAuthenticators(deps, claimant)).find(
    (one) => one.active && one.kind === name && one.webauthn?.credential_id === response?.id,
  );
  if (response === undefined || authenticator?.webauthn === undefined) return FAILED;
  const expected = { challenge, userVerification };
  const result = await verifyAssertion(party, response, authenticator.webauthn, expected);
  if (result === undefined) return FAILED;
  const isNext = await updateWithResult(deps.authenticators, authenticator.id, (current) => {
    const { webauthn } = current;
    if (webauthn === undefined || !isNextCount(webauthn.sign_count, result.signCount))
      return { result: false };
    const { signCount: sign_count, backedUp: backed_up } = result;
    return { result: true, next: { ...current, webauthn: { ...webauthn, sign_count, backed_up } } };
  });
  // A signature counter that does not increase shows a cloned authenticator (§6.1.1).
  if (isNext !== true) return FAILED;
  await recordUse(deps, authenticator);
  return { ok: true };
}
