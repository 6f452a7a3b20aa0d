// Security keys and built-in authenticators (WebAuthn) as second factors. They are given only at the hosted pages,
// because credentials are bound to our host. Applications that may request passkeys create them at their own pages.

import { creationOptions, requestOptions } from '../../../capabilities/webauthn/ceremonies.ts';
import { customOrigin, ownRelyingParty } from '../../../capabilities/webauthn/relying-party.ts';
import { roamingVerification } from '../../../records/guardian.ts';
import { SECOND_FACTORS } from '../../../records/second-factors.ts';
import type { Factor, FactorDependencies, FactorPage } from '../factor.ts';

import {
  CHALLENGE_SECONDS,
  credentialsOf,
  issueCreation,
  PURPOSE,
  registrationOf,
  verify,
  type WebAuthnKind,
} from './verify-webauthn.ts';

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

/** Returns what the page passes to the browser's script. */
const modelOf = (kind: WebAuthnKind, options: object) => ({
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
      enrollment: {
        template: 'mfa/enroll-webauthn',
        model: async (deps, ctx, page) => {
          const at = customOrigin(ctx);
          const { authenticatorId } = page.state;
          const challenge = await newChallenge(deps, page, { at, authenticatorId });
          const registration = await registrationOf(deps, asSet(deps, kind), page.claimant, challenge);
          return modelOf(kind, creationOptions(ownRelyingParty(deps, at), registration));
        },
      },
      challenge: {
        template: 'mfa/webauthn',
        model: async (deps, ctx, page) => {
          const at = customOrigin(ctx);
          const challenge = await newChallenge(deps, page, { at });
          const credentials = await credentialsOf(deps, page.claimant, name);
          return modelOf(
            kind,
            requestOptions(
              ownRelyingParty(deps, at),
              challenge,
              asSet(deps, kind).userVerification,
              credentials,
            ),
          );
        },
      },
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
