// Security keys and built-in authenticators (WebAuthn) as second factors. They are given only at the hosted pages,
// because credentials are bound to our host. Applications that may request passkeys create them at their own pages.
// docs/understand/decisions/second-factors.md#security-keys-are-used-only-on-the-hosted-pages

import { declarePage } from '../../../capabilities/pages/views.ts';
import type { VerifiedChallenge } from '../../../capabilities/protection/challenges.ts';
import {
  type Attachment,
  creationOptions,
  isNextCount,
  type Registration,
  readAssertion,
  readRegistration,
  requestOptions,
  verifyAssertion,
  verifyRegistration,
} from '../../../capabilities/webauthn/ceremonies.ts';
import {
  customOrigin,
  type RelyingParty,
  relyingPartyFor,
  serverRelyingParty,
} from '../../../capabilities/webauthn/relying-party.ts';
import type { Frozen } from '../../../records/base/record.ts';
import type { WebAuthnCredential } from '../../../records/base/webauthn.ts';
import { roamingVerification } from '../../../records/users/guardian.ts';
import { SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import { UniqueKeyError, updateWithResult } from '../../../store/contract.ts';
import type { Claimant } from '../claimant.ts';
import { accountNameOf } from '../enroll.ts';
import {
  type ChallengeModel,
  challengeView,
  enrollmentView,
  type Factor,
  type FactorDependencies,
  type FactorModel,
  type FactorPage,
  type Verification,
} from '../factor.ts';
import { confirmFirstUse, countGuesses, recordUse, usableAuthenticators } from '../verify.ts';

/** Issues a challenge for one view of a page. It replaces the earlier challenge of the same request. */
async function newChallenge(
  { challenges }: Pick<FactorDependencies, 'challenges'>,
  page: FactorPage,
  { at, authenticatorId }: { at: string | undefined; authenticatorId?: string | undefined },
): Promise<string> {
  const { secret } = await challenges.issueTicket({
    purpose: PURPOSE,
    subject: page.urlOf(),
    userId: page.claimant.user.id,
    ttlSeconds: CHALLENGE_SECONDS,
    data: { ...(at !== undefined && { at }), ...(authenticatorId !== undefined && { authenticatorId }) },
  });
  await page.saveState({ ...page.state, oobCode: secret });
  return secret;
}

/** What the page passes to the browser's script. */
interface WebAuthnModel {
  kind: string;
  /** JSON. */
  options: string;
}

export const MFA_ENROLL_WEBAUTHN_PAGE = declarePage<FactorModel & WebAuthnModel>('mfa/enroll-webauthn');
export const MFA_WEBAUTHN_PAGE = declarePage<ChallengeModel & WebAuthnModel>('mfa/webauthn');

const modelOf = (kind: WebAuthnKind, options: object): WebAuthnModel => ({
  kind: kind.name,
  options: JSON.stringify(options),
});

/** Returns a kind with the verification of users that the tenant asks of it. */
const asSet = ({ config }: Pick<FactorDependencies, 'config'>, kind: WebAuthnKind): WebAuthnKind => ({
  ...kind,
  ...(kind.name === 'webauthn-roaming' && {
    userVerification: roamingVerification(config.settings().guardianSettings) ?? kind.userVerification,
  }),
});

function factor(kind: WebAuthnKind): Factor {
  const { name } = kind;
  const webauthnFactor: Factor = {
    ...SECOND_FACTORS[name],
    authenticatorType: name,
    strength: kind.strength,
    enroll: {
      requestedAs: [],
      start: async ({ authenticators }, { user, credentialVersion }) => ({
        authenticator: await authenticators.startEnrollment(
          { userId: user.id, credentialVersion },
          webauthnFactor,
        ),
      }),
      creationOptions: (deps, claimant, context) => issueCreation(deps, asSet(deps, kind), claimant, context),
    },
    verify: (deps, claimant, proof) => verify(deps, asSet(deps, kind), claimant, proof),
    pages: {
      typesCode: true,
      alerts: { missing: 'mfa.webauthn.missing', wrong: 'mfa.webauthn.wrong' },
      enrollment: enrollmentView(MFA_ENROLL_WEBAUTHN_PAGE, async (deps, ctx, page) => {
        const at = customOrigin(ctx);
        const { authenticatorId } = page.state;
        const challenge = await newChallenge(deps, page, { at, authenticatorId });
        const registration = await registrationOf(deps, asSet(deps, kind), page.claimant, challenge);
        return modelOf(kind, creationOptions(serverRelyingParty(deps, at), registration));
      }),
      challenge: challengeView(MFA_WEBAUTHN_PAGE, async (deps, ctx, page) => {
        const at = customOrigin(ctx);
        const challenge = await newChallenge(deps, page, { at });
        const credentials = await credentialsOf(deps, page.claimant, name);
        const { userVerification } = asSet(deps, kind);
        return modelOf(
          kind,
          requestOptions(serverRelyingParty(deps, at), challenge, userVerification, credentials),
        );
      }),
    },
  };
  return webauthnFactor;
}

/** Security keys, connected by USB, NFC or Bluetooth. */
export const roaming = factor({
  name: 'webauthn-roaming',
  attachment: 'cross-platform',
  userVerification: 'preferred',
  strength: 6,
});

/** Authenticators that are built into a device and verify the user by fingerprint, face or PIN. */
export const platform = factor({
  name: 'webauthn-platform',
  attachment: 'platform',
  userVerification: 'required',
  strength: 5,
});

// Registration and assertion of security keys and built-in authenticators (WebAuthn Level 3 §7) as second factors.

/** The purpose of the tickets whose secrets are the challenges. */
const PURPOSE = 'mfa_webauthn';
/** Lifetime of a challenge in seconds. */
const CHALLENGE_SECONDS = 300;

/** What differs between the two kinds. */
interface WebAuthnKind {
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
async function credentialsOf(
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
async function registrationOf(
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
async function issueCreation(
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
  return { oobCode, options: creationOptions(serverRelyingParty(deps, at), registration) };
}

/** Returns the relying party that may answer: the pages and apps of the application that asked, or our own pages. */
async function relyingPartyOf(
  deps: FactorDependencies,
  { clientId, at: storedOrigin }: VerifiedChallenge['data'],
): Promise<RelyingParty> {
  const at = typeof storedOrigin === 'string' ? storedOrigin : undefined;
  const client = typeof clientId === 'string' ? await deps.config.client(clientId) : undefined;
  return client === undefined ? serverRelyingParty(deps, at) : relyingPartyFor(deps, client, at);
}

/** Verifies what the browser answered to the challenge of its page. The challenge is used up. */
async function verify(
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
