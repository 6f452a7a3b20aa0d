// The authentication methods that a user may have, by the tenant's configuration and the user's connections.

import { DATABASE } from '../../records/connections.ts';
import { passkeyOptions } from '../../records/database-options.ts';
import type { MethodType } from '../../records/second-factors.ts';
import type { Actor } from './actor.ts';
import { type EnrollmentDependencies, factorsOf } from './enrollments.ts';

/** A type of authentication method, and whether it is a first or a second factor. */
interface OfferedType {
  type: MethodType;
  usage: ('primary' | 'secondary')[];
}

/** Returns the first factors of the user's connections, then the second factors that are on. */
export async function offeredTypes(deps: EnrollmentDependencies, { user }: Actor): Promise<OfferedType[]> {
  const identities = await deps.users.identitiesOf(user.id);
  const databases = identities.filter(({ provider }) => provider === DATABASE);
  const connections = await Promise.all(
    databases.map(({ connection }) => deps.config.connection(connection)),
  );
  const hasPasskeys = connections.some((one) => one !== undefined && passkeyOptions(one) !== undefined);
  const first: MethodType[] = [
    ...(databases.length > 0 ? ['password' as const] : []),
    ...(hasPasskeys ? ['passkey' as const] : []),
  ];
  return [
    ...first.map((type): OfferedType => ({ type, usage: ['primary'] })),
    ...[...factorsOf(deps).keys()].map((type): OfferedType => ({ type, usage: ['secondary'] })),
  ];
}
