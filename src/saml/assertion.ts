// What an assertion says: of whom, for whom, and how they logged in.
import type { InternalLogin } from '../engine/internal-requests.ts';
import type { Config } from '../tenant/config.ts';
import type { Users } from '../users/users.ts';
import { attributesOf, type NameId, nameIdOf } from './attributes.ts';
import { audienceOf, isOwnName } from './audience.ts';
import { statedContext } from './context.ts';
import { NAME_ID, STATUS } from './names.ts';
import type { LoginRequest } from './request.ts';
import type { Login, ResponseFrame, Status } from './response.ts';
import type { ServiceProvider } from './service-provider.ts';

export interface ContentDependencies {
  config: Config;
  users: Users;
}

/** What is said of a login. */
type Said = Pick<Login, 'nameId' | 'attributes' | 'context' | 'audience'>;

const refusal = (detail: string, message?: string): { refused: Status } => ({
  refused: { code: STATUS.responder, detail, ...(message === undefined ? {} : { message }) },
});

/**
 * What can be said of a login in the way it was asked for, or the status that says why nothing can.
 * @param frame of the response; its issuer is what the application knows us by.
 * @param asked the request, the login, and the name for this session alone.
 */
export async function contentOf(
  { users, config }: ContentDependencies,
  provider: ServiceProvider,
  { issuer: entityId }: ResponseFrame,
  { request, login, transient }: { request: LoginRequest; login: InternalLogin; transient: string },
): Promise<Said | { refused: Status }> {
  const user = await users.get(login.userId);
  if (user === undefined) return refusal(STATUS.unknownPrincipal);
  // Judged again: applications may have been named while the user logged in.
  const audience = await audienceOf(config, provider, request.issuer, entityId);
  if (audience === undefined) return refusal(STATUS.requestDenied);
  const context = statedContext(request.classRefs, login.amr, provider.authnContextClassRef);
  if (context === undefined) return refusal(STATUS.noAuthnContext);
  const attributes = attributesOf(user, provider, config.settings().vendor_host);
  const named = nameIdOf(user, attributes, provider, request.nameIdFormat, transient);
  if (named === undefined) {
    const isUnproved = request.nameIdFormat === NAME_ID.email;
    return refusal(
      STATUS.invalidNameIdPolicy,
      isUnproved ? 'The user has no verified e-mail address.' : undefined,
    );
  }
  const nameId = await qualified(config, provider, named, request, audience);
  if (nameId === undefined) return refusal(STATUS.invalidNameIdPolicy);
  const isMeant = request.subject === undefined || request.subject === nameId.value;
  return isMeant ? { nameId, attributes, context, audience } : refusal(STATUS.unknownPrincipal);
}

/** A name qualified for somebody else is not ours to give (Core §3.4.1.1). */
async function qualified(
  config: Config,
  provider: ServiceProvider,
  nameId: NameId,
  { spNameQualifier: qualifier, issuer }: LoginRequest,
  audience: string,
): Promise<NameId | undefined> {
  if (qualifier === undefined || qualifier === '') return nameId;
  const isOwn =
    qualifier === audience || (qualifier === issuer && (await isOwnName(config, provider, qualifier)));
  return isOwn ? { ...nameId, spNameQualifier: qualifier } : undefined;
}
