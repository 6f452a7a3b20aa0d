// The content of an assertion: subject, attributes, audience and authentication context.

import type { NameId } from '../../capabilities/saml-messages/name-id.ts';
import { NAME_ID, STATUS } from '../../capabilities/saml-messages/names.ts';
import type { ResponseFrame, Status } from '../../capabilities/saml-messages/status-response.ts';
import type { CustomClaims } from '../../engine/custom-claims.ts';
import type { OwnCodeLogin } from '../../engine/own-codes.ts';
import type { Config } from '../../tenant/config.ts';
import { primaryIdentity } from '../../users/identities.ts';
import type { Users } from '../../users/users.ts';
import { withAttributes } from './action-settings.ts';
import { type Attribute, attributesOf, nameIdOf } from './attributes.ts';
import { audienceOf, isOwnName } from './audience.ts';
import { statedContext } from './context.ts';
import type { LoginRequest } from './request.ts';
import type { Assertion } from './response.ts';
import type { ServiceProvider } from './service-provider.ts';

interface ContentDependencies {
  config: Config;
  users: Users;
  customClaims: CustomClaims;
}

type AssertionContent = Pick<Assertion, 'nameId' | 'attributes' | 'context' | 'audience'>;

const refusal = (detail: string, message?: string): { failure: Status } => ({
  failure: { code: STATUS.responder, detail, ...(message === undefined ? {} : { message }) },
});

/**
 * Returns the content of an assertion that meets the request, or the status that says why there is none.
 * @param sp the service provider, with what actions set for this response.
 * @param issuer our entity ID, which issues the response.
 * @param transient the session's transient NameID.
 */
export async function assertionContent(
  { users, config, customClaims }: ContentDependencies,
  sp: ServiceProvider,
  { issuer: entityId }: ResponseFrame,
  { request, login, transient }: { request: LoginRequest; login: OwnCodeLogin; transient: string },
): Promise<AssertionContent | { failure: Status }> {
  const user = await users.get(login.userId);
  if (user === undefined) return refusal(STATUS.unknownPrincipal);
  // Checked again: the configuration may have changed while the user logged in.
  const audience = await audienceOf(config, sp, request.issuer, entityId);
  if (audience === undefined) return refusal(STATUS.requestDenied);
  const context = statedContext(request.classRefs, login.amr, sp.authnContextClassRef);
  if (context === undefined) return refusal(STATUS.noAuthnContext);
  const identity = sp.mapIdentities ? primaryIdentity(await users.identitiesOf(user.id)) : undefined;
  const declared = await customClaims.list({ to: 'saml', clientId: sp.clientId, userId: user.id });
  const userAttributes = attributesOf(user, identity, sp, {
    vendorHost: config.settings().vendor_host,
    declared,
  });
  const attributes = withAttributes(userAttributes, login.assertion);
  if (isTooLarge(attributes)) {
    return refusal(STATUS.requestDenied, 'The user has too many attributes for an assertion.');
  }
  const unqualified = nameIdOf(user, attributes, sp, request.nameIdFormat, transient);
  if (unqualified === undefined) {
    const isUnproved = request.nameIdFormat === NAME_ID.email;
    return refusal(
      STATUS.invalidNameIdPolicy,
      isUnproved ? 'The user has no verified e-mail address.' : undefined,
    );
  }
  const nameId = await qualifyNameId(config, sp, unqualified, request, audience);
  if (nameId === undefined) return refusal(STATUS.invalidNameIdPolicy);
  const isRequestedSubject = request.subject === undefined || request.subject === nameId.value;
  return isRequestedSubject ? { nameId, attributes, context, audience } : refusal(STATUS.unknownPrincipal);
}

/**
 * What an assertion may contain: as much as our own reader takes, and so little that it is signed in some 50
 * milliseconds. Users may write what becomes an attribute themselves, such as a list in their metadata.
 */
const MAX_VALUES = 2_000;
/** Characters of all names and values. */
const MAX_LENGTH = 200_000;

function isTooLarge(attributes: readonly Attribute[]): boolean {
  const count = attributes.reduce((sum, { values }) => sum + values.length, 0);
  if (count > MAX_VALUES) return true;
  const lengthOf = ({ name, values }: Attribute) =>
    values.reduce<number>((sum, value) => sum + String(value).length, name.length);
  return attributes.reduce((sum, one) => sum + lengthOf(one), 0) > MAX_LENGTH;
}

/** Adds the SPNameQualifier of the request, unless it is another service provider's (Core §3.4.1.1). */
async function qualifyNameId(
  config: Config,
  sp: ServiceProvider,
  nameId: NameId,
  { spNameQualifier: qualifier, issuer }: LoginRequest,
  audience: string,
): Promise<NameId | undefined> {
  if (qualifier === undefined || qualifier === '') return nameId;
  const isOwn = qualifier === audience || (qualifier === issuer && (await isOwnName(config, sp, qualifier)));
  return isOwn ? { ...nameId, spNameQualifier: qualifier } : undefined;
}
