// Security keys and built-in authenticators (WebAuthn) as second factors. They are given only at the hosted pages,
// because credentials are bound to our host. Applications that may request passkeys create them at their own pages.
import type { VerifiedChallenge } from '../../protection/challenges.ts';
import type { Frozen } from '../../records/record.ts';
import { SECOND_FACTORS } from '../../records/second-factors.ts';
import type { WebAuthnCredential } from '../../records/webauthn.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { UniqueKeyError } from '../../store/contract.ts';
import { updateWithResult } from '../../store/update-with-result.ts';
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
} from '../../webauthn/ceremonies.ts';
import {
  customOrigin,
  ownRelyingParty,
  type RelyingParty,
  relyingPartyFor,
} from '../../webauthn/relying-party.ts';
import type { Claimant } from '../claimant.ts';
import { accountOf } from '../enroll.ts';
import type { Factor, FactorDependencies, FactorPage, Verification } from '../factor.ts';
import { confirmFirstUse, countingGuesses, recordUse, usableAuthenticators } from '../verify.ts';

const PURPOSE = 'mfa_webauthn';
const SECONDS = 300;

/** What differs between the two kinds. */
interface Kind {
  name: 'webauthn-roaming' | 'webauthn-platform';
  attachment: Attachment;
  /**
   * A roaming key proves possession. A built-in authenticator is used by whoever has the device, so it must verify
   * the user.
   */
  userVerification: 'preferred' | 'required';
  strength: number;
}

const NONE: Verification = { ok: false, outcome: 'wrong' };

/** Returns the user's active credentials, of one kind or of both. */
async function credentialsOf(
  { authenticators }: Pick<FactorDependencies, 'authenticators'>,
  { user }: Pick<Claimant, 'user'>,
  kind?: string,
): Promise<Frozen<WebAuthnCredential>[]> {
  const own = (await authenticators.of(user.id)).filter(
    (one) => one.active && (kind ?? one.kind) === one.kind,
  );
  return own.flatMap(({ webauthn }) => webauthn ?? []);
}

async function registrationOf(
  deps: Pick<FactorDependencies, 'authenticators'>,
  { attachment, userVerification }: Kind,
  claimant: Pick<Claimant, 'user'>,
  challenge: string,
): Promise<Registration> {
  const { user } = claimant;
  return {
    challenge,
    user: { handle: sha256(`webauthn\n${user.id}`), name: accountOf(user) },
    exclude: await credentialsOf(deps, claimant),
    attachment,
    discoverable: false,
    userVerification,
  };
}

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
    ttlSeconds: SECONDS,
    data: { ...(at !== undefined && { at }), ...(authenticatorId !== undefined && { authenticatorId }) },
  });
  await page.remember({ ...page.state, oobCode: secret });
  return secret;
}

/**
 * Returns the options with which an application creates a credential. They replace the earlier ones of the same
 * login.
 */
async function creationFor(
  deps: FactorDependencies,
  kind: Kind,
  claimant: Claimant,
  { authenticatorId, login, at }: { authenticatorId: string; login: string; at: string | undefined },
): Promise<{ oobCode: string; options: object }> {
  const { secret: oobCode } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    subject: `${claimant.user.id}\n${login}\n${kind.name}`,
    userId: claimant.user.id,
    ttlSeconds: SECONDS,
    data: { authenticatorId, clientId: claimant.clientId, ...(at !== undefined && { at }) },
  });
  const registration = await registrationOf(deps, kind, claimant, oobCode);
  return { oobCode, options: creationOptions(ownRelyingParty(deps, at), registration) };
}

/** Returns the relying party that may answer: the pages and apps of the application that asked, or our own pages. */
async function relyingPartyOf(
  deps: FactorDependencies,
  { clientId, at: kept }: VerifiedChallenge['data'],
): Promise<RelyingParty> {
  const at = typeof kept === 'string' ? kept : undefined;
  const client = typeof clientId === 'string' ? await deps.config.client(clientId) : undefined;
  return client === undefined ? ownRelyingParty(deps, at) : relyingPartyFor(deps, client, at);
}

/** Verifies what the browser answered to the challenge of its page. The challenge is used up. */
async function verify(
  deps: FactorDependencies,
  kind: Kind,
  claimant: Claimant,
  { code, oobCode }: { code: string; oobCode: string },
): Promise<Verification> {
  const verifiedChallenge = await deps.challenges.spendTicket(PURPOSE, oobCode);
  if (verifiedChallenge === undefined || verifiedChallenge.userId !== claimant.user.id)
    return { ok: false, outcome: 'unknown' };
  const { authenticatorId } = verifiedChallenge.data;
  const party = await relyingPartyOf(deps, verifiedChallenge.data);
  return countingGuesses(deps, claimant, async () =>
    typeof authenticatorId === 'string'
      ? register(deps, kind, claimant, { code, challenge: oobCode, party, authenticatorId })
      : assert(deps, kind, claimant, { code, challenge: oobCode, party }),
  );
}

