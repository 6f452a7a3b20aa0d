// E-mail as a second factor.
import { textField } from '../../../http/body.ts';
import { AuthError } from '../../../http/errors.ts';
import { codeKinds } from '../../../records/database-options.ts';
import { normalizeEmail } from '../../../records/email.ts';
import type { Config } from '../../../tenant/config.ts';
import { isByAddress } from '../../../users/changes.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { type Authenticator, singleId } from '../authenticators.ts';
import { messageFactor } from './message.ts';

export const email = messageFactor({
  channel: 'email',
  strength: 1,
  message: 'mfa_oob_code',
  // SDKs also send `email` as an authenticator type.
  requestedAs: ['oob', 'email'],
  addressOf: (fields, user) => textField(fields, 'email') ?? user.email ?? '',
  destinationOf: (authenticator) => authenticator.email,
  nameOf: (authenticator) => authenticator.email && masked(authenticator.email),
  ofProfile,
  fieldsOf: (address) => {
    const normalized = normalizeEmail(address);
    if (normalized !== undefined) return { email: normalized };
    throw new AuthError(400, 'invalid_request', 'email must be an e-mail address.');
  },
  formAddressOf: (address) => address,
  form: (_deps, _ctx, { claimant: { user } }, address = user.email ?? '') => ({ address }),
});

// docs/decisions/second-factors.md#the-verified-e-mail-address-of-the-profile-is-an-authenticator
/**
 * Returns the verified address of the user's profile as an authenticator. Returns undefined when the user can log
 * in with a code or link to that address, because that would be one factor used twice.
 */
async function ofProfile(
  { users, config }: { users: Pick<Users, 'identitiesOf'>; config: Pick<Config, 'connection'> },
  user: User,
): Promise<Authenticator | undefined> {
  if (user.email === undefined || !user.email_verified) return undefined;
  const identities = await users.identitiesOf(user.id);
  if (isByAddress(identities, ['email'])) return undefined;
  const connections = await Promise.all(identities.map(({ connection }) => config.connection(connection)));
  if (connections.some((one) => one !== undefined && codeKinds(one).includes('email'))) return undefined;
  return {
    id: singleId(email.prefix, user.id),
    user_id: user.id,
    kind: email.kind,
    active: true,
    email: user.email,
    created_at: user.created_at,
  };
}

function masked(address: string): string {
  const [local = '', domain = ''] = address.split('@');
  return `${local.slice(0, 1)}${'*'.repeat(Math.max(3, local.length - 1))}@${domain.slice(0, 4)}${'*'.repeat(Math.max(3, domain.length - 4))}`;
}
