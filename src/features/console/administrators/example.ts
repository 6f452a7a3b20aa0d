// The administrator of the example tenant: an owner with a well-known password, for development on one's own machine
// only.

import type { Administrators } from '../../../users/administrators.ts';
import { FIRST_VERSION } from '../../../users/login.ts';
import { addAdministrator, type MemberDependencies, readRegister } from './console-administrator-members.ts';

export const EXAMPLE_ADMINISTRATOR = {
  email: 'admin@example.test',
  password: 'Gatehouse-1',
} as const;

/** Creates the example's administrator if there is no administrator yet. */
export async function addExample(deps: MemberDependencies): Promise<void> {
  if ((await readRegister(deps)).members.length > 0) return;
  await addAdministrator(deps, { ...EXAMPLE_ADMINISTRATOR, name: 'Example administrator', role: 'owner' });
}

/** Returns the credentials of the example's administrator as long as the password has never been changed. */
export async function exampleOf(
  administrators: Pick<Administrators, 'withEmail' | 'credentialVersion'>,
): Promise<typeof EXAMPLE_ADMINISTRATOR | undefined> {
  const [user] = await administrators.withEmail(EXAMPLE_ADMINISTRATOR.email);
  const isUnchanged =
    user !== undefined && (await administrators.credentialVersion(user.id)) === FIRST_VERSION;
  return isUnchanged ? EXAMPLE_ADMINISTRATOR : undefined;
}

/** Reports whether the example's well-known password still logs in. */
export async function isExampleOpen(administrators: Administrators): Promise<boolean> {
  const [user] = await administrators.withEmail(EXAMPLE_ADMINISTRATOR.email);
  const { password } = EXAMPLE_ADMINISTRATOR;
  return user !== undefined && (await administrators.verifyPassword(user.id, password)) !== undefined;
}