/** The browser's answer, and what it was asked. */
interface Answered {
  code: string;
  challenge: string;
  party: RelyingParty;
}

async function register(
  deps: FactorDependencies,
  kind: Kind,
  claimant: Claimant,
  { code, challenge, party, authenticatorId }: Answered & { authenticatorId: string },
): Promise<Verification> {
  const begun = (await usableAuthenticators(deps, claimant)).find(({ id }) => id === authenticatorId);
  const answered = readRegistration(code);
  if (begun === undefined || begun.active || begun.kind !== kind.name || answered === undefined) return NONE;
  const registration = await registrationOf(deps, kind, claimant, challenge);
  const webauthn = await verifyRegistration(party, answered, registration);
  if (webauthn === undefined) return NONE;
  try {
    await deps.authenticators.update(begun.id, (current) => ({ ...current, webauthn }));
  } catch (thrown) {
    // A credential may belong to one user only (WebAuthn Level 3 §7.1).
    if (thrown instanceof UniqueKeyError) return NONE;
    throw thrown;
  }
  return (await confirmFirstUse(deps, claimant, begun)) ? { ok: true } : NONE;
}

async function assert(
  deps: FactorDependencies,
  { name, userVerification }: Kind,
  claimant: Claimant,
  { code, challenge, party }: Answered,
): Promise<Verification> {
  const answered = readAssertion(code);
  const own = (await usableAuthenticators(deps, claimant)).find(
    (one) => one.active && one.kind === name && one.webauthn?.credential_id === answered?.id,
  );
  if (answered === undefined || own?.webauthn === undefined) return NONE;
  const asked = { challenge, userVerification };
  const asserted = await verifyAssertion(party, answered, own.webauthn, asked);
  if (asserted === undefined) return NONE;
  const isNext = await updateWithResult(deps.authenticators, own.id, (current) => {
    const { webauthn } = current;
    if (webauthn === undefined || !isNextCount(webauthn.sign_count, asserted.signCount))
      return { result: false };
    const { signCount: sign_count, backedUp: backed_up } = asserted;
    return { result: true, next: { ...current, webauthn: { ...webauthn, sign_count, backed_up } } };
  });
  // A signature counter that does not increase shows a cloned authenticator (§6.1.1).
  if (isNext !== true) return NONE;
  await recordUse(deps, own);
  return { ok: true };
}

/** Returns what the page passes to the browser's script. */
const modelOf = (kind: Kind, options: object) => ({ kind: kind.name, options: JSON.stringify(options) });

function factor(kind: Kind): Factor {
  const { name } = kind;
  const made: Factor = {
    ...SECOND_FACTORS[name],
    authenticatorType: name,
    strength: kind.strength,
    enroll: {
      requestedAs: [],
      begin: async ({ authenticators }, { user, credentialVersion }) => ({
        authenticator: await authenticators.begin({ userId: user.id, credentialVersion }, made),
      }),
      creation: (deps, claimant, asked) => creationFor(deps, kind, claimant, asked),
    },
    verify: (deps, claimant, proof) => verify(deps, kind, claimant, proof),
    pages: {
      typesCode: true,
      alerts: { missing: 'mfa.webauthn.missing', wrong: 'mfa.webauthn.wrong' },
      enrollment: {
        template: 'mfa/enroll-webauthn',
        model: async (deps, ctx, page) => {
          const at = customOrigin(ctx, deps);
          const { authenticatorId } = page.state;
          const challenge = await newChallenge(deps, page, { at, authenticatorId });
          const registration = await registrationOf(deps, kind, page.claimant, challenge);
          return modelOf(kind, creationOptions(ownRelyingParty(deps, at), registration));
        },
      },
      challenge: {
        template: 'mfa/webauthn',
        model: async (deps, ctx, page) => {
          const at = customOrigin(ctx, deps);
          const challenge = await newChallenge(deps, page, { at });
          const own = await credentialsOf(deps, page.claimant, name);
          return modelOf(
            kind,
            requestOptions(ownRelyingParty(deps, at), challenge, kind.userVerification, own),
          );
        },
      },
    },
  };
  return made;
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
